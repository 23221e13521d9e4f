"""Compiler caches: what is decided, what is read, and real compilers behind real caches."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any, Optional
from urllib.parse import quote

import pytest
from test_build_verbs import Job

from backend_ci.build import cache_settings as settings
from backend_ci.build.cache_settings import Situation, check_size, choose, decide, old, without_cache
from backend_ci.build.cache_statistics import Counted, read_ccache, read_sccache
from backend_ci.build.compiler_cache import CompilerCacheOptions, compiler_cache
from backend_ci.build.environment import RunEnvironment
from relay_client.documents.build import Build, CompilerCache
from relay_client.documents.document import load
from relay_client.errors import CommandFailed, UsageError
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext

CCACHE, SCCACHE = "/opt/bin/ccache", "/opt/bin/sccache"


def situation(tool: str = "ccache", **given: Any) -> Situation:
    facts: dict[str, Any] = {
        "tool": tool,
        "programs": {tool: f"/opt/bin/{tool}"},
        "torch_wraps": True,
        "environment": {},
        "roots": ("/work/repo", "/work/_temp/crcr"),
        "seed": "/seed",
        "private": "/work/_temp/crcr/compiler-cache/private",
        "wrappers": "/work/_temp/crcr/compiler-cache/compilers",
        "socket": "/tmp/crcr-x/sccache.sock",
        "trust": "pull-request",
        "size": "5G",
    }
    return Situation(**{**facts, **given})


def variables(tool: str = "ccache", **given: Any) -> dict[str, Optional[str]]:
    return dict(decide(situation(tool, **given)).variables)


BOTH = {"ccache": CCACHE, "sccache": SCCACHE}


@pytest.mark.parametrize(
    ("tool", "programs", "torch_wraps", "launcher", "compiler", "torch_may", "use_ccache"),
    [
        # PyTorch itself: CMake takes launchers, and must not take a ccache of its own choice.
        ("ccache", {"ccache": CCACHE}, None, CCACHE, None, None, None),
        ("ccache", BOTH, None, CCACHE, None, None, None),
        ("sccache", {"sccache": SCCACHE}, None, SCCACHE, None, None, "0"),
        ("sccache", BOTH, None, SCCACHE, None, None, "0"),
        # An extension: torch takes the tool by itself, where it would take the same one.
        ("ccache", {"ccache": CCACHE}, True, CCACHE, None, None, None),
        ("ccache", BOTH, True, CCACHE, None, None, None),
        ("sccache", {"sccache": SCCACHE}, True, SCCACHE, None, None, "0"),
        # It would take ccache, or nothing: compilers that are scripts, and no launcher beside them.
        ("sccache", BOTH, True, None, "c++", "1", "0"),
        ("ccache", {"ccache": CCACHE}, False, None, "c++", "1", "0"),
        ("sccache", {"sccache": SCCACHE}, False, None, "c++", "1", "0"),
    ],
)
def test_exactly_one_thing_starts_the_compiler(
    tool: str,
    programs: dict[str, str],
    torch_wraps: Optional[bool],
    launcher: Optional[str],
    compiler: Optional[str],
    torch_may: Optional[str],
    use_ccache: Optional[str],
) -> None:
    at = situation(tool, programs=programs, torch_wraps=torch_wraps)
    decided = decide(at)
    found = decided.variables
    assert {found[f"CMAKE_{language}_COMPILER_LAUNCHER"] for language in ("C", "CXX", "CUDA")} == {launcher}
    assert found.get("CXX") == (f"{at.wrappers}/{compiler}" if compiler else None)
    assert decided.scripts.get(f"{at.wrappers}/c++") == ((programs[tool], "c++") if compiler else None)
    assert (found["TORCH_NO_COMPILER_WRAPPER"], found["USE_CCACHE"]) == (torch_may, use_ccache)


def test_a_wrapper_stands_before_the_users_own_compiler() -> None:
    decided = decide(situation(torch_wraps=False, environment={"CXX": "/opt/llvm/bin/clang++", "CC": ""}))
    wrappers = situation().wrappers
    assert decided.scripts == {
        f"{wrappers}/cc": (CCACHE, "cc"),
        f"{wrappers}/clang++": (CCACHE, "/opt/llvm/bin/clang++"),
    }
    assert decided.variables["CXX"] == f"{wrappers}/clang++"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("-g0", "-g0")),
        ({"CFLAGS": " "}, ("-g0", "-g0")),
        ({"CFLAGS": "-O3"}, (None, None)),
        ({"CXXFLAGS": "-g"}, (None, None)),
    ],
)
def test_debug_information_is_left_out_unless_the_user_chose_flags(
    given: dict[str, str], expected: tuple[Optional[str], Optional[str]]
) -> None:
    found = variables(environment=given)
    assert (found.get("CFLAGS"), found.get("CXXFLAGS")) == expected


@pytest.mark.parametrize(
    ("trust", "remote", "layers", "remote_only"),
    [
        ("pull-request", "", "file:/seed|read-only=true", None),
        ("landed", "", "file:/seed|update-mtime=true", "1"),
        (
            "pull-request",
            "redis://cache.example",
            "file:/seed|read-only=true redis://cache.example|read-only=true",
            None,
        ),
        ("landed", "redis://cache.example", "file:/seed|update-mtime=true redis://cache.example", "1"),
    ],
)
def test_ccache_reads_the_seed_and_only_landed_code_fills_it(
    trust: str, remote: str, layers: str, remote_only: Optional[str]
) -> None:
    found = variables(trust=trust, remote=remote)
    assert found["CCACHE_REMOTE_STORAGE"] == layers
    assert found["CCACHE_REMOTE_ONLY"] == remote_only
    assert found["CCACHE_DIR"] == situation().private
    assert (found["CCACHE_NOHASHDIR"], found["CCACHE_COMPILERCHECK"]) == ("1", "content")
    assert (found["CCACHE_BASEDIR"], found["CCACHE_MAXSIZE"]) == ("/work", "5G")
    assert found["CCACHE_DISABLE"] is None
    assert not [name for name in found if name.startswith("SCCACHE_")]


def test_a_seed_with_a_blank_in_its_name_is_one_layer() -> None:
    assert variables(seed="/a b|c")["CCACHE_REMOTE_STORAGE"] == "file:/a%20b%7Cc|read-only=true"


@pytest.mark.parametrize(
    ("trust", "folder", "mode"),
    [("pull-request", situation().private, "READ_ONLY"), ("landed", "/seed", None)],
)
def test_sccache_has_a_server_of_its_own_and_only_landed_code_fills_the_seed(
    trust: str, folder: str, mode: Optional[str]
) -> None:
    found = variables("sccache", trust=trust)
    assert found["SCCACHE_DIR"] == folder
    assert found["SCCACHE_BASEDIRS"] == "/work/repo:/work/_temp/crcr"
    assert found["SCCACHE_SERVER_UDS"] == situation().socket
    assert found["SCCACHE_IDLE_TIMEOUT"] == "0"
    assert {found.get(f"SCCACHE_{name}_RW_MODE") for name in ("S3", "REDIS", "WEBDAV", "GHA")} == {mode}
    assert found["SCCACHE_GHA_ENABLED"] is found["SCCACHE_SERVER_PORT"] is None
    assert not [name for name in found if name.startswith("CCACHE_")]


@pytest.mark.parametrize(
    ("roots", "expected"),
    [
        (("/home/runner/work/r/r", "/home/runner/work/_temp/crcr"), "/home/runner/work"),
        (("/work", "/tmp/crcr"), "/work"),
        (("/work/r",), "/work/r"),
    ],
)
def test_the_base_directory_holds_the_run_but_not_the_machine(roots: tuple[str, ...], expected: str) -> None:
    assert settings.base_directory(roots) == expected


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("CXX", "ccache c++", "CXX: c++"),
        ("CC", "/usr/bin/sccache /usr/bin/gcc", "CC: /usr/bin/gcc"),
        ("CXX", "clang++ -m32", "CXX: clang++"),
    ],
)
def test_two_words_for_a_compiler_are_refused_with_the_line_to_change(
    name: str, value: str, fix: str
) -> None:
    with pytest.raises(UsageError) as caught:
        decide(situation(environment={name: value}))
    assert caught.value.exit_code == 2
    assert caught.value.seen == f"{name}={value}"
    assert caught.value.fix.startswith(fix)


@pytest.mark.parametrize(
    ("mode", "found", "expected"),
    [
        ("auto", ("ccache", "sccache"), "ccache"),
        ("auto", ("sccache",), "sccache"),
        ("auto", (), None),
        ("sccache", ("ccache", "sccache"), "sccache"),
        ("sccache", ("ccache",), None),
        ("ccache", ("sccache",), None),
    ],
)
def test_the_tool_is_the_one_asked_for(mode: str, found: tuple[str, ...], expected: Optional[str]) -> None:
    assert choose(mode, dict.fromkeys(found, "/x")) == expected


@pytest.mark.parametrize(
    ("tool", "version", "expected"),
    [
        ("ccache", "ccache version 4.14.2", False),
        ("ccache", "ccache version 4.8", False),
        ("ccache", "ccache version 4.5.1", True),
        ("ccache", "ccache version 10.0", False),
        ("sccache", "sccache 0.16.0", False),
        ("sccache", "sccache 0.9.1", True),
        ("sccache", "", True),
    ],
)
def test_a_tool_that_is_too_old_is_known(tool: str, version: str, expected: bool) -> None:
    assert old(tool, version) is expected


def test_a_cache_on_path_is_switched_off_unless_somebody_set_it_up() -> None:
    assert without_cache({}) == {"CCACHE_DISABLE": "1", "TORCH_NO_COMPILER_WRAPPER": "1", "USE_CCACHE": "0"}
    assert "USE_CCACHE" not in without_cache({"USE_CCACHE": "1"})
    assert without_cache({"CCACHE_DIR": "/x"}) == without_cache({"SCCACHE_BUCKET": "x"}) == {}


@pytest.mark.parametrize("size", ["5", "0G", "5 G", "5g", "5GiB", "-1G", "", "5G\n", "$(id)"])
def test_a_size_that_the_tools_read_differently_is_refused(size: str) -> None:
    check_size("512M")
    with pytest.raises(UsageError):
        check_size(size)


CCACHE_SAID = """\
cache_miss\t3
called_for_link\t7
direct_cache_hit\t10
direct_cache_miss\t4
local_storage_hit\t1
max_cache_size_kibibyte\t5242880
preprocessed_cache_hit\t2
preprocessed_cache_miss\t3
remote_storage_hit\t11
unsupported_compiler_option\t1
compile_failed\t1
"""
SCCACHE_SAID: dict[str, Any] = {
    "stats": {
        "compile_requests": 9,
        "requests_not_compile": 1,
        "requests_not_cacheable": 2,
        "cache_hits": {"counts": {"C/C++": 4, "CUDA": 1}, "adv_counts": {"c++ [gcc]": 4}},
        "cache_misses": {"counts": {"C/C++": 1}, "adv_counts": {}},
        "not_cached": {"-E": 2},
    },
    "cache_location": 'Local disk: "/tmp/x"',
}


def test_statistics_are_read() -> None:
    assert read_ccache(CCACHE_SAID) == Counted(hits=12, misses=3, uncached=2)
    assert read_sccache(json.dumps(SCCACHE_SAID)) == Counted(hits=5, misses=1, uncached=2)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", '{"stats": 3}', "ccache: error", "cache_miss\t-1", "cache_miss\tx", "{" * 9999],
)
def test_statistics_that_are_none_are_not_read(text: str) -> None:
    assert read_ccache(text) is None
    assert read_sccache(text) is None


@pytest.mark.parametrize("value", [-1, True, 1.5, "3", None, 10**30])
def test_a_count_that_is_none_is_not_read(value: object) -> None:
    said = {"stats": {**SCCACHE_SAID["stats"], "requests_not_cacheable": value}}
    assert read_sccache(json.dumps(said)) is None


@pytest.mark.parametrize(
    ("counted", "said"),
    [
        (Counted(0, 0, 0), "nothing was compiled through it"),
        (Counted(999, 1, 0), "999 hits, 1 misses, 99 % from the cache"),
        (Counted(4, 0, 2), "4 hits, 0 misses, 100 % from the cache, 2 not cacheable"),
    ],
)
def test_only_all_is_a_hundred_per_cent(counted: Counted, said: str) -> None:
    assert counted.describe() == said


# --- with real compilers -------------------------------------------------------------------------------------

SOURCE = 'const char *where(void) { return "here"; }\n'


def program(name: str) -> str:
    """A tool beside the interpreter (the development environment has both) or on PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = shutil.which(name, path=path)
    if found is None:
        assert sys.version_info < (3, 11), f"the development environment brings {name}, and it is not there"
        pytest.skip(f"the environment of the oldest Python has no {name}")
    return found


