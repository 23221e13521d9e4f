"""From a step's options to a verdict: what lies in the evidence folder, what the jobs came to, what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Optional

from relay_client.documents.report import Verdict
from relay_client.errors import BadBaseline, UsageError
from relay_client.protocol.callback import FailedTest
from relay_client.protocol.shape import show
from relay_client.report.baseline import Triage, read_baseline, triage
from relay_client.report.evidence import Found, read_evidence, read_job_results
from relay_client.report.from_junit import evidence_from_junit
from relay_client.report.jobs import ask_jobs, refine
from relay_client.report.options import GatherOptions
from relay_client.report.verdict import Expected, Facts, failed_tests, judge, reason_of
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import kebab

# Not an option: a secret has no place on a command line.
GITHUB_TOKEN = "CRCR_GITHUB_TOKEN"  # noqa: S105 - the name of a variable
_SHOWN_FLAKY = 10


def gather(
    options: GatherOptions, context: RunContext, commit: str, commands: Commands
) -> tuple[Verdict, tuple[FailedTest, ...]]:
    """The verdict on a row and its failed tests, new ones first. Raises UsageError."""
    folder = options.evidence or context.run_folder(options.run_dir)
    expected = Expected(_whole(options, "expected_shards"), _whole(options, "expected_tests"))
    jobs, notes = _jobs(options, context)
    found = read_evidence(folder, options.row)
    faults = [*map(reason_of, found.failures), *found.unreadable]
    if options.junit and not found.evidence:
        made = evidence_from_junit(
            folder,
            options.junit,
            options.row,
            context.run_attempt,
            commit,
            options.torch_git_version,
            commands.line,
        )
        faults += made.faults
        if expected.shards is not None and made.shards < expected.shards:
            faults.append(f"{made.shards} of {expected.shards} expected shards left JUnit reports")
        expected = replace(expected, shards=None)
        found = Found(made.evidence, found.failures, found.unreadable)
    compared, remarks = _compare(options, found)
    facts = Facts(commit, jobs, found.evidence, tuple(faults), expected, options.may_be_skipped)
    strict = judge(facts)
    verdict = strict
    if options.conclude_on == "new-failures" and compared is not None and compared.nothing_new:
        verdict = judge(replace(facts, excused=True))
        if verdict.conclusion != strict.conclusion:
            remarks.append("`conclude-on: new-failures` made this a success: every failed test failed before")
    verdict = replace(verdict, notes=(*notes, *remarks, *_flaky(found)))
    if compared is not None:
        tests = failed_tests([replace(found.evidence[0], failures=compared.ordered())], found.failures)
    else:
        tests = failed_tests(found.evidence, found.failures)
    return verdict, tests


def _jobs(options: GatherOptions, context: RunContext) -> tuple[Mapping[str, str], list[str]]:
    results = read_job_results(options.needs or "")
    if "cancelled" not in results.values():
        return results, []
    jobs, why = ask_jobs(context, context.environment.get(GITHUB_TOKEN, ""))
    if jobs is None:
        return results, [f"whether a time limit cancelled it is not known: {why}"]
    refined, remarks = refine(results, jobs, options.job_timeout_minutes)
    return refined, list(remarks)


def _compare(options: GatherOptions, found: Found) -> tuple[Optional[Triage], list[str]]:
    """The failures next to the baseline. Without a usable baseline every failure counts, and that is said."""
    if options.baseline is None or not found.evidence:
        return None, []
    try:
        compared = triage(found.evidence, read_baseline(options.baseline, options.row))
    except BadBaseline as error:
        return None, [f"every failure counts as new: {error.what} {error.seen}"]
    return compared, [compared.sentence()]


def _flaky(found: Found) -> list[str]:
    flaky = [test for item in found.evidence for test in item.flaky]
    if not flaky:
        return []
    rest = f" and {len(flaky) - _SHOWN_FLAKY} more" if len(flaky) > _SHOWN_FLAKY else ""
    return [f"passed after more than one try: {', '.join(flaky[:_SHOWN_FLAKY])}{rest}"]


def _whole(options: GatherOptions, name: str) -> Optional[int]:
    text = getattr(options, name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
        raise UsageError(
            f"{kebab(name)} has a value that is not allowed.",
            seen=show(text),
            fix=f"{kebab(name)}: a whole number above 0",
        )
    return int(text)
