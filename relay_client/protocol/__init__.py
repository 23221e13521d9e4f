"""The wire contract of the Cross-Repository CI Relay as plain data: no I/O, no dependency.

Client, server and lab share this package and nothing else. Its JSON Schemas stand in `schemas/`.
"""
