"""What a step says to its runner: every text of a stranger's stays text."""

from __future__ import annotations

import html
import io
import re
from pathlib import Path

import pytest
from step import obeyed, read_outputs

from relay_client.errors import InternalError, UsageError
from relay_client.runner.commands import MAX_SUMMARY_BYTES, Commands, markdown_block, markdown_text
from relay_client.runner.context import read_context


class Log:
    """A Commands with its three outlets caught."""

    def __init__(self, folder: Path, github: bool = True) -> None:
        self.stream = io.StringIO()
        self.output_path, self.summary_path = folder / "output", folder / "summary"
        environment = {
            "GITHUB_ACTIONS": str(github).lower(),
            "GITHUB_OUTPUT": str(self.output_path),
            "GITHUB_STEP_SUMMARY": str(self.summary_path),
        }
        self.commands = Commands(read_context(environment), self.stream)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def summary(self) -> str:
        return self.summary_path.read_text(encoding="utf-8")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


@pytest.mark.parametrize(
    "hostile",
    [
        "::error::no",
        "  ::error::after blanks",
        "\t::set-output name=a::b",
        "\u00a0\u2003::error::after other blanks",
        "fine\n::error::second line",
        "fine\r::error::after a carriage return",
        "fine\r\n::add-mask::x",
        "fine\u2028::error::after a separator",
        "fine\x0b::error::after a tab that stands up",
        "##[error]old style",
        "in the middle ##[set-env name=A]b",
        "###[error]doubled",
        "####[[error]",
        ":::error::three colons",
        "::::error::four colons",
        "::stop-commands::x",
    ],
)
@pytest.mark.parametrize("github", [True, False])
def test_no_line_of_text_becomes_a_command(tmp_path: Path, github: bool, hostile: str) -> None:
    log = Log(tmp_path, github)
    log.commands.line(hostile)
    assert obeyed(log.text) == []


@pytest.mark.parametrize("kind", ["notice", "warning", "error"])
def test_an_annotation_is_one_command_whatever_is_in_it(log: Log, kind: str) -> None:
    getattr(log.commands, kind)("a\r\n::error::b %0A ##[error]c", title="t: a, b\n::error::%")
    (command,) = obeyed(log.text)
    assert command.name == kind
    assert command.data == "a%0D%0A::error::b %250A ##[error]c"
    assert command.properties == "title=t%3A a%2C b%0A%3A%3Aerror%3A%3A%25"


def test_an_error_may_name_its_file_and_line(log: Log) -> None:
    log.commands.error("no", title="t", file="a,b.py", line=3)
    assert log.text == "::error file=a%2Cb.py,line=3,title=t::no\n"


def test_off_github_an_annotation_is_a_plain_line(tmp_path: Path) -> None:
    log = Log(tmp_path, github=False)
    log.commands.warning("::error::x", title="t")
    assert log.text == "warning: ::error::x\n"
    assert obeyed(log.text) == []


def test_a_failure_stands_in_the_annotation_and_in_the_summary(log: Log) -> None:
    log.commands.failure(UsageError("It <broke>.", seen="```\n<script>", fix="mend it"))
    (command,) = obeyed(log.text)
    assert (command.name, command.properties) == ("error", "title=crcr%3A UsageError")
    assert command.data == "It <broke>.%0ASeen: ```%0A<script>%0AFix: mend it"
    assert log.summary.startswith("### ❌ It &lt;broke&gt;")
    assert "````text\nIt <broke>.\nSeen: ```\n<script>\nFix: mend it\n````\n" in log.summary


def test_nothing_in_a_stranger_s_output_is_obeyed_and_afterwards_commands_work_again(log: Log) -> None:
    with log.commands.foreign_output() as stream:
        stream.write("::error::no\n::stop-commands::\n::::\n##[error]no\nunfinished line")
    log.commands.notice("ours")
    assert [command.name for command in obeyed(log.text)] == ["notice"]


def test_the_word_that_ends_a_stranger_s_stretch_cannot_be_guessed(tmp_path: Path) -> None:
    words = set()
    for _ in range(20):
        log = Log(tmp_path)
        with log.commands.foreign_output():
            pass
        (word,) = re.findall(r"::stop-commands::(\w+)", log.text)
        assert f"\n::{word}::\n" in log.text
        assert len(word) >= 32
        words.add(word)
    assert len(words) == 20


def test_commands_work_again_even_when_the_stretch_ends_in_an_error(log: Log) -> None:
    with pytest.raises(ValueError, match="broken"), log.commands.foreign_output():
        raise ValueError("broken")
    log.commands.notice("ours")
    assert [command.name for command in obeyed(log.text)] == ["notice"]


