"""The words of the wire: every fixed name that relay and downstream must spell alike.

Source: pytorch/test-infra, aws/lambda/cross_repo_ci_relay, and docs.pytorch.org "accelerator/ci".
"""

from __future__ import annotations

UPSTREAM_REPOSITORY = "pytorch/pytorch"
AUDIENCE = "pytorch-cross-repo-ci-relay"
CALLBACK_PATH = "/github/callback"
WEBHOOK_PATH = "/github/webhook"
WORKFLOW_SCHEMA_VERSION = "1"

DISPATCHED_EVENTS = ("pull_request", "push")
SELF_REPORTED_EVENTS = ("nightly", "periodic")
EVENT_TYPES = DISPATCHED_EVENTS + SELF_REPORTED_EVENTS
PULL_REQUEST_ACTIONS = ("opened", "reopened", "synchronize", "closed")
# PyTorch's relay sends none for a label; a downstream understands one that a relay of its own sends.
UNDERSTOOD_ACTIONS = (*PULL_REQUEST_ACTIONS, "labeled")

# PyTorch's bot lands a pull request by closing it (`merged` stays false) with this label on it.
LANDED_LABEL = "Merged"
# docs.github.com, GraphQL enumeration CommentAuthorAssociation.
AUTHOR_ASSOCIATIONS = (
    "OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR", "FIRST_TIME_CONTRIBUTOR", "FIRST_TIMER", "MANNEQUIN", "NONE",
)  # fmt: skip

STATUSES = ("in_progress", "completed")
CONCLUSIONS = ("success", "failure", "cancelled", "timed_out", "skipped", "neutral")
LEVELS = ("L1", "L2", "L3", "L4")

HARDWARE_CLASSIFICATIONS = ("GENERIC", "ACCELERATOR", "CPU", "CUDA", "MPS", "XPU")
HARDWARE_CLASSIFICATION_ALIASES = {"DEVICE_GENERIC": "ACCELERATOR"}  # its name before pytorch#186918 merged

SHA_PATTERN = r"[0-9a-f]{40}"
SHA_EXPECTS = "a full commit SHA: 40 lower-case hexadecimal digits"
REPOSITORY_PATTERN = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}"
REPOSITORY_EXPECTS = "owner/name"
ZERO_SHA = "0" * 40

# GitHub refuses a repository_dispatch whose client_payload exceeds 64 KB.
MAX_CLIENT_PAYLOAD_BYTES = 64 * 1024
MAX_CALLBACK_BYTES = 2_000_000
MAX_FAILED_TESTS = 1_000
MAX_STACKTRACE_CHARACTERS = 4_096
MAX_MESSAGE_CHARACTERS = 1_024
