"""Every error a user can meet, as one tree. Each leaf has its own exit code.

CrcrError
├── UsageError ················· 2   the command line or an input is wrong
├── NothingToRun ··············· 3   the event asks for no test run (`crcr receive --exit-code` only)
├── NotReady ··················· 4   `crcr doctor` found what keeps results from showing
├── DocumentError ·············· 9   a document of the run folder is missing, unreadable or of another version
├── EventError                       what arrived is not a dispatch we can serve
│   ├── NoEvent ················ 10  there is no event file
│   ├── NoDispatchPayload ······ 11  the event carries no client_payload
│   ├── BadEventField ·········· 12  one field of the event is wrong
│   ├── EventTooLarge ·········· 13  larger than GitHub delivers
│   └── BadCondition ··········· 14  `when:` cannot be understood
├── TokenError
│   ├── NoTokenPermission ······ 20  the job may not ask for an OIDC token
│   └── TokenUnavailable ······· 21  the token service did not answer with a token
├── CheckoutError
│   ├── RemoteUnreachable ······ 30  git could not reach the remote
│   ├── CommitNotFound ········· 31  the remote does not have the commit
│   ├── WrongCommit ············ 32  the working tree is not at the commit that was asked for
│   ├── RateLimited ············ 33  the server wants a login, or fewer requests
│   ├── SubmodulePinMissing ···· 34  upstream pins a commit that its submodule does not have
│   ├── CheckoutDiskFull ······· 35  the disk ran full while git wrote
│   └── BadBundle ·············· 36  the source bundle is not what it must be
├── BuildError
│   ├── CommandFailed ·········· 40  a build or install command failed
│   ├── WheelNotFound ·········· 41  no file, or more than one, matches the wheel that was named
│   ├── WrongTorch ············· 42  the installed torch is not the dispatched commit
│   ├── NotOverlayable ········· 43  the change cannot be laid over a ready wheel
│   ├── BackendBroken ·········· 44  the backend was built, and does not work with the torch under test
│   ├── OutOfMemory ············ 45  the machine ended a compiler for want of memory
│   ├── DiskFull ··············· 46  there is no room for the build, or it ran out
│   ├── RequirementsUnsatisfiable 47 no set of packages meets what is required
│   ├── TorchChanged ··········· 48  the torch under the backend is no longer the one that was built
│   └── BuildBusy ·············· 49  another build holds the same wheel for too long
├── TestError
│   ├── NothingSelected ········ 50  no test fits the selection
│   ├── TestsFailed ············ 51  a test failed, crashed or was lost
│   ├── TestRunBroken ·········· 52  the test session itself did not work
│   ├── LintFindings ··········· 53  test files break a rule, or the list of exceptions grew
│   ├── BadSkipList ············ 54  a skip list cannot be read, or says what cannot be kept
│   └── BadCapabilities ········ 55  the backend's stated capabilities cannot be read, or do not fit this PyTorch
├── ReportError
│   ├── RelayUnreachable ······· 60  the callback could not be delivered; it waits in the outbox
│   ├── RelayRefused ··········· 61  the relay answered that it does not take the callback
│   ├── VerdictNotSuccess ······ 62  reported; the run did not succeed
│   ├── BadBaseline ············ 63  the baseline cannot be read
│   └── BadOutbox ·············· 64  a letter of the outbox is not one that may be sent
└── InternalError ·············· 70  a fault of this tool

An error says what happened, what we saw, and the exact line to change. Text in `seen` may come from
a stranger: whoever prints it escapes it for the place it is printed to.
"""

from __future__ import annotations


class CrcrError(Exception):
    """Base of all errors. `exit_code` is the process's; the three texts are for a person.

    `file` and `line` (from 1) say where in the user's sources it happened, if it happened there.
    """

    exit_code = 70

    def __init__(self, what: str, *, seen: str = "", fix: str = "", file: str = "", line: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.seen = seen
        self.fix = fix
        self.file = file
        self.line = line

    def text(self) -> str:
        """The whole error as lines: what happened, what we saw, what to change."""
        lines = [self.what]
        if self.seen:
            lines.append(f"Seen: {self.seen}")
        if self.fix:
            lines.append(f"Fix: {self.fix}")
        return "\n".join(lines)


class UsageError(CrcrError):
    exit_code = 2


class NothingToRun(CrcrError):
    exit_code = 3


class NotReady(CrcrError):
    exit_code = 4


class DocumentError(CrcrError):
    exit_code = 9


class EventError(CrcrError):
    """What arrived is not a dispatch we can serve."""


class NoEvent(EventError):
    exit_code = 10


class NoDispatchPayload(EventError):
    exit_code = 11


class BadEventField(EventError):
    exit_code = 12


class EventTooLarge(EventError):
    exit_code = 13


class BadCondition(EventError):
    exit_code = 14


class TokenError(CrcrError):
    """No OIDC token could be had."""


class NoTokenPermission(TokenError):
    exit_code = 20


class TokenUnavailable(TokenError):
    exit_code = 21


class CheckoutError(CrcrError):
    """The commit could not be checked out."""


class RemoteUnreachable(CheckoutError):
    exit_code = 30


class CommitNotFound(CheckoutError):
    exit_code = 31


class WrongCommit(CheckoutError):
    exit_code = 32


class RateLimited(CheckoutError):
    exit_code = 33


class SubmodulePinMissing(CheckoutError):
    exit_code = 34


class CheckoutDiskFull(CheckoutError):
    exit_code = 35


class BadBundle(CheckoutError):
    exit_code = 36


class BuildError(CrcrError):
    """PyTorch or the backend could not be built or installed."""


class CommandFailed(BuildError):
    exit_code = 40


class WheelNotFound(BuildError):
    exit_code = 41


class WrongTorch(BuildError):
    exit_code = 42


class NotOverlayable(BuildError):
    exit_code = 43


class BackendBroken(BuildError):
    exit_code = 44


class OutOfMemory(BuildError):
    exit_code = 45


class DiskFull(BuildError):
    exit_code = 46


class RequirementsUnsatisfiable(BuildError):
    exit_code = 47


class TorchChanged(BuildError):
    exit_code = 48


class BuildBusy(BuildError):
    exit_code = 49


class TestError(CrcrError):
    """The tests did not give the evidence that success needs."""

    __test__ = False  # not a pytest class


class NothingSelected(TestError):
    exit_code = 50


class TestsFailed(TestError):
    exit_code = 51


class TestRunBroken(TestError):
    exit_code = 52


class LintFindings(TestError):
    exit_code = 53


class BadSkipList(TestError):
    exit_code = 54


class BadCapabilities(TestError):
    exit_code = 55


class ReportError(CrcrError):
    """The result did not arrive, or it is not a success."""


class RelayUnreachable(ReportError):
    exit_code = 60


class RelayRefused(ReportError):
    exit_code = 61


class VerdictNotSuccess(ReportError):
    exit_code = 62


class BadBaseline(ReportError):
    exit_code = 63


class BadOutbox(ReportError):
    exit_code = 64


class InternalError(CrcrError):
    exit_code = 70