class Machine:
    """A machine that lives on, with a seed; each build gets a run folder and a workspace of its own."""

    def __init__(self, folder: Path, *tools: str) -> None:
        self.folder, self.bin, self.store = folder, folder / "bin", folder / "the seed"
        self.bin.mkdir()
        for tool in tools:
            (self.bin / tool).symlink_to(program(tool))
        self.said = io.StringIO()
        self.summary = folder / "summary.md"

    def build(
        self,
        mode: str,
        run: str,
        trust: str = "pull-request",
        *,
        text: str = SOURCE,
        command: str = "$LAUNCHER cc -c $PWD/a.c -o a.o",
        extra: Optional[dict[str, str]] = None,
        torch: Optional[Path] = None,
        size: str = "5G",
    ) -> Any:
        """Build one file in a workspace of the run; the statistics of its one phase, if there are any."""
        workspace, run_folder = self.folder / run / "workspace", self.folder / run / "temp" / "crcr"
        workspace.mkdir(parents=True, exist_ok=True)
        run_folder.mkdir(parents=True, exist_ok=True)
        (workspace / "a.c").write_text(text)
        variables = {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            **(extra or {}),
        }
        context = RunContext(on_github=True, environment=variables)
        environment = RunEnvironment(
            # No tool may be found beside the interpreter that runs the tests.
            self.folder / "python" / "python", run_folder, variables, Commands(context, self.said), 60.0, workspace
        )  # fmt: skip
        options = CompilerCacheOptions(
            compiler_cache=mode,
            compiler_cache_dir=self.store,
            trust=trust,
            compiler_cache_size=size,
        )
        with compiler_cache(options, environment, "build-backend", roots=(workspace,), torch=torch) as cache:
            launcher = cache.environment.environment.get("CMAKE_C_COMPILER_LAUNCHER", "")
            cache.environment.require(
                ["sh", "-ec", command], what="Failed.", fix="", cwd=workspace, extra={"LAUNCHER": launcher}
            )
        assert not (run_folder / "compiler-cache").exists()
        return cache.statistics[0] if cache.statistics else None

    def digest(self) -> str:
        """Of names and contents of everything in the seed."""
        total = hashlib.sha256()
        for path in sorted(self.store.rglob("*")):
            total.update(str(path.relative_to(self.store)).encode())
            if path.is_file():
                total.update(path.read_bytes())
        return total.hexdigest()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "ccache", "sccache")


