"""`crcr classify`: which hardware each test class is for, without importing a line of it."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass

from backend_ci.testing.classify.cache import Cache, cache_path
from backend_ci.testing.classify.read import Reader, find_files, instantiating_files
from backend_ci.testing.classify.report import Report, make_report
from backend_ci.testing.classify.show import as_json, markdown, table
from backend_ci.testing.classify.tree import Tree
from relay_client.documents.plan import UNCLASSIFIED_POLICIES
from relay_client.errors import NothingSelected, UsageError
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import option


@dataclass(frozen=True)
class SourceOptions:
    """What every verb takes that reads test files."""

    paths: tuple[str, ...] = option(
        "Test files, folders of them, or @LIST with one path a line", default=(), positional=True
    )
    cache: str = option(
        "File that remembers what was read, or none (default: crcr/facts.txt in the user's cache folder)",
        default="",
    )


@dataclass(frozen=True)
class ClassifyOptions(SourceOptions):
    format: str = option("How to show it", default="table", one_of=("table", "json", "markdown"))
    unclassified: str = option(
        "What happens to test classes that declare no classification",
        default="skip",
        one_of=UNCLASSIFIED_POLICIES,
    )


OPTIONS = (ClassifyOptions,)

OUTPUTS: dict[str, str] = {}


def read_tree(
    options: SourceOptions, context: RunContext, commands: Commands, *, elsewhere: bool = False
) -> Tree:
    """The tree of the paths that were asked for; `elsewhere`: with the files that may instantiate their classes.

    Raises UsageError.
    """
    if not options.paths:
        raise UsageError(
            "No test file is named.", seen="no PATH", fix="name a file or a folder, such as test/"
        )
    files = find_files(options.paths, context.workspace)
    if not files:
        raise UsageError(
            "There is no test file.",
            seen=", ".join(options.paths),
            fix="name a folder that holds test_*.py or *_test.py, or the files themselves",
        )
    gc.disable()  # a short-lived process full of small tuples: collecting finds nothing and costs a third
    cache = Cache(cache_path(options.cache, context.environment))
    others = instantiating_files(files) if elsewhere else ()
    tree = Tree(files, Reader(cache, context.environment, commands.line).read, others)
    cache.save()
    return tree


def run(options: ClassifyOptions, context: RunContext, commands: Commands) -> None:
    """Raises NothingSelected with `--unclassified fail`, UsageError."""
    if options.format == "json":
        commands.leave_stdout()
    report = make_report(read_tree(options, context, commands))
    folder = context.workspace
    if options.format == "json":
        sys.stdout.write(as_json(report, folder, options.unclassified) + "\n")
    else:
        show = table if options.format == "table" else markdown
        for line in show(report, folder, options.unclassified):
            commands.line(line)
    if options.unclassified == "fail":
        _require_all(report)


def _require_all(report: Report) -> None:
    missing = report.unclassified()
    if missing:
        raise NothingSelected(
            f"{len(missing):,} test classes declare no hardware classification.",
            seen=", ".join(row.name for row in missing[:10]) + (", …" if len(missing) > 10 else ""),
            fix="declare `hw_classification` in them, or choose --unclassified skip",
        )
