"""Build: PyTorch at the commit, and the backend on top of it, in the run's own environment."""