def counts(statistics: Any) -> tuple[int, int]:
    return statistics.hits, statistics.misses


both_tools = pytest.mark.parametrize("tool", ["ccache", "sccache"])


@both_tools
def test_a_pull_request_hits_what_landed_code_left_from_another_folder(machine: Machine, tool: str) -> None:
    assert counts(machine.build(tool, "first", "landed")) == (0, 1)
    assert counts(machine.build(tool, "another/place", "landed")) == (1, 0)
    served = machine.build(tool, "a/third/place")
    assert counts(served) == (1, 0)
    assert (served.phase, served.tool, served.trust) == ("build-backend", tool, "pull-request")
    assert (machine.folder / "a/third/place/workspace/a.o").stat().st_size
    assert f"Compiler cache (build-backend): {tool}, 1 hits, 0 misses, 100 %" in machine.said.getvalue()
    assert f"{tool}, 1 hits, 0 misses, 100 %" in machine.summary.read_text()


@both_tools
def test_what_a_pull_request_compiles_reaches_nobody_else(machine: Machine, tool: str) -> None:
    machine.build(tool, "first", "landed")
    before = machine.digest()
    assert counts(machine.build(tool, "pull", text=SOURCE + "int more;\n")) == (0, 1)
    assert machine.digest() == before
    assert counts(machine.build(tool, "later", "landed", text=SOURCE + "int more;\n")) == (0, 1)


