"""`build.json`: the interpreter that holds torch, and what was put into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Optional

from relay_client.documents.manifest import Manifest
from relay_client.protocol import vocabulary as words
from relay_client.protocol.shape import member

PROVIDERS = ("overlay", "wheel", "source", "command")


@dataclass(frozen=True)
class Torch:
    """What the installed torch says of itself, asked in its own interpreter."""

    version: str = member("torch.__version__")
    git_version: str = member("torch.version.git_version")
    location: str = member("Folder of the imported package")


@dataclass(frozen=True)
class Wheel:
    """A wheel that was installed."""

    file: str = member("File name")
    sha256: str = member("Digest of the file", pattern=r"[0-9a-f]{64}", expects="a SHA-256 in hexadecimal")


@dataclass(frozen=True)
class Overlay:
    """What the overlay provider changed on top of the base wheel."""

    base_git_version: str = member("torch.version.git_version of the base wheel as installed")
    laid: tuple[str, ...] = member("Paths written or replaced")
    removed: tuple[str, ...] = member("Paths deleted")
    files_compared: int = member("Python files found equal, byte for byte, to the checkout", minimum=1)


@dataclass(frozen=True)
class BackendCheck:
    """What a backend was found to do, each in a process of its own: load, autoload, answer."""

    device: str = member("Name of the device that computed torch.ones(2) + 1")
    libraries: tuple[str, ...] = member("Native libraries that loaded with every symbol resolved")


@dataclass(frozen=True)
class Backend:
    """One backend extension as it was built and installed."""

    source: str = member("Folder it was built from")
    wheel: Optional[Wheel] = member("What was installed; null when the user's command did it", default=None)
    check: Optional[BackendCheck] = member("Null when the checks were switched off", default=None)


@dataclass(frozen=True)
class CompilerCache:
    """What a compiler cache did for one phase of the build."""

    phase: str = member("The verb that compiled", one_of=("build-pytorch", "build-backend"))
    tool: str = member("Which cache", one_of=("ccache", "sccache"))
    trust: str = member(
        "landed: what was compiled may serve later runs; pull-request: it was thrown away",
        one_of=("pull-request", "landed"),
    )
    hits: int = member("Compilations served from the cache", minimum=0)
    misses: int = member("Compilations that the compiler did, and that could be cached", minimum=0)
    uncached: int = member("Calls that the cache could not take", minimum=0)


@dataclass(frozen=True)
class Build:
    """What the build stage made."""

    FILE: ClassVar[str] = "build.json"
    VERSION: ClassVar[int] = 1
    WRITTEN_BY: ClassVar[str] = "build-pytorch"

    provider: str = member("How PyTorch was got", one_of=PROVIDERS)
    commit: str = member("What was built", pattern=words.SHA_PATTERN, expects=words.SHA_EXPECTS)
    interpreter: str = member("The Python that holds torch, absolute")
    torch: Torch = member("What it says of itself")
    wheel: Wheel = member("The PyTorch wheel that was installed")
    seconds: float = member("Wall time", minimum=0)
    overlay: Optional[Overlay] = member("Only with the overlay provider", default=None)
    backends: tuple[Backend, ...] = member("Extensions installed after it", default=())
    manifest: Optional[Manifest] = member(
        "What the wheel was built from; null if it came ready", default=None
    )
    reused: bool = member("Whether the wheel was built before, by an equal build", default=False)
    requirements: tuple[str, ...] = member("What was installed beside torch", default=())
    compiler_cache: tuple[CompilerCache, ...] = member(
        "Statistics per phase, where a compiler cache was used", default=()
    )
