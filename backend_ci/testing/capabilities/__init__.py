"""What a backend can do, stated once: dtypes and tolerances by operator, features. Everything else is derived."""
