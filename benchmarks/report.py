"""What one report costs as a whole process, next to the chain that does the same two requests: `make bench-report`.

The chain is what a hand-made callback step is made of, and what the production action does in three steps: Node asks
the token service, Python makes the body from the event file, curl sends it. Here each is as small as it can be:
no action bundle is loaded, nothing is checked, nothing is tried again. Both talk to one server on this machine that
answers at once, and are run in turn, so that both meet the same noise. Fails when the report takes more than
a third of the chain's time.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 40
WARM_UP = 5
ALLOWED_PART = 1 / 3

_NODE = """
const url = process.env.ACTIONS_ID_TOKEN_REQUEST_URL + '&audience=pytorch-cross-repo-ci-relay';
fetch(url, {headers: {Authorization: 'Bearer ' + process.env.ACTIONS_ID_TOKEN_REQUEST_TOKEN}})
  .then(answer => answer.json())
  .then(body => require('fs').writeFileSync(process.env.TOKEN_FILE, 'Authorization: Bearer ' + body.value));
"""
_PYTHON = """
import datetime, json, os
with open(os.environ['GITHUB_EVENT_PATH']) as file:
    body = json.load(file)['client_payload']
now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace('+00:00', 'Z')
body['workflow'] = {
    'schema_version': '1', 'status': 'in_progress', 'conclusion': None, 'name': os.environ['GITHUB_WORKFLOW'],
    'url': 'https://github.com/' + os.environ['GITHUB_REPOSITORY'] + '/actions/runs/' + os.environ['GITHUB_RUN_ID'],
    'job_name': 'test', 'check_run_id': '1', 'run_id': os.environ['GITHUB_RUN_ID'], 'run_attempt': '1',
    'started_at': now, 'completed_at': None,
}
with open(os.environ['BODY_FILE'], 'w') as file:
    json.dump(body, file)
"""
_CHAIN = """set -eu
"$NODE" -e "$NODE_SCRIPT"
"$PYTHON" -c "$PYTHON_SCRIPT"
"$CURL" --silent --show-error --fail --max-time 10 --header "@$TOKEN_FILE" --header 'Content-Type: application/json' \
    --data-binary "@$BODY_FILE" "$CRCR_RELAY_URL"
"""


class Server(ThreadingHTTPServer):
    """Token service and relay in one. Counts what arrived."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tokens = 0
        self.callbacks = 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.tokens += 1
        self._answer({"value": "header.payload.signature"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert body["workflow"]["status"] == "in_progress"
        assert self.headers["Authorization"] == "Bearer header.payload.signature"
        self.server.callbacks += 1
        self._answer({"ok": True, "status": "in_progress"})

    def _answer(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing to the terminal."""


def environment(folder: Path, server: Server) -> dict[str, str]:
    """A job's variables. The Python is found on PATH by both, as on a runner."""
    python = Path(sys.executable).resolve()
    tools = folder / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to(python)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    return {
        "PATH": f"{tools}:/usr/bin:/bin",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": str(ROOT / "tests/fixtures/pull_request_dispatch.json"),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_WORKSPACE": str(folder / "workspace"),
        "GITHUB_WORKFLOW": "CRCR",
        "GITHUB_RUN_ID": "77",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_REPOSITORY": "example-downstream/backend",
        "RUNNER_TEMP": str(folder / "temp"),
        "ACTIONS_ID_TOKEN_REQUEST_URL": address + "/token?api-version=2",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request-token",
        "CRCR_RELAY_URL": address + "/github/callback",
        "CRCR_STATUS": "in_progress",
        "NODE": shutil.which("node") or "",
        "PYTHON": "python3",
        "CURL": shutil.which("curl") or "",
        "NODE_SCRIPT": _NODE,
        "PYTHON_SCRIPT": _PYTHON,
        "TOKEN_FILE": str(folder / "token"),
        "BODY_FILE": str(folder / "body"),
    }


def run(command: list[str], variables: dict[str, str]) -> tuple[float, float]:
    """Wall time and processor time (with children) in milliseconds."""
    before, started = os.times(), time.perf_counter()
    subprocess.run(command, env=variables, check=True, capture_output=True)
    wall, after = time.perf_counter() - started, os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return wall * 1_000, processor * 1_000


def main() -> int:
    missing = [tool for tool in ("node", "curl") if shutil.which(tool) is None]
    if missing:
        print(f"There is no {' and no '.join(missing)} here, so there is nothing to compare with.")
        return 2
    commands = {
        "crcr report": ["sh", str(ROOT / "bin/crcr"), "report"],
        "node + python + curl": ["sh", "-c", _CHAIN],
    }
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        variables = environment(Path(folder), server)
        for number in range(WARM_UP + ROUNDS):
            for name, command in commands.items():
                found = run(command, variables)
                if number >= WARM_UP:
                    times[name].append(found)
    server.shutdown()
    rounds = 2 * (WARM_UP + ROUNDS)
    assert (server.tokens, server.callbacks) == (rounds, rounds), "not every request arrived"
    medians = {}
    for name, found in times.items():
        walls = [wall for wall, _ in found]
        medians[name] = statistics.median(walls)
        processor = statistics.median(used for _, used in found)
        print(f"{name:22} {medians[name]:6.1f} ms (best {min(walls):.1f}), {processor:.0f} ms of processor")
    part = medians["crcr report"] / medians["node + python + curl"]
    print(f"The report takes {part:.2f} of the chain's time; allowed is {ALLOWED_PART:.2f}.")
    return 0 if part <= ALLOWED_PART else 1


if __name__ == "__main__":
    sys.exit(main())
