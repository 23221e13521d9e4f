"""Where we run, as the environment says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay_client.errors import UsageError
from relay_client.runner.context import check_run_id, read_context

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_WORKFLOW": "CRCR",
    "GITHUB_RUN_ID": "77",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_REPOSITORY": "example-downstream/backend",
    "GITHUB_SERVER_URL": "https://github.example/",
    "GITHUB_EVENT_PATH": "/event.json",
    "RUNNER_TEMP": "/temp",
}


def test_a_job_on_github_is_known_by_its_variables() -> None:
    context = read_context(GITHUB)
    assert context.on_github
    assert (context.workflow, context.run_id, context.run_attempt) == ("CRCR", "77", 2)
    assert context.event_path == Path("/event.json")
    assert context.run_url == "https://github.example/example-downstream/backend/actions/runs/77"
    assert context.run_folder(None) == Path("/temp/crcr")
    assert context.run_folder(Path("/other")) == Path("/other")
    context.require_run()


def test_a_plain_shell_is_not_github_and_names_no_run() -> None:
    context = read_context({})
    assert not context.on_github
    assert context.event_path is None
    assert context.run_folder(None).is_absolute()


@pytest.mark.parametrize("value", ["1", "true", "TRUE", ""])
def test_only_the_runner_s_own_word_means_github(value: str) -> None:
    assert read_context({"GITHUB_ACTIONS": value}).on_github == (value == "true")


@pytest.mark.parametrize("attempt", ["", "0", "-1", "x", "²", "1.5"])
def test_an_attempt_that_is_no_number_counts_as_the_first(attempt: str) -> None:
    assert read_context({"GITHUB_RUN_ATTEMPT": attempt}).run_attempt == 1


@pytest.mark.parametrize("missing", ["GITHUB_RUN_ID", "GITHUB_REPOSITORY", "GITHUB_WORKFLOW"])
def test_a_run_that_is_not_known_cannot_be_reported(missing: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_context({**GITHUB, missing: ""}).require_run()
    assert f"{missing}=''" in caught.value.seen


def test_a_row_has_one_identity_in_every_job_of_an_attempt_and_another_in_the_next() -> None:
    first, again = read_context(GITHUB), read_context({**GITHUB, "GITHUB_JOB": "report"})
    assert check_run_id(first, "test") == check_run_id(again, "test")
    later = read_context({**GITHUB, "GITHUB_RUN_ATTEMPT": "3"})
    assert len({check_run_id(first, "test"), check_run_id(first, "other"), check_run_id(later, "test")}) == 3


def test_the_environment_is_not_in_the_context_s_text() -> None:
    assert "hidden" not in repr(read_context({"SECRET": "hidden"}))
