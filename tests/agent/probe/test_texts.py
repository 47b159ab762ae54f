"""No report, nor what is shown of it, holds a value in Python's own notation, and nothing passes
without an observation.
"""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.report_json import compact, expand
from provision.verification.report import Report
from provision.views.report import html
from provision.views.report import text as outcome
from tests.agent.probe.bench import Environment
from tests.python_values import python_values, strings_of

REPORTS = sorted((Path(__file__).parents[2] / "reports").rglob("*.json"))


def assert_readable(report: dict[str, Any]) -> None:
    """Raise AssertionError for a text of the report or of its views that holds a tuple, bytes or a
    list as Python writes it.
    """
    page = re.sub(
        r"<[^>]*>", " ", html.render_report(Report(report), "report").partition("<pre")[0]
    )
    shown = [
        outcome.render_report(Report(report), color=False, width=100_000, verbose=True),
        unescape(page),
    ]
    found = {value for text in (*strings_of(report), *shown) for value in python_values(text)}
    assert found == set()


def test_recorded_reports_and_their_views() -> None:
    assert len(REPORTS) > 25
    for path in REPORTS:
        assert_readable(expand(json.loads(path.read_text())))


def test_a_fresh_report_and_its_views(environment: Environment) -> None:
    _, report, _ = environment.add("alpha", "VALUE = 1\n").verify(tier="deep", env={"MODE": "fast"})
    assert_readable(report)
    assert [
        check["id"]
        for check in report["checks"]
        if check["status"] == "pass" and check["observed"] in (None, "", [], {})
    ] == []
    assert expand(compact(report)) == report


@pytest.mark.parametrize(
    "text",
    [
        "capability (8, 0)",
        "still: ()",
        "b'abc' came",
        'b"abc"',
        "one of ('a', None)",
        "found ['a', 'b']",
        "(1,)",
        "[(1, 2)]",
    ],
)
def test_pythons_notation_is_found(text: str) -> None:
    assert python_values(text)
    with pytest.raises(AssertionError):
        assert_readable(
            {
                "verdict": {"result": "failed"},
                "checks": [{"id": "T02", "title": text, "status": "fail"}],
            }
        )


@pytest.mark.parametrize(
    "text",
    [
        "capability 8.0",
        "main() and f(1, 2)",
        "(2 and 3 more)",
        "[4.7, 4.2]",
        "[skipped]",
        "a tab's 'x'",
        "(see T02)",
        "packages[torch]",
    ],
)
def test_plain_words_are_left_alone(text: str) -> None:
    assert python_values(text) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([], ""),
        ({"still": []}, ""),
        ({"loss": [4.7, 4.2]}, "loss: [4.7, 4.2]"),
        ({"a": {}}, "a: none"),
    ],
)
def test_nested_values_in_words(value: Any, shown: str) -> None:
    from provision.views.formatting import format_json_value

    assert format_json_value(value) == shown
