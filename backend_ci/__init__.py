"""What happens on the hardware: checkout, build, testing.

Standard library only. Starts foreign code; never holds a token.
"""