def test_a_group_s_title_is_escaped_and_the_group_is_closed(log: Log) -> None:
    with log.commands.group("a\n::error::b"):
        log.commands.line("inside")
    assert log.text == "::group::a%0A::error::b\ninside\n::endgroup::\n"


def test_a_mask_is_one_command_and_off_github_nothing_is_printed(log: Log, tmp_path: Path) -> None:
    log.commands.mask("secret\n::error::x")
    assert log.text == "::add-mask::secret%0A::error::x\n"
    shell = Log(tmp_path, github=False)
    shell.commands.mask("secret")
    assert shell.text == ""


@pytest.mark.parametrize(
    "value",
    [
        "",
        "plain",
        "two\nlines",
        "a\nother=injected\n",
        "crcr_0123456789abcdef\nother=injected",
        "<<EOF\nEOF\nother=x",
        "name<<X",
        "carriage\rreturn",
        "ünï",
    ],
)
def test_an_output_is_read_back_as_one_value(log: Log, value: str) -> None:
    log.commands.output("first", value)
    log.commands.output("second", "2")
    text = log.output_path.read_bytes().decode("utf-8")
    assert read_outputs(text) == {"first": value, "second": "2"}


def test_the_delimiter_of_an_output_cannot_be_guessed(log: Log) -> None:
    log.commands.output("a", "x")
    log.commands.output("a", "x")
    delimiters = re.findall(r"<<(\w+)", log.output_path.read_text(encoding="utf-8"))
    assert len(set(delimiters)) == 2
    assert all(len(delimiter) >= 32 for delimiter in delimiters)


def test_text_that_is_not_unicode_does_not_stop_the_log(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.commands = Commands(
        read_context({"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(log.summary_path)}),
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8"),
    )
    log.commands.line("half a pair \ud800")
    log.commands.error("half a pair \ud800")
    log.commands.summary("half a pair \ud800")
    assert log.summary == "half a pair ?\n"


def test_without_an_output_file_on_github_the_fault_is_named() -> None:
    commands = Commands(read_context({"GITHUB_ACTIONS": "true"}), io.StringIO())
    with pytest.raises(InternalError, match="GITHUB_OUTPUT"):
        commands.output("a", "b")


def test_off_github_an_output_is_printed_and_no_summary_is_written(tmp_path: Path) -> None:
    log = Log(tmp_path, github=False)
    log.commands.output("commit", "5f")
    log.commands.summary("# no")
    assert log.text == "commit=5f\n"
    assert not log.summary_path.exists()


def test_a_summary_stays_below_github_s_limit_however_much_and_often_is_written(log: Log) -> None:
    log.commands.summary("first")
    for _ in range(30):
        log.commands.summary("ä" * MAX_SUMMARY_BYTES)
    data = log.summary_path.read_bytes()
    assert len(data) <= MAX_SUMMARY_BYTES
    assert data.startswith(b"first\n")
    assert "… cut here" in data.decode("utf-8")


def test_a_summary_that_just_fits_is_whole(log: Log) -> None:
    log.commands.summary("x" * (MAX_SUMMARY_BYTES - 1))
    assert log.summary_path.stat().st_size == MAX_SUMMARY_BYTES
    assert "cut" not in log.summary


HOSTILE_MARKDOWN = (
    "<script>alert(1)</script>",
    "<!-- comment",
    "[click](https://evil.invalid)",
    "![image](https://evil.invalid/p.png)",
    "**bold** _it_ ~~no~~ `code`",
    "a | b |\n|---|",
    "# heading",
    "- list\n\n1. list",
    "> quote",
    "@somebody and #12 and GH-12",
    "www.evil.invalid https://evil.invalid mail@evil.invalid",
    "back\\slash \\[x\\]",
    "&lt;b&gt; &#60;b&#62;",
    ":tada: $x^2$",
    "</summary></details>",
)


@pytest.mark.parametrize("text", HOSTILE_MARKDOWN)
def test_markdown_text_shows_every_character_and_means_none_of_them(text: str) -> None:
    escaped = markdown_text(text)
    assert html.unescape(escaped) == " ".join(text.split())
    assert not re.search(r"[\\`*_{}\[\]()+\-.!|~@:/<>$\n]", escaped)
    assert re.sub(r"&(#\d+|amp|lt|gt);", "", escaped).count("&") == 0
    assert re.sub(r"&#\d+;", "", escaped).count("#") == 0


@pytest.mark.parametrize("text", ["```\n</pre><script>", "`" * 50, "~~~", "", "a\n\n\nb", "```text\n```"])
def test_a_code_block_cannot_be_closed_from_inside(text: str) -> None:
    first, *inside, last = markdown_block(text).split("\n")
    fence = first[: -len("text")]
    assert first == fence + "text"
    assert last == fence
    assert set(fence) == {"`"}
    assert not any(fence in line for line in inside)
    assert "\n".join(inside) == text
