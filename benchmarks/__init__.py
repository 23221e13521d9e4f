"""Benchmarks: measurements that a fresh clone can repeat with one `make` command."""
