"""Really runs a downstream's own workflow, as GitHub would for an event, with act on this machine.

What is emulated, what act does itself, and what this does not prove: `docs/act-vs-github.md`.
"""

from dispatch_lab.runner.act_log import JobResult, StepResult
from dispatch_lab.runner.preparation import JobIdentity, check_run_id
from dispatch_lab.runner.run import WorkflowRun, WorkflowRunner

__all__ = ["JobIdentity", "JobResult", "StepResult", "WorkflowRun", "WorkflowRunner", "check_run_id"]
