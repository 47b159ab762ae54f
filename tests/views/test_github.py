"""Workflow commands: the runner reads back what was meant, nothing foreign is a command, and
GitHub's limits are kept.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from provision.diagnostics import Diagnostic, Position, Severity, Span
from provision.errors import SourceError
from provision.sanitize import escape_control, escape_workflow_commands
from provision.views.diagnostics.github import MAX_ANNOTATIONS, MAX_SUMMARY_BYTES, annotate
from provision.views.diagnostics.repository_paths import Repository
from provision.views.markdown import escape_markdown
from tests.views.builders import Draft, draft
from tests.workflow import Command, commands

HERE = Repository(Path("/repo"), Path("/repo/sub"))
HOSTILE = (
    "a%0A::error::x",
    "a\r::stop-commands::x",
    "a\n::stop-commands::x\n",
    "::error::x",
    "##[error]x",
    "a,line=1::b",
    "a%250A%3A",
    "x\u2028::error::y\x85::error::z",
)


def at(file: str, line: int = 1, column: int = 1, end: tuple[int, int] | None = None) -> Span:
    last = end or (line, column + 3)
    return Span(file, Position(line, column, 0), Position(*last, 3))


def one(
    severity: Severity = Severity.ERROR, message: str = "m", where: Span | None = None, **more: str
) -> Diagnostic:
    return Diagnostic("PKG001", "a-name", severity, message, where or at("a.yaml"), **more)  # type: ignore[arg-type]


def told(
    *found: Diagnostic, summarized: bool = False, unread: tuple[tuple[str, SourceError], ...] = ()
) -> tuple[list[Command], str]:
    source: Draft = draft({"a.yaml": "abc\n"})
    written = annotate([(found, source)], unread, HERE, summarized=summarized)
    return commands(written.commands), written.summary


def test_a_finding_is_a_command() -> None:
    (command,), summary = told(
        one(message="what, and: 100%", why="because", help="do this", where=at("a.yaml", 3, 5))
    )
    assert command == Command(
        "error",
        {
            "file": "sub/a.yaml",
            "line": "3",
            "endLine": "3",
            "col": "5",
            "endColumn": "7",
            "title": "PKG001 a-name",
        },
        "what, and: 100%\nwhy: because\nhelp: do this",
    )
    assert summary == ""


@pytest.mark.parametrize(("end", "last"), [((2, 4), "2"), ((3, 1), "2"), ((2, 1), "1")])
def test_columns_are_left_out_over_several_lines(end: tuple[int, int], last: str) -> None:
    (command,), _ = told(one(where=at("a.yaml", 1, 5, end)))
    assert command.properties == {
        "file": "sub/a.yaml",
        "line": "1",
        "endLine": last,
        "title": "PKG001 a-name",
    }


def test_an_empty_place_has_one_column() -> None:
    (command,), _ = told(one(where=at("a.yaml", 1, 5, (1, 5))))
    assert (command.properties["col"], command.properties["endColumn"]) == ("5", "5")


def test_severities_have_their_kinds_and_come_in_order() -> None:
    found = [
        one(severity, severity.value)
        for severity in (Severity.INFO, Severity.WARNING, Severity.UNKNOWN, Severity.ERROR)
    ]
    assert [(command.name, command.data) for command in told(*found)[0]] == [
        ("error", "error"),
        ("warning", "warning"),
        ("notice", "unknown"),
        ("notice", "info"),
    ]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_and_values_are_read_back_as_they_are(hostile: str) -> None:
    unread = (hostile, SourceError(hostile, why=hostile))
    (first, second), _ = told(one(message=hostile, where=at(hostile)), unread=(unread,))
    assert (first.name, second.name) == ("error", "error")
    assert first.properties["file"] == second.properties["file"] == escape_control(f"sub/{hostile}")
    assert second.data == escape_control(hostile)


@settings(max_examples=200, deadline=None)
@given(some.text(), some.text(min_size=1).filter(lambda text: "\0" not in text))
def test_any_text_is_one_command(message: str, name: str) -> None:
    found, summary = told(
        one(message=message, where=at("x" + name)),
        one(message=message),
        *(one() for _ in range(MAX_ANNOTATIONS)),
        summarized=True,
    )
    assert len(found) == MAX_ANNOTATIONS
    assert {command.name for command in found} == {"error"}
    assert commands(summary) == []
    assert len(summary.splitlines()) == 5


def test_secrets_are_replaced() -> None:
    token = "hf_" + "Zq3" * 10
    found = [
        one(message=token, why=token, help=token, where=at(token))
        for _ in range(MAX_ANNOTATIONS + 1)
    ]
    written = annotate([(found, draft({}))], ((token, SourceError(token)),), HERE, summarized=True)
    assert token not in written.commands + written.summary


def test_what_github_would_not_show_goes_to_the_summary() -> None:
    found = [one(Severity.WARNING, f"w{number}") for number in range(MAX_ANNOTATIONS + 2)] + [
        one(message=f"e{number}") for number in range(MAX_ANNOTATIONS + 3)
    ]
    shown, summary = told(*found, summarized=True)
    assert [sum(command.name == kind for command in shown) for kind in ("error", "warning")] == [
        MAX_ANNOTATIONS,
        MAX_ANNOTATIONS,
    ]
    assert summary.startswith(
        f"### provision: {2 * MAX_ANNOTATIONS + 5} findings; GitHub does not annotate these 5"
        "\n\n- **error** PKG001 "
    )
    assert summary.count("\n- **warning** ") == 2
    everything, nothing = told(*found)
    assert (len(everything), nothing) == (2 * MAX_ANNOTATIONS + 5, "")


def test_files_that_cannot_be_read_count_too() -> None:
    unread = tuple((f"{number}.yaml", SourceError("gone")) for number in range(3))
    shown, summary = told(*(one() for _ in range(MAX_ANNOTATIONS)), summarized=True, unread=unread)
    assert len(shown) == MAX_ANNOTATIONS
    assert summary.count("\n- ") == 3


def test_a_summary_stays_within_its_limit() -> None:
    _, summary = told(*(one(message="é" * 400) for _ in range(3000)), summarized=True)
    assert len(summary.encode()) <= MAX_SUMMARY_BYTES
    listed = summary.count("\n- ")
    assert f"\n{3000 - MAX_ANNOTATIONS - listed} more are not listed" in summary


def test_a_file_elsewhere_is_named_in_the_message() -> None:
    (command,), _ = told(one(where=at("../../b.yaml", 2, 3)))
    assert command.properties == {"title": "PKG001 a-name"}
    assert command.data == "../../b.yaml:2:3: m"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_plain_lines_are_no_commands(hostile: str) -> None:
    text = escape_control(f"  {hostile}\n{hostile}\n\t{hostile}\nplain: a::b\n")
    assert commands(escape_workflow_commands(text)) == []
    assert "plain: a::b\n" in escape_workflow_commands(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("torch>=2.2", r"torch&gt;\=2\.2"),
        ("[a](http://x)", r"\[a\]\(http\:\/\/x\)"),
        ("a | b\n# c", r"a \| b\\n\# c"),
        ("@octocat `x` <img src=x>", r"@&#8203;octocat \`x\` &lt;img src\=x&gt;"),
        ("&lt;", r"&amp;lt\;"),
        ("![a](b) *c* _d_ ~e~ $f$", r"\!\[a\]\(b\) \*c\* \_d\_ \~e\~ \$f\$"),
    ],
)
def test_markdown_is_only_text(text: str, shown: str) -> None:
    assert escape_markdown(text) == shown
