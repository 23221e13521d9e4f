"""Every action manifest, held against the verb it wraps and against what GitHub accepts."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from manifests import ACTIONS, BY_FOLDER, ROOT, folder_of, load, name

from crcr.home import VERSION
from crcr.verbs import BY_NAME, VERBS
from relay_client.runner.options import default_text, kebab, variable

actions = pytest.mark.parametrize("path", ACTIONS, ids=name)


def options_of(path: Path) -> dict[str, dataclasses.Field[Any]]:
    """The options that the verbs of an action take from its inputs, by input name."""
    found = {}
    for verb in BY_FOLDER[folder_of(path)].verbs:
        for cls in BY_NAME[verb].load().OPTIONS:
            for option in dataclasses.fields(cls):
                if not option.metadata["rule"].shell_only:
                    found[kebab(option.name)] = option
    return found


def run_steps(path: Path) -> list[dict[str, Any]]:
    return [step for step in load(path)["runs"]["steps"] if "run" in step]


def test_every_action_of_the_verbs_exists() -> None:
    assert {folder_of(path) for path in ACTIONS} == {verb.action for verb in VERBS if verb.action}


@actions
def test_inputs_are_the_options_of_the_verb(path: Path) -> None:
    assert set(load(path)["inputs"]) == set(options_of(path))


@actions
def test_defaults_are_quoted_text_and_the_code_s(path: Path) -> None:
    for given, value in load(path)["inputs"].items():
        assert value["default"] == default_text(options_of(path)[given])
        assert isinstance(value["default"], str)
    assert all(re.match(r'    default: "', line) for line in lines(path) if "    default:" in line)


@actions
def test_inputs_and_outputs_are_kebab_case_and_described(path: Path) -> None:
    manifest = load(path)
    for part in ("inputs", "outputs"):
        for given, value in manifest[part].items():
            assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", given)
            assert value["description"].strip()


@actions
def test_no_expression_stands_where_github_would_evaluate_it_at_load(path: Path) -> None:
    """An expression in a description broke every caller for thirteen hours (test-infra #8209)."""
    manifest = load(path)
    texts = [manifest["name"], manifest["description"]]
    texts += [value["description"] for part in ("inputs", "outputs") for value in manifest[part].values()]
    texts += [value["default"] for value in manifest["inputs"].values()]
    assert not [text for text in texts if "${{" in text]


@actions
def test_a_step_is_one_verb_and_interpolates_nothing(path: Path) -> None:
    verbs = BY_FOLDER[folder_of(path)].verbs
    up = "" if folder_of(path) == "." else "/../.."
    commands = [step["run"] for step in run_steps(path)]
    assert commands == [f'sh "$GITHUB_ACTION_PATH{up}/bin/crcr" {verb}' for verb in verbs]
    assert all(step["shell"] == "sh" for step in run_steps(path))


@actions
def test_every_input_reaches_its_verb_once_and_only_as_a_variable(path: Path) -> None:
    forwarded: dict[str, set[str]] = {}
    for step in run_steps(path):
        for key, value in step["env"].items():
            match = re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", value)
            if match:
                assert key == variable(match[1].replace("-", "_"))
                forwarded.setdefault(match[1], set()).add(key)
    assert set(forwarded) == set(load(path)["inputs"])


@actions
def test_outputs_are_what_the_verbs_set(path: Path) -> None:
    """act hands on outputs that a manifest does not declare; GitHub does not."""
    expected = {
        given: f"${{{{ steps.{verb}.outputs.{given} }}}}"
        for verb in BY_FOLDER[folder_of(path)].verbs
        for given in BY_NAME[verb].load().OUTPUTS
    }
    assert {given: value["value"] for given, value in load(path)["outputs"].items()} == expected
    assert {step["id"] for step in run_steps(path)} == set(BY_FOLDER[folder_of(path)].verbs)


@actions
def test_only_the_artifact_actions_are_nested_and_they_are_pinned(path: Path) -> None:
    for step in load(path)["runs"]["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"actions/(upload|download)-artifact@[0-9a-f]{40}", step["uses"])
    assert all(re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line) for line in lines(path) if "uses:" in line)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_verb_declares_every_output_it_sets(verb: Any) -> None:
    source = Path(str(verb.load().__file__)).read_text(encoding="utf-8")
    written = set(re.findall(r'commands\.output\(\s*"([a-z-]+)"', source))
    assert written <= set(verb.load().OUTPUTS)


def test_versions_agree() -> None:
    assert f'version = "{VERSION}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
