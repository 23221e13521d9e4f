"""Skip lists: read them in any of their formats, look a test up, check them, fold them."""
