"""Testing: plan which tests a run owes, run them, and account for every one by name."""
