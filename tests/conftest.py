"""Its place makes `tests/` a folder that every test can import helpers from."""
