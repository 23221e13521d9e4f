"""What a downstream says to the relay: the wire contract, receive, token, report.

Standard library only. May hold a token; never starts foreign code.
"""
