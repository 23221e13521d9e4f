"""Where this project lives, and which release this tree is. The only place that says so.

A release stamps both into the workflow templates and the documentation. This tree is not released: its
templates pin the placeholder, which no owner on GitHub answers to, and the lab maps it to a working tree.
"""

from __future__ import annotations

VERSION = "0.1.0.dev0"
HOME = "OWNER/crcr-actions"
RELEASE_COMMIT = "0" * 40
