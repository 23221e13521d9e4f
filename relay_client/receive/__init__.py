"""Receive: from the event file to a decision, its reason, and the commit to test."""
