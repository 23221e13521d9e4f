"""`manifest.json`: everything that decides what a built wheel is. Two builds of equal manifests are the same build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Optional

from relay_client.protocol import vocabulary as words
from relay_client.protocol.shape import member


@dataclass(frozen=True)
class Named:
    """A name with its value."""

    name: str = member("Name")
    value: str = member("Value")


@dataclass(frozen=True)
class Recipe:
    """What goes into a build. Equal recipes give the same wheel, as far as anybody can know."""

    commit: str = member("Commit of the sources", pattern=words.SHA_PATTERN, expects=words.SHA_EXPECTS)
    submodules: tuple[Named, ...] = member("Path and commit of each submodule, by path")
    flags: tuple[Named, ...] = member("Environment variables that change what is built, by name")
    requirements: tuple[str, ...] = member("Build requirements beside those that the sources state")
    command: str = member("The user's own build command; empty for the default")
    compiler: str = member("First line of the C++ compiler's --version")
    python: str = member("Implementation and version of the interpreter, with its ABI flags")
    platform: str = member("Operating system, architecture and C library")
    image: str = member("Digest of the container image, if the user named it")
    recipe_version: int = member("Version of the way this toolkit builds", minimum=1)


@dataclass(frozen=True)
class Manifest:
    """A wheel and what it was made from."""

    FILE: ClassVar[str] = "manifest.json"
    VERSION: ClassVar[int] = 1
    WRITTEN_BY: ClassVar[str] = "build-pytorch"

    recipe: Recipe = member("What went in")
    file: str = member("File name of the wheel")
    sha256: str = member("Digest of the wheel", pattern=r"[0-9a-f]{64}", expects="a SHA-256 in hexadecimal")
    built_at: str = member("ISO-8601, UTC")
    seconds: float = member("How long the build took", minimum=0)
    jobs: int = member("Compilers at a time", minimum=1)
    peak_memory: Optional[int] = member("Largest process of the build in bytes", default=None)
