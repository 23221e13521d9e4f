"""Upstream webhooks as GitHub sends them: same members, same size (20-30 kB), hostile text where outsiders write.

Shape: docs.github.com, "Webhook events and payloads", `pull_request` and `push`. Every value is invented.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relay_client.protocol.vocabulary import UPSTREAM_REPOSITORY

# What a title may do to a shell, a workflow command, a log, an HTML page, a Markdown table and a JSON string.
HOSTILE_TITLE = (
    "Fix `touch pwned` $(touch pwned) '; touch pwned; ' \"quoted\" ${{ github.token }} ::error::no\n"
    "::set-output name=should-run::false <script>alert(1)</script> | **bold** \\u0000 \u202eright-to-left 🚀"
)
AUTHOR = "outside-contributor"
_FORK = f"{AUTHOR}/pytorch"
_TIME = "2026-11-30T10:11:12Z"

# Members of a repository object whose value is an address below its API address.
_REPOSITORY_ADDRESSES = (
    "forks", "keys{/key_id}", "collaborators{/collaborator}", "teams", "hooks", "issues/events{/number}", "events",
    "assignees{/user}", "branches{/branch}", "tags", "git/blobs{/sha}", "git/tags{/sha}", "git/refs{/sha}",
    "git/trees{/sha}", "statuses/{sha}", "languages", "stargazers", "contributors", "subscribers", "subscription",
    "commits{/sha}", "git/commits{/sha}", "comments{/number}", "issues/comments{/number}", "contents/{+path}",
    "compare/{base}...{head}", "merges", "{archive_format}{/ref}", "downloads", "issues{/number}", "pulls{/number}",
    "milestones{/number}", "notifications{?since,all,participating}", "labels{/name}", "releases{/id}", "deployments",
)  # fmt: skip
_USER_ADDRESSES = (
    "followers", "following{/other_user}", "gists{/gist_id}", "starred{/owner}{/repo}", "subscriptions", "orgs",
    "repos", "events{/privacy}", "received_events",
)  # fmt: skip


@dataclass(frozen=True)
class Delivery:
    """A webhook ready to be sent: its body as bytes, and the headers GitHub sends with it."""

    event: str
    guid: str
    body: bytes

    def headers(self, secret: str) -> Mapping[str, str]:
        """With the signature over the body (docs.github.com, "Validating webhook deliveries")."""
        digest = hmac.new(secret.encode(), self.body, hashlib.sha256).hexdigest()
        return {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/lab",
            "X-GitHub-Delivery": self.guid,
            "X-GitHub-Event": self.event,
            "X-Hub-Signature-256": f"sha256={digest}",
        }


def pull_request_delivery(
    *,
    number: int,
    head_sha: str,
    base_sha: str,
    action: str = "opened",
    title: str = HOSTILE_TITLE,
    author_association: str = "COLLABORATOR",
    labels: tuple[str, ...] = ("open source",),
    sender: str = AUTHOR,
) -> Delivery:
    """A pull request from a fork. By default of a collaborator (GitHub's "outside collaborator"), whom receive trusts."""
    pull_request = {
        **_pull_request(number, head_sha, base_sha, action, title),
        "author_association": author_association,
        "labels": [_label(name) for name in labels],
    }
    return _delivery(
        "pull_request",
        {
            "action": action,
            "number": number,
            "pull_request": pull_request,
            "repository": _repository(UPSTREAM_REPOSITORY),
            "organization": {
                "login": "pytorch",
                "id": 21003710,
                "url": "https://api.github.com/orgs/pytorch",
            },
            "sender": _user(sender),
            "installation": {"id": 7, "node_id": "lab"},
        },
    )


def push_delivery(*, before: str, after: str, ref: str = "refs/heads/main") -> Delivery:
    """A push to a branch of upstream."""
    commit = {
        "id": after,
        "message": HOSTILE_TITLE,
        "timestamp": _TIME,
        "url": f"https://github.com/{UPSTREAM_REPOSITORY}/commit/{after}",
        "author": {"name": "Upstream", "email": "upstream@lab.invalid"},
        "added": [],
        "removed": [],
        "modified": ["README.md"],
    }
    return _delivery(
        "push",
        {
            "ref": ref,
            "before": before,
            "after": after,
            "created": False,
            "deleted": False,
            "forced": False,
            "base_ref": None,
            "compare": f"https://github.com/{UPSTREAM_REPOSITORY}/compare/{before[:12]}...{after[:12]}",
            "commits": [commit],
            "head_commit": commit,
            "pusher": {"name": "upstream", "email": "upstream@lab.invalid"},
            "repository": _repository(UPSTREAM_REPOSITORY),
            "sender": _user("upstream"),
            "installation": {"id": 7, "node_id": "lab"},
        },
    )


def _delivery(event: str, payload: Mapping[str, Any]) -> Delivery:
    return Delivery(event, str(uuid.uuid4()), json.dumps(payload, separators=(",", ":")).encode())


def _pull_request(number: int, head_sha: str, base_sha: str, action: str, title: str) -> dict[str, Any]:
    page = f"https://github.com/{UPSTREAM_REPOSITORY}/pull/{number}"
    api = f"https://api.github.com/repos/{UPSTREAM_REPOSITORY}"
    return {
        "url": f"{api}/pulls/{number}",
        "id": 2_000_000_000 + number,
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "issue_url": f"{api}/issues/{number}",
        "number": number,
        "state": "closed" if action == "closed" else "open",
        "locked": False,
        "title": title,
        "user": _user(AUTHOR),
        "body": (title + '\n\nIt\'s a `change`; see "above".\n') * 12,
        "created_at": _TIME,
        "updated_at": _TIME,
        "closed_at": None,
        "merged_at": None,
        "merge_commit_sha": None,
        "assignees": [],
        "requested_reviewers": [_user(name) for name in ("reviewer-one", "reviewer-two")],
        "requested_teams": [],
        "milestone": None,
        "draft": False,
        "commits_url": f"{api}/pulls/{number}/commits",
        "review_comments_url": f"{api}/pulls/{number}/comments",
        "comments_url": f"{api}/issues/{number}/comments",
        "statuses_url": f"{api}/statuses/{head_sha}",
        "head": {
            "label": "outside-contributor:fix",
            "ref": "fix-$(touch${IFS}pwned)",
            "sha": head_sha,
            "user": _user(AUTHOR),
            "repo": _repository(_FORK),
        },
        "base": {
            "label": "pytorch:main",
            "ref": "main",
            "sha": base_sha,
            "user": _user("pytorch"),
            "repo": _repository(UPSTREAM_REPOSITORY),
        },
        "auto_merge": None,
        "active_lock_reason": None,
        "merged": False,
        "mergeable": None,
        "rebaseable": None,
        "mergeable_state": "unknown",
        "merged_by": None,
        "comments": 0,
        "review_comments": 0,
        "maintainer_can_modify": True,
        "commits": 1,
        "additions": 2,
        "deletions": 1,
        "changed_files": 1,
    }


def _label(name: str) -> dict[str, Any]:
    return {"id": sum(name.encode()), "name": name, "color": "fcd2ed", "default": False, "description": None}


def _repository(full_name: str) -> dict[str, Any]:
    owner, _, name = full_name.partition("/")
    api = f"https://api.github.com/repos/{full_name}"
    addresses = {
        f"{path.partition('{')[0].strip('/').replace('/', '_')}_url": f"{api}/{path}"
        for path in _REPOSITORY_ADDRESSES
    }
    return {
        "id": 65600975,
        "node_id": "MDEwOlJlcG9zaXRvcnk2NTYwMDk3NQ==",
        "name": name,
        "full_name": full_name,
        "private": False,
        "owner": _user(owner),
        "html_url": f"https://github.com/{full_name}",
        "description": "Tensors and dynamic neural networks",
        "fork": full_name != UPSTREAM_REPOSITORY,
        "url": api,
        **addresses,
        "created_at": "2016-08-13T05:26:41Z",
        "updated_at": _TIME,
        "pushed_at": _TIME,
        "git_url": f"git://github.com/{full_name}.git",
        "ssh_url": f"git@github.com:{full_name}.git",
        "clone_url": f"https://github.com/{full_name}.git",
        "homepage": "",
        "size": 1,
        "stargazers_count": 0,
        "watchers_count": 0,
        "language": "Python",
        "has_issues": True,
        "has_projects": True,
        "has_wiki": True,
        "forks_count": 0,
        "archived": False,
        "disabled": False,
        "open_issues_count": 0,
        "license": {"key": "other", "name": "Other", "spdx_id": "NOASSERTION", "url": None},
        "allow_forking": True,
        "is_template": False,
        "topics": ["deep-learning", "gpu", "neural-network", "python", "tensor"],
        "visibility": "public",
        "forks": 0,
        "open_issues": 0,
        "watchers": 0,
        "default_branch": "main",
    }


def _user(login: str) -> dict[str, Any]:
    api = f"https://api.github.com/users/{login}"
    addresses = {f"{path.partition('{')[0].strip('/')}_url": f"{api}/{path}" for path in _USER_ADDRESSES}
    return {
        "login": login,
        "id": sum(login.encode()),
        "avatar_url": f"https://avatars.githubusercontent.com/u/{sum(login.encode())}?v=4",
        "gravatar_id": "",
        "url": api,
        "html_url": f"https://github.com/{login}",
        **addresses,
        "type": "User",
        "user_view_type": "public",
        "site_admin": False,
    }
