"""Findings as frames and as lines: exact places, nothing harmful, no secret."""

from __future__ import annotations

import re

import pytest

from provision.diagnostics import (
    Applicability,
    Diagnostic,
    Fix,
    Insert,
    Position,
    RelatedLocation,
    Replace,
    RouteLocation,
    RoutePart,
    Severity,
    Span,
)
from provision.views.diagnostics.text import (
    count_fixable,
    render_concise,
    render_findings,
    render_footer,
)
from provision.views.formatting import display_width
from tests.views.builders import Draft, agree, draft, stretch

RAW_CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
OURS = re.compile(r"\x1b\[[0-9;]*m")
TOKEN = "hf_" + "Zq3" * 10
SPEC = f"""apiVersion: provision/v1
name: trainer
extends: base.yaml
gpu: {{type: T4, count: 1}}
python: 3.10
packages:
  - transformers>=5.13
  - torch==2.11.*
training:
  framework: hf-trainer
  notes: "漢字漢字 here"
env:
  TOKEN: hunter2-hunter2
  URL: https://user:pw@host/x
  HF: {TOKEN}
long: "{"x" * 200} NEEDLE {"y" * 200}"
"""
FILES = {"a.yaml": SPEC, "base.yaml": 'cuda: "12.8"\ndriver: 535\n'}


def spec() -> Draft:
    training = SPEC[SPEC.index("framework") : SPEC.index("\nenv")]
    return draft(
        FILES,
        python=("a.yaml", "3.10"),
        packages__0=("a.yaml", "transformers>=5.13"),
        training__framework=("a.yaml", "hf-trainer"),
        driver=("base.yaml", "535"),
        gpu__type=("a.yaml", "T4"),
        env__TOKEN=("a.yaml", "hunter2-hunter2"),
        env__URL=("a.yaml", "https://user:pw@host/x"),
        env__HF__KEY=("a.yaml", "HF"),
        long=("a.yaml", "NEEDLE"),
        training=("a.yaml", training),
        notes=("a.yaml", "here"),
    )


def everything() -> list[Diagnostic]:
    at = RouteLocation
    return [
        Diagnostic(
            "PKG001",
            "trainer-needs-accelerate",
            Severity.ERROR,
            "transformers.Trainer needs accelerate, and no package here brings it",
            at(("packages", 0)),
            why="Trainer imports accelerate when it is built; without it the job stops with "
            "ImportError at its first line.",
            help="ask for the extra that brings it",
            related=(RelatedLocation(at(("training", "framework")), "this asks for Trainer"),),
            fix=Fix(
                'write "transformers[torch]>=5.13"',
                (Replace(at(("packages", 0)), "transformers[torch]>=5.13"),),
            ),
            source="made up for this test",
        ),
        Diagnostic(
            "YML003",
            "type-lost",
            Severity.ERROR,
            "3.10 is read as 3.1",
            at(("python",)),
            fix=Fix("quote it", (Replace(at(("python",)), '"3.10"'),)),
        ),
        Diagnostic(
            "GPU004",
            "driver-too-old",
            Severity.WARNING,
            "driver 535 is older than 580",
            at(("gpu", "type")),
            related=(RelatedLocation(at(("driver",)), "the driver comes from here"),),
            fix=Fix("choose an image with a newer driver", (), Applicability.MANUAL),
        ),
        Diagnostic(
            "SEC001",
            "secret-literal",
            Severity.ERROR,
            "a secret stands in the spec",
            at(("env", "TOKEN")),
            fix=Fix(
                "refer to it",
                (Replace(at(("env", "TOKEN")), "{env: TOKEN}"),),
                Applicability.UNSAFE,
            ),
        ),
        Diagnostic(
            "NET001",
            "user-in-address",
            Severity.WARNING,
            "a password in https://user:pw@host",
            at(("env", "URL")),
        ),
        Diagnostic("NTB001", "long-line", Severity.INFO, "far to the right", at(("long",))),
        Diagnostic(
            "MEM001",
            "no-row",
            Severity.UNKNOWN,
            "no row",
            at(("training",)),
            fix=Fix("add it", (Insert(("training",), "precision", "bf16"),)),
        ),
        Diagnostic("MEM002", "wide", Severity.INFO, "after wide characters", at(("notes",))),
    ]


@pytest.mark.parametrize(
    ("name", "color", "width"),
    [
        ("findings.txt", False, 80),
        ("findings-color.txt", True, 80),
        ("findings-narrow.txt", False, 44),
    ],
)
def test_golden(name: str, color: bool, width: int) -> None:
    agree(name, render_findings(everything(), spec(), color, width))


def test_golden_concise() -> None:
    agree("concise.txt", render_concise(everything(), spec()))


def test_rows_stay_within_the_width() -> None:
    for width in (44, 60, 80, 120):
        rows = render_findings(everything(), spec(), False, width, with_footer=False).splitlines()
        assert max(display_width(row) for row in rows) <= width


