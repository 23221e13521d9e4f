"""JUnit: what a user's own test command left, read as hostile input and in constant memory."""
