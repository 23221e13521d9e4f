"""The expression of `when:`: which events run the tests. Text in; true or false, and why, out."""
