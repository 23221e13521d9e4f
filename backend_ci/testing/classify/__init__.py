"""Classification without importing: which hardware each test class is for, read from the source."""
