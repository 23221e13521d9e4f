"""`crcr lint`: upstream's rules for classified tests, hard-coded devices, and a list that only shrinks."""
