"""Checkout: the exact upstream commit as a working tree."""
