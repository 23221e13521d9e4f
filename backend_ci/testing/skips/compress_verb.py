"""`crcr skips compress`: one rule for many entries, proved on the tests there are. Also changes the format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from backend_ci.testing.skips.check_verb import SkipListOptions
from backend_ci.testing.skips.compress import compress, prove
from backend_ci.testing.skips.read import read_skip_list, read_skip_lists
from backend_ci.testing.skips.universe import read_universe
from backend_ci.testing.skips.write import FORMATS, render
from relay_client.errors import BadSkipList, UsageError
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import option


@dataclass(frozen=True)
class CompressOptions(SkipListOptions):
    output: Path = option(
        f"Where the rules are written; its ending says how: {', '.join(FORMATS)}", default=Path("skips.json")
    )


_SHOWN = 10

OPTIONS = (CompressOptions,)

OUTPUTS: dict[str, str] = {}


def run(options: CompressOptions, context: RunContext, commands: Commands) -> None:
    """Raises BadSkipList when the proof fails or the list has malformed entries; UsageError, DocumentError."""
    if options.against is None:
        raise UsageError(
            "Folding needs the tests that it is proved on.",
            seen="no --against",
            fix="--against plan.json, or a file with one test id a line",
        )
    if options.output.suffix[1:].lower() not in FORMATS:
        raise UsageError(
            "The output has no format.",
            seen=str(options.output),
            fix="--output rules.json, .yml, .toml or .txt",
        )
    commands.line("Reading the tests and the lists ...")
    tests, backends = read_universe(context.workspace / options.against, options.backend)
    skips = read_skip_lists(options.paths(context), backends, options.python(context))
    for problem in skips.problems[:_SHOWN]:
        commands.line(f"left out: {problem.where}: {problem.what}")
    if skips.problems:
        commands.warning(
            f"{len(skips.problems)} malformed entries are left out; `crcr skips check` lists them"
        )
    rules = compress(skips.entries, tests)
    output = context.workspace / options.output
    unfinished = output.with_name(f"unfinished-{output.name}")
    try:
        unfinished.write_text(render(rules, output), encoding="utf-8")
        # Proved is what was written, as it is read again.
        written = read_skip_list(unfinished, backends, options.python(context))
        if written.problems:
            raise BadSkipList(
                "The rules cannot be written in this format.",
                seen="; ".join(problem.what for problem in written.problems[:3]),
                fix="--output with the ending .json",
            )
        commands.line(f"Proving {len(written.entries)} rules on {len(tests)} tests ...")
        prove(skips.entries, written.entries, tests)
        unfinished.replace(output)
    except (OSError, UnicodeError) as error:
        raise UsageError(
            "The rules cannot be written.", seen=f"{output}: {error}", fix="--output: a file in a folder"
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    commands.line(
        f"{len(skips.entries)} entries became {len(written.entries)} rules; "
        f"proved on {len(tests)} tests: each is treated as before. Written: {output}"
    )
