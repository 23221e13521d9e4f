"""The action manifests, made from the options and outputs of the verbs they wrap.

A composite action has no logic: inputs become CRCR_* variables, and one verb runs. Written by hand, the
inputs, their defaults and the forwarded variables drift apart; here they have one source.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from crcr.verbs import BY_NAME, Verb
from relay_client.runner.options import default_text, kebab, variable

UPLOAD = "actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1"
DOWNLOAD = "actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1"

_NOTE = "# Made by `make generate` from the options of {verbs}. Change those, not this file.\n"

# Only node actions get GitHub's artifact credentials, so uploads and downloads nest these two, pinned.
_UPLOAD_EVIDENCE = f"""\
    - name: Keep the documents for the report
      if: ${{{{ always() && steps.run.outputs.documents != '' }}}}
      uses: {UPLOAD}
      with:
        name: ${{{{ steps.run.outputs.artifact-name }}}}
        path: ${{{{ steps.run.outputs.documents }}}}
        if-no-files-found: warn
"""
_DOWNLOAD_BUILD = f"""\
    - name: Fetch the build
      if: ${{{{ inputs.stage == 'test' }}}}
      uses: {DOWNLOAD}
      with:
        pattern: crcr-${{{{ inputs.build-name }}}}-attempt-*
        path: ${{{{ runner.temp }}}}/crcr-handover
"""
_UPLOAD_BUILD = f"""\
    - name: Hand the build over to the test jobs
      if: ${{{{ steps.run.outputs.handover != '' }}}}
      uses: {UPLOAD}
      with:
        name: ${{{{ steps.run.outputs.handover-name }}}}
        path: ${{{{ steps.run.outputs.handover }}}}
        compression-level: 0 # wheels are compressed
        if-no-files-found: error
"""
_DOWNLOAD_EVIDENCE = f"""\
    - name: Fetch the evidence of the jobs before
      if: ${{{{ inputs.status == 'completed' }}}}
      continue-on-error: true # without evidence the verdict is failure, and it must still be reported
      uses: {DOWNLOAD}
      with:
        pattern: crcr-evidence-*
        path: ${{{{ runner.temp }}}}/crcr-evidence
"""
_UPLOAD_OUTBOX = f"""\
    - name: Keep what could not be delivered
      if: ${{{{ always() && steps.report.outputs.outbox != '' }}}}
      uses: {UPLOAD}
      with:
        name: ${{{{ steps.report.outputs.outbox-name }}}}
        path: ${{{{ steps.report.outputs.outbox }}}}
        if-no-files-found: error
"""


@dataclass(frozen=True)
class Manifest:
    """One action: its folder, what a user reads first, the verbs it runs, and the node actions around them."""

    folder: str
    name: str
    description: str
    verbs: tuple[str, ...]
    before: str = ""
    after: str = ""
    fixed: dict[str, str] = field(default_factory=dict)

    def render(self) -> str:
        verbs = [BY_NAME[name] for name in self.verbs]
        inputs = list(_inputs(verbs))
        text = _NOTE.format(verbs=" and ".join(f"`crcr {name}`" for name in self.verbs))
        text += f"name: {self.name}\ndescription: {_quoted(self.description)}\nauthor: crcr-actions\n"
        text += "inputs:\n" + "".join(_input(option) for option in inputs)
        text += "outputs:\n" + "".join(_outputs(verbs))
        text += "runs:\n  using: composite\n  steps:\n" + self.before
        for verb in verbs:
            text += self._step(verb, [option.name for option in _inputs([verb])])
        return text + self.after

    def _step(self, verb: Verb, names: list[str]) -> str:
        up = "" if self.folder == "." else "/../.."
        variables = {variable(name): f"${{{{ inputs.{kebab(name)} }}}}" for name in names} | self.fixed
        lines = [
            f"    - name: {verb.summary}",
            f"      id: {verb.name}",
            "      shell: sh",
            "      env:",
            *(f"        {name}: {value}" for name, value in variables.items()),
            f'      run: sh "$GITHUB_ACTION_PATH{up}/bin/crcr" {verb.name}',
        ]
        return "\n".join(lines) + "\n"


MANIFESTS = (
    Manifest(
        ".",
        "Build PyTorch and test a backend",
        "Check out PyTorch at the dispatched commit, build it and the backend, run the tests the hardware calls for",
        ("run",),
        before=_DOWNLOAD_BUILD,
        after=_UPLOAD_BUILD + _UPLOAD_EVIDENCE,
        fixed={"CRCR_HANDOVER": "${{ runner.temp }}/crcr-handover"},
    ),
    Manifest(
        "actions/receive-dispatch",
        "Receive a dispatch of the Cross-Repository CI Relay",
        "Read and validate the dispatch, decide whether to run, and name the upstream commit",
        ("receive",),
        fixed={"CRCR_GITHUB_TOKEN": "${{ github.token }}"},
    ),
    Manifest(
        "actions/fetch-oidc-token",
        "Fetch an OIDC token for the relay",
        "An OIDC token as a masked output, for calls of your own; report-status fetches its own",
        ("token",),
    ),
    Manifest(
        "actions/checkout-pytorch",
        "Check out PyTorch",
        "Check out exactly the dispatched commit of PyTorch",
        ("checkout",),
    ),
    Manifest(
        "actions/build-pytorch",
        "Build PyTorch",
        "PyTorch at the checked-out commit, in an environment of this run",
        ("build-pytorch",),
    ),
    Manifest(
        "actions/build-backend",
        "Build the backend",
        "The backend extension, against the PyTorch of this run",
        ("build-backend",),
    ),
    Manifest(
        "actions/run-classified-tests",
        "Run classified tests",
        "Select tests by hardware classification, run them, and leave evidence of each",
        ("plan", "test"),
    ),
    Manifest(
        "actions/report-status",
        "Report to the Cross-Repository CI Relay",
        "Tell the relay that a row runs or how it ended, then fail if it did not succeed",
        ("report",),
        before=_DOWNLOAD_EVIDENCE,
        after=_UPLOAD_OUTBOX,
        fixed={
            "CRCR_EVIDENCE": "${{ runner.temp }}/crcr-evidence",
            "CRCR_GITHUB_TOKEN": "${{ github.token }}",
        },
    ),
)


def _inputs(verbs: Iterable[Verb]) -> Iterable[dataclasses.Field[Any]]:
    seen: set[str] = set()
    for verb in verbs:
        for cls in verb.load().OPTIONS:
            for option in dataclasses.fields(cls):
                if option.name not in seen and not option.metadata["rule"].shell_only:
                    seen.add(option.name)
                    yield option


def _input(option: dataclasses.Field[Any]) -> str:
    rule = option.metadata["rule"]
    description = f"{rule.doc} [{' | '.join(rule.one_of)}]" if rule.one_of else rule.doc
    return (
        f"  {kebab(option.name)}:\n"
        f"    description: {_quoted(description)}\n"
        f"    required: false\n"
        f"    default: {_quoted(default_text(option))}\n"
    )


def _outputs(verbs: Iterable[Verb]) -> Iterable[str]:
    for verb in verbs:
        for name, description in verb.load().OUTPUTS.items():
            value = f"${{{{ steps.{verb.name}.outputs.{name} }}}}"
            yield f"  {name}:\n    description: {_quoted(description)}\n    value: {value}\n"


def _quoted(text: str) -> str:
    """A YAML double-quoted scalar; JSON's strings are a subset of it."""
    return json.dumps(text, ensure_ascii=False)