@both_tools
def test_without_a_seed_a_pull_request_makes_none(machine: Machine, tool: str) -> None:
    assert counts(machine.build(tool, "pull")) == (0, 1)
    assert not machine.store.exists()


# What a hostile build script may set before it calls the compiler.
TRICKS = {
    "writes by variables": "unset CCACHE_READONLY; export CCACHE_REMOTE_ONLY=1 CCACHE_RECACHE=1 CCACHE_RESHARE=1;",
    "writes over the layer": 'export CCACHE_RECACHE=1 CCACHE_REMOTE_ONLY=1 CCACHE_REMOTE_STORAGE="file:{url}/ccache";',
    "uses the seed as its own": 'export CCACHE_DIR="{seed}/ccache" CCACHE_REMOTE_STORAGE=;',
    "starts a server": 'export SCCACHE_DIR="{seed}/sccache" SCCACHE_SERVER_UDS=$PWD/own SCCACHE_LOCAL_RW_MODE=READ_WRITE;',
    "writes a file": 'echo evil > "{seed}/ccache/evil"; mkdir -p "{seed}/x/y"; echo evil > "{seed}/x/y/evil";',
}


@pytest.mark.parametrize("trick", TRICKS)
def test_what_a_hostile_build_script_writes_into_the_seed_is_taken_out(machine: Machine, trick: str) -> None:
    """Nothing new stays. (An entry that it destroys is lost: the next build misses.)"""
    tool = "sccache" if "server" in trick else "ccache"
    other = SOURCE + "int more;\n"
    for each in ("ccache", "sccache"):
        machine.build(each, "first", "landed")
    before = {path: path.read_bytes() for path in machine.store.rglob("*") if path.is_file()}
    words = {"seed": machine.store, "url": quote(str(machine.store))}
    command = TRICKS[trick].format(**words) + "$LAUNCHER cc -c $PWD/a.c -o a.o"
    if tool == "sccache":
        command += "; $LAUNCHER --stop-server > stopped"
    machine.build(tool, "pull", text=other, command=command)
    after = {path: path.read_bytes() for path in machine.store.rglob("*") if path.is_file()}
    assert set(after.items()) <= set(before.items())
    assert counts(machine.build(tool, "later", "landed", text=other)) == (0, 1)
    if trick != "writes by variables":
        assert "The build of a pull request wrote" in machine.said.getvalue()