@pytest.mark.parametrize("color", [False, True])
def test_no_secret_is_shown(color: bool) -> None:
    text = render_findings(everything(), spec(), color, 80) + render_concise(everything(), spec())
    for secret in ("hunter2", "user:pw", TOKEN):
        assert secret not in text
    assert "***" in text


def test_a_secret_on_the_line_of_another_finding_is_masked() -> None:
    beside = Diagnostic(
        "SPC002",
        "odd",
        Severity.ERROR,
        f"what is {TOKEN}?",
        RouteLocation(("env", "HF"), RoutePart.KEY),
        why=TOKEN,
        help=TOKEN,
        source=TOKEN,
    )
    text = render_findings([beside], spec(), False, 80)
    assert TOKEN not in text
    assert "HF: ***" in text


def test_a_line_under_a_secret_finding_is_masked_in_other_findings_too() -> None:
    secret = everything()[3]
    beside = Diagnostic(
        "SPC002",
        "odd",
        Severity.ERROR,
        "odd",
        RouteLocation(("env", "TOKEN")),
        fix=Fix("x", (Replace(RouteLocation(("env", "TOKEN")), "7"),)),
    )
    assert "hunter2" in render_findings([beside], spec(), False, 80)
    assert "hunter2" not in render_findings([beside, secret], spec(), False, 80)


def test_only_the_block_of_a_secret_is_masked_around_it() -> None:
    files = {
        "a.yaml": "training: {framework: none}\nsecrets:\n  FIRST: hunter2\n  OTHER: hunter3\n"
    }
    source = draft(files, secrets=("a.yaml", "secrets"), secrets__OTHER=("a.yaml", "hunter3"))
    found = [
        Diagnostic("SPC007", "secret", Severity.ERROR, "odd", RouteLocation(route))
        for route in (("secrets",), ("secrets", "OTHER"))
    ]
    text = render_findings(found, source, False, 80)
    assert "training: {framework: none}" in text
    assert "FIRST: ***" in text
    assert "hunter" not in text


def test_the_body_of_a_private_key_is_masked() -> None:
    files = {
        "a.yaml": "key: |\n  -----BEGIN RSA PRIVATE KEY-----\n  MIIEbody\n  -----END RSA PRIVATE "
        "KEY-----\nnext: 1\n"
    }
    found = [
        Diagnostic("SPC002", "odd", Severity.ERROR, "odd", stretch(files, "a.yaml", needle))
        for needle in ("MIIEbody", "next")
    ]
    text = render_findings(found, Draft(files, {}), False, 80)
    assert "MIIEbody" not in text
    assert "next: 1" in text


HOSTILE = "\x1b[2J\x1b]0;pwned\x07\r\x9b31m\u202e\u200b\x00"


@pytest.mark.parametrize("color", [False, True])
def test_foreign_text_cannot_steer_the_terminal(color: bool) -> None:
    files = {f"a{HOSTILE}.yaml": f"name: {HOSTILE} end\nnext: {HOSTILE}\n"}
    name = next(iter(files))
    place = stretch(files, name, "end")
    bad = Diagnostic(
        "SPC001",
        "name",
        Severity.ERROR,
        HOSTILE + "\n" + HOSTILE,
        place,
        HOSTILE,
        HOSTILE,
        (RelatedLocation(stretch(files, name, "next"), HOSTILE),),
        Fix(HOSTILE, (Replace(place, HOSTILE),)),
        HOSTILE,
    )
    for text in (
        render_findings([bad], Draft(files, {}), color, 80),
        render_concise([bad], Draft(files, {})),
    ):
        assert RAW_CONTROL.search(OURS.sub("", text)) is None
        assert "\\x1b[2J" in text
        assert color or "\x1b" not in text


@pytest.mark.parametrize(
    ("line", "needle", "drawn", "marks"),
    [
        ("\tkey: 1", "1", "    key: 1", "         ^"),
        ("ab\tkey: 1", "key", "ab  key: 1", "    ^^^"),
        ("漢: 字x", "字", "漢: 字x", "    ^^"),
        ("e\u0301: x", "x", "e\u0301: x", "   ^"),
        ("😀: x", "x", "😀: x", "    ^"),
        ("a: \u202eb", "b", "a: \\u202eb", "         ^"),
    ],
)
def test_marks_stand_under_the_characters(line: str, needle: str, drawn: str, marks: str) -> None:
    files = {"a.yaml": line}
    found = Diagnostic("SPC001", "x", Severity.ERROR, "m", stretch(files, "a.yaml", needle))
    rows = render_findings([found], Draft(files, {}), False, 80).splitlines()
    assert rows[3:5] == [f"1 | {drawn}", f"  | {marks}"]


