"""`crcr-lab`: GitHub on a laptop."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from crcr.home import VERSION
from dispatch_lab.demo import play, say
from dispatch_lab.errors import LabError
from dispatch_lab.scenarios import SCENARIOS

NOT_PROVEN = 1
LAB_FAILED = 3
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when everything was as the scenario expects, 1 when not, 2 for wrong usage, 3 when the lab failed."""
    options = _parser().parse_args(arguments)
    try:
        played = play(
            SCENARIOS[options.scenario], options.output.absolute(), options.wheels.absolute(),
            _stay if options.stay else None,
        )  # fmt: skip
    except LabError as error:
        sys.stderr.write(f"crcr-lab: {error}\n")
        return LAB_FAILED
    except KeyboardInterrupt:
        sys.stderr.write("crcr-lab: interrupted\n")
        return INTERRUPTED
    return NOT_PROVEN if played.wrong else 0


def _stay(address: str) -> None:
    say(f"\n  {address} stays up until Ctrl-C.")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        say("  down.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="crcr-lab", description="Try dispatch flows with real parts.")
    parser.add_argument("--version", action="version", version=f"crcr-lab {VERSION}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    demo = verbs.add_parser("demo", help="play a scenario and prove what the dashboard shows")
    demo.add_argument(
        "--scenario", choices=sorted(SCENARIOS), default="pull-request", help="default: %(default)s"
    )
    demo.add_argument(
        "--output", type=Path, default=Path("demo-output"), help="replaced; default: %(default)s"
    )
    demo.add_argument(
        "--wheels", type=Path, required=True, metavar="FOLDER", help="wheels of torch and the tests"
    )
    demo.add_argument("--stay", action="store_true", help="keep the dashboard up until Ctrl-C")
    return parser


if __name__ == "__main__":
    sys.exit(main())
