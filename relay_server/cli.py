"""`crcr-relay`: run the relay. One process, one settings file, one SQLite file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from .app import create_app
from .settings import PRIVATE_KEY_VARIABLE, WEBHOOK_SECRET_VARIABLE, SettingsError, load_settings
from .version import service_version

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 2 when a setting is wrong."""
    options = _parser().parse_args(arguments)
    try:
        settings = load_settings(options.config)
        app = create_app(settings)
    except (SettingsError, ValueError) as error:
        sys.stderr.write(f"crcr-relay: {error}\n")
        return USAGE_ERROR
    uvicorn.run(app, host=options.host, port=options.port, server_header=False, ws="none")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="crcr-relay", description="The Cross-Repository CI Relay.")
    parser.add_argument("--version", action="version", version=f"crcr-relay {service_version()}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    serve = verbs.add_parser(
        "serve",
        help="serve webhooks, callbacks and the dashboard",
        epilog=f"Secrets come from the environment: {WEBHOOK_SECRET_VARIABLE}, {PRIVATE_KEY_VARIABLE} (a path).",
    )
    serve.add_argument("--config", type=Path, required=True, metavar="FILE", help="settings file (YAML)")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument("--port", type=int, default=8080, help="port to listen on (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