def test_the_server_is_gone_after_the_build_even_when_the_build_fails(machine: Machine) -> None:
    with pytest.raises(CommandFailed):
        machine.build("sccache", "pull", command="$LAUNCHER cc -c a.c -o a.o; false")
    assert "1 misses" in machine.said.getvalue()
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(machine.folder).encode() in (process / "environ").read_bytes():
                left.append((process / "cmdline").read_bytes())
        except OSError:
            continue
    assert left == []


def test_a_server_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend_ci.build.cache_tools._SERVER_END_SECONDS", 0.1)
    machine = Machine(tmp_path)
    serve = (
        "import os, socket, time; s = socket.socket(socket.AF_UNIX); s.bind(os.environ['SCCACHE_SERVER_UDS']); "
        "s.listen(); open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    )
    (machine.bin / "sccache").write_text(
        '#!/bin/sh\n[ -z "$SCCACHE_START_SERVER" ] || exec '
        f'"{sys.executable}" -c "{serve}"\necho sccache 0.16.0\n'
    )
    (machine.bin / "sccache").chmod(stat.S_IRWXU)
    machine.build("sccache", "run", command='test -n "$LAUNCHER"')
    number = int((tmp_path / "run/temp/crcr/pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert "sccache gives no statistics" in machine.said.getvalue()


def test_two_servers_never_share_a_cache(machine: Machine) -> None:
    fcntl = pytest.importorskip("fcntl")
    machine.build("sccache", "first", "landed")
    before = machine.digest()
    with (machine.store / "sccache.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        statistics = machine.build("sccache", "second", "landed", text=SOURCE + "int more;\n")
    assert (counts(statistics), statistics.trust) == ((0, 1), "pull-request")
    assert machine.digest() == before
    assert "Another build writes to this cache" in machine.said.getvalue()


@both_tools
def test_the_seed_is_kept_at_its_size(machine: Machine, tool: str) -> None:
    # Data that does not compress, and more of it than may stay. A long string is what compilers read fastest.
    for number in range(3):
        data = "".join(f"\\{byte:03o}" for byte in hashlib.shake_128(bytes([number])).digest(600_000))
        machine.build(tool, "first", "landed", text=f'const char d{number}[] = "{data}";\n', size="1M")
    held = sum(path.stat().st_size for path in machine.store.rglob("*") if path.is_file())
    assert 500_000 < held < 1_200_000


def torch_of(folder: Path, text: str) -> Path:
    (folder / "torch" / "utils").mkdir(parents=True)
    (folder / "torch" / "utils" / "cpp_extension.py").write_text(text)
    return folder / "torch"


@both_tools
@pytest.mark.parametrize("torch", ["", "os.environ.get('TORCH_NO_COMPILER_WRAPPER')"], ids=["old", "new"])
def test_an_extension_goes_through_the_cache_with_every_torch(
    machine: Machine, tmp_path: Path, tool: str, torch: str
) -> None:
    """As torch's ninja rules do: what is first on PATH before $CXX, unless told not to."""
    command = """
        wrapper=; [ -n "$TORCH_NO_COMPILER_WRAPPER" ] || wrapper=ccache
        [ -z "$OLD" ] || wrapper=
        $wrapper "${CC:-cc}" -c $PWD/a.c -o a.o
    """
    if not torch:
        command = "OLD=1;" + command
    if tool == "sccache" and torch:
        assert "wrapper=ccache" in command  # and both are on PATH: the wrapper must have been switched off
    place = torch_of(tmp_path, torch)
    assert counts(machine.build(tool, "first", "landed", command=command, torch=place)) == (0, 1)
    assert counts(machine.build(tool, "other", command=command, torch=place)) == (1, 0)


@pytest.mark.parametrize(
    ("mode", "tools", "says", "annotated"),
    [
        ("auto", (), "ccache: not on PATH, sccache: not on PATH", False),
        ("ccache", ("sccache",), "ccache: not on PATH (needs ccache 4.8 or newer)", True),
        ("sccache", (), "sccache: not on PATH (needs sccache 0.14 or newer)", True),
        ("ccache", ("old",), "ccache: ccache version 3.7.7 (needs ccache 4.8 or newer)", True),
        ("auto", ("broken",), "sccache: its server does not start", True),
    ],
)
def test_a_cache_that_cannot_be_had_never_fails_a_build(
    tmp_path: Path, mode: str, tools: tuple[str, ...], says: str, annotated: bool
) -> None:
    machine = Machine(tmp_path)
    fakes = {"old": ("ccache", "ccache version 3.7.7"), "broken": ("sccache", "sccache 0.16.0")}
    for tool in tools:
        name, version = fakes.get(tool, (tool, f"{tool} 9.9.9"))
        (machine.bin / name).write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && echo '{version}'\n")
        (machine.bin / name).chmod(stat.S_IRWXU)
    command = 'test -z "$LAUNCHER"; echo built > a.o'
    assert machine.build(mode, "run", command=command, extra={"PATH": f"{machine.bin}:/usr/bin:/bin"}) is None
    assert (tmp_path / "run/workspace/a.o").read_text() == "built\n"
    said = machine.said.getvalue()
    assert says in said
    assert ("::warning title=Compiler cache::" in said) is annotated


def test_a_compiler_of_two_words_ends_the_build_before_it_starts(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    (machine.bin / "ccache").write_text("#!/bin/sh\necho ccache version 4.14\n")
    (machine.bin / "ccache").chmod(stat.S_IRWXU)
    with pytest.raises(UsageError):
        machine.build("ccache", "run", extra={"CXX": "ccache c++"}, command="echo built > a.o")
    assert not (tmp_path / "run/workspace/a.o").exists()
    machine.build("none", "run", extra={"CXX": "ccache c++"}, command="echo built > a.o")


def test_none_keeps_a_cache_on_path_out(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert (
        machine.build("none", "run", command='test "$CCACHE_DISABLE$TORCH_NO_COMPILER_WRAPPER" = 11') is None
    )


def test_a_compilers_own_error_is_told_as_without_a_cache(machine: Machine) -> None:
    with pytest.raises(CommandFailed) as caught:
        machine.build("ccache", "run", text="int x = ;\n")
    assert (caught.value.file, caught.value.line) == ("a.c", 1)


def test_the_verb_builds_through_the_cache_and_writes_down_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ccache").symlink_to(program("ccache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    job = Job(tmp_path)
    job.with_torch()
    (job.workspace / "a.c").write_text(SOURCE)
    command = '"$CC" -c "$PWD/a.c" -o a.o'
    given = ["--compiler-cache=auto", "--trust=landed", "--backend-command", command]
    assert [job.build_backend(*given), job.build_backend(*given)] == [0, 0]
    assert load(Build, job.run_dir).compiler_cache == (
        CompilerCache("build-backend", "ccache", "landed", hits=0, misses=1, uncached=0),
        CompilerCache("build-backend", "ccache", "landed", hits=1, misses=0, uncached=0),
    )
    assert (job.run_dir.parent / "crcr-compiler-cache" / "ccache").is_dir()
    assert "ccache, 1 hits, 0 misses, 100 % from the cache" in capsys.readouterr().out