def test_a_place_beyond_the_text_still_makes_a_frame() -> None:
    beyond = Span("a.yaml", Position(99, 7, 999), Position(99, 8, 1000))
    text = render_findings(
        [Diagnostic("YML001", "x", Severity.ERROR, "m", beyond)],
        Draft({"a.yaml": "a: 1"}, {}),
        False,
        80,
    )
    assert "--> a.yaml:99:7" in text


def test_an_empty_span_gets_one_caret() -> None:
    here = Position(1, 3, 2)
    text = render_findings(
        [Diagnostic("YML001", "x", Severity.ERROR, "m", Span("a.yaml", here, here))],
        Draft({"a.yaml": "a:"}, {}),
        False,
        80,
    )
    assert "  |   ^\n" in text


def test_a_second_mark_far_away_on_the_same_line_is_told_by_column() -> None:
    files = {"a.yaml": f"a: [first, {'x' * 300}, second]"}
    found = Diagnostic(
        "SPC001",
        "x",
        Severity.ERROR,
        "m",
        stretch(files, "a.yaml", "first"),
        related=(RelatedLocation(stretch(files, "a.yaml", "second"), "and here"),),
    )
    assert "column 314: and here" in render_findings([found], Draft(files, {}), False, 80)


def test_a_huge_line_is_cropped_around_the_mark() -> None:
    files = {"a.yaml": "a: " + "x" * 500_000 + "NEEDLE" + "y" * 500_000}
    text = render_findings(
        [Diagnostic("SPC001", "x", Severity.ERROR, "m", stretch(files, "a.yaml", "NEEDLE"))],
        Draft(files, {}),
        False,
        80,
    )
    excerpt, marks = text.splitlines()[3:5]
    assert excerpt[marks.index("^") : marks.rindex("^") + 1] == "NEEDLE"
    assert len(excerpt) <= 80


def test_order_is_file_place_severity() -> None:
    files = {"b.yaml": "x: 1\ny: 2", "a.yaml": "x: 1"}
    one = [
        Diagnostic("SPC001", "x", Severity.INFO, "third", stretch(files, "b.yaml", "1")),
        Diagnostic("SPC001", "x", Severity.ERROR, "second", stretch(files, "b.yaml", "1")),
        Diagnostic("SPC001", "x", Severity.ERROR, "fourth", stretch(files, "b.yaml", "2")),
        Diagnostic("SPC001", "x", Severity.INFO, "first", stretch(files, "a.yaml", "1")),
    ]
    assert re.findall("first|second|third|fourth", render_concise(one, Draft(files, {}))) == [
        "first",
        "second",
        "third",
        "fourth",
    ]


def test_footer_counts() -> None:
    found = everything()
    assert (
        render_footer(found, count_fixable(found, spec()))
        == "Found 3 errors, 2 warnings, 1 unknown result and 2 notes. [*] 3 fixable with --fix."
    )
    assert render_footer(found[2:3], 0) == "Found 1 warning."
    assert render_footer([], 0) == "No findings."
    assert render_findings([], spec(), False, 80) == "No findings.\n"
    assert "Found" not in render_findings(found, spec(), False, 80, with_footer=False)


def test_a_change_far_along_a_line_is_shown() -> None:
    line = "targets: {" + "a: 1, " * 40 + "paths: old, " + "b: 2, " * 40 + "}"
    where = stretch({"a.yaml": line}, "a.yaml", "old")
    fix = Fix("write new", (Replace(where, "new"),), Applicability.SAFE)
    finding = Diagnostic("SPC001", "x", Severity.ERROR, "m", where, fix=fix)
    text = render_findings([finding], draft({"a.yaml": line}), color=False, width=80)
    removed, added = (
        [row for row in text.splitlines() if f" {sign} " in row][-1] for sign in ("-", "+")
    )
    assert ("paths: old" in removed, "paths: new" in added) == (True, True), text


def test_a_fix_that_the_source_cannot_take_is_not_counted_nor_marked() -> None:
    refused = Diagnostic(
        "SPC001", "x", Severity.ERROR, "m", RouteLocation(("python",)), fix=Fix("change it", ())
    )
    assert count_fixable([refused], spec()) == 0
    text = render_findings([refused], spec(), False, 80)
    assert "[*]" not in text
    assert "fix (by hand): change it" in text


def test_a_byte_order_mark_is_not_a_change() -> None:
    class Marked(Draft):
        def apply_fixes(self, fixes):
            return {name: "\ufeff" + text for name, text in super().apply_fixes(fixes).items()}

    files = {"a.yaml": "name: x\npython: 3.10\n"}
    place = stretch(files, "a.yaml", "3.10")
    found = Diagnostic(
        "YML003", "x", Severity.ERROR, "m", place, fix=Fix("quote", (Replace(place, '"3.10"'),))
    )
    text = render_findings([found], Marked(files, {}), False, 80)
    assert "1 -" not in text
    assert '2 + python: "3.10"' in text
