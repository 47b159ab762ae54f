"""The page of a finding: nothing lost between its forms, nothing wider than asked for."""

from __future__ import annotations

import json

import pytest

from provision.commands.explain import all_pages
from provision.diagnostics import Severity
from provision.views.formatting import display_width
from provision.views.rule_page import RulePage, render_text, to_json

MADE = RulePage(
    "ABC001",
    "made-up",
    Severity.WARNING,
    "A summary.",
    "A description.",
    "# ABC001 made-up\n\nSeverity: warning\n\nA summary that\ngoes on.\n\n- one point that "
    "is\n  long\n- another\n\n```yaml\ngpu: L4\n\n# kept\n```\n\nLast.\n",
    ("somewhere",),
    ("bad: 1\n",),
    ("good: 1\n",),
)


def test_paragraphs_are_wrapped_and_specs_are_not() -> None:
    assert render_text(MADE, False, 20) == (
        "ABC001 made-up\n\nSeverity: warning\n\nA summary that goes\non.\n\n- one point "
        "that is\n  long\n- another\n\n    gpu: L4\n\n    # kept\n\nLast.\n"
    )


def test_only_headings_are_coloured() -> None:
    told = render_text(MADE, True, 80)
    assert told.count("\x1b[") == 2
    assert told.startswith("\x1b[1mABC001 made-up\x1b[0m\n")


def test_data_holds_the_whole_page() -> None:
    told = to_json(MADE)
    assert told["examples"] == {"bad": ["bad: 1\n"], "good": ["good: 1\n"]}
    assert (told["version"], told["id"], told["severity"], told["sources"]) == (
        1,
        "ABC001",
        "warning",
        ["somewhere"],
    )
    assert told["markdown"] == MADE.markdown
    assert json.loads(json.dumps(told)) == told


def test_every_page_is_told_whole(subtests: pytest.Subtests) -> None:
    for page in all_pages():
        with subtests.test(page.id):
            told = render_text(page, False, 60)
            said = " ".join(told.split())
            assert page.name in told
            assert "```" not in told
            assert " ".join(page.description.split()) in said
            for spec in (*page.bad, *page.good):
                assert all(f"    {line}".rstrip() in told for line in spec.strip().splitlines())
            prose = [line for line in told.splitlines() if not line.startswith("    ")]
            assert max(map(display_width, prose)) <= 60
