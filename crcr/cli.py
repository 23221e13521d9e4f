"""`crcr <verb>`: parse, run, and turn every error into a text a person can act on, with its exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Optional

from crcr.home import VERSION
from crcr.verbs import BY_NAME, VERBS, Verb
from relay_client.errors import CrcrError, InternalError
from relay_client.runner.commands import Commands
from relay_client.runner.context import read_context
from relay_client.runner.options import add_arguments, read_options

INTERRUPTED = 130
OUTPUT_CLOSED = 141  # as a shell shows a death by SIGPIPE


def main(arguments: Optional[Sequence[str]] = None, environment: Optional[Mapping[str, str]] = None) -> int:
    """Run one verb. Returns the exit code (relay_client/errors.py has the table)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    context = read_context(os.environ if environment is None else environment)
    commands = Commands(context)
    parser = _parser()
    if not arguments or arguments[0] in ("-h", "--help", "--version"):
        parser.parse_args(list(arguments) or ["--help"])
    length = 2 if " ".join(arguments[:2]) in BY_NAME else 1
    name = " ".join(arguments[:length])
    verb = BY_NAME.get(name)
    if verb is None:
        parser.error(f"there is no verb {name!r}; verbs: {', '.join(BY_NAME)}")
    try:
        module = verb.load()
        given = _verb_parser(verb, module.OPTIONS).parse_intermixed_args(list(arguments[length:]))
        options = (
            given if verb.name == "run" else read_options(module.OPTIONS[0], vars(given), context.environment)
        )
        module.run(options, context, commands)
    except CrcrError as error:
        commands.failure(error)
        return error.exit_code
    except KeyboardInterrupt:
        commands.line("Interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        # `crcr … | head`: the reader has seen enough. Nothing is flushed into the closed pipe at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
    except Exception as error:  # noqa: BLE001 - the last line of defence: no user meets a bare traceback
        return _internal(error, commands)
    return 0


def _internal(error: Exception, commands: Commands) -> int:
    import traceback  # costs every verb milliseconds, and only a fault needs it

    with commands.group("Where it happened, for the report of the fault"):
        commands.line("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    fault = InternalError(
        "crcr itself failed. This is a fault of the toolkit, not of your workflow.",
        seen=f"{type(error).__name__}: {error}",
        fix="report it with the folded lines above",
    )
    commands.failure(fault)
    return fault.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="crcr",
        usage="crcr VERB [options]",
        description="Take part in PyTorch's Cross-Repository CI Relay.",
        epilog="verbs:\n" + "\n".join(f"  {verb.name:16}{verb.summary}" for verb in VERBS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"crcr {VERSION}")
    return parser


def _verb_parser(verb: Verb, classes: Sequence[type]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"crcr {verb.name}", description=verb.summary + ".", allow_abbrev=False
    )
    add_arguments(parser, classes)
    return parser


if __name__ == "__main__":
    sys.exit(main())
