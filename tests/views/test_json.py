"""Findings as data: the shape, exact ranges, no secret."""

from __future__ import annotations

import json
import subprocess
import sys

from provision.diagnostics import (
    Applicability,
    Diagnostic,
    Fix,
    Insert,
    RelatedLocation,
    Replace,
    RouteLocation,
    Severity,
)
from provision.views.diagnostics.json import findings_to_json, merge_documents
from tests.views.builders import Draft, draft, stretch

FILES = {"a.yaml": 'name: "漢😀"\r\npython: 3.10\n', "b.yaml": "driver: 535\n"}


def spec() -> Draft:
    return draft(
        FILES, python=("a.yaml", "3.10"), driver=("b.yaml", "535"), name=("a.yaml", '"漢😀"')
    )


def found() -> list[Diagnostic]:
    return [
        Diagnostic(
            "YML003",
            "type-lost",
            Severity.ERROR,
            "3.10 is read as 3.1",
            RouteLocation(("python",)),
            "why",
            "help",
            (RelatedLocation(RouteLocation(("driver",)), "and this"),),
            Fix(
                "quote it",
                (Replace(RouteLocation(("python",)), '"3.10"'), Insert((), "cuda", '"12.8"')),
            ),
            "source",
        ),
        Diagnostic(
            "YML001",
            "odd",
            Severity.WARNING,
            "odd",
            stretch(FILES, "a.yaml", "name"),
            fix=Fix("by hand", (), Applicability.MANUAL),
        ),
    ]


def test_shape() -> None:
    document = findings_to_json(found(), spec())
    assert document["version"] == 1
    assert document["tool"]["name"] == "provision"
    counts = {"error": 1, "warning": 1, "unknown": 0, "info": 0}
    assert document["summary"] == {**counts, "fixable": 1, "suppressed": 0}
    first, second = document["diagnostics"]
    assert (first["id"], first["path"], first["range"]["start"]) == (
        "YML001",
        None,
        {"line": 1, "column": 1, "offset": 0},
    )
    assert second == {
        "id": "YML003",
        "name": "type-lost",
        "severity": "error",
        "message": "3.10 is read as 3.1",
        "why": "why",
        "help": "help",
        "source": "source",
        "file": "a.yaml",
        "document": 0,
        "path": ["python"],
        "range": {
            "start": {"line": 2, "column": 9, "offset": 20},
            "end": {"line": 2, "column": 13, "offset": 24},
        },
        "related": [
            {
                "message": "and this",
                "file": "b.yaml",
                "range": {
                    "start": {"line": 1, "column": 9, "offset": 8},
                    "end": {"line": 1, "column": 12, "offset": 11},
                },
            }
        ],
        "fix": {
            "title": "quote it",
            "applicability": "safe",
            "applies": True,
            "edits": [
                {
                    "kind": "replace",
                    "file": "a.yaml",
                    "range": {
                        "start": {"line": 2, "column": 9, "offset": 20},
                        "end": {"line": 2, "column": 13, "offset": 24},
                    },
                    "text": '"3.10"',
                },
                {"kind": "insert", "path": [], "key": "cuda", "text": '"12.8"'},
            ],
        },
    }
    assert json.loads(json.dumps(document)) == document


def test_columns_count_code_points() -> None:
    wide = Diagnostic("SPC001", "x", Severity.INFO, "m", RouteLocation(("name",)))
    stretch_ = findings_to_json([wide], spec())["diagnostics"][0]["range"]
    assert (stretch_["start"]["column"], stretch_["end"]["column"]) == (7, 11)


def test_secrets_are_redacted() -> None:
    token = "hf_" + "Zq3" * 10
    place = stretch(FILES, "a.yaml", "name")
    leaky = Diagnostic(
        "SEC001",
        "x",
        Severity.ERROR,
        token,
        place,
        token,
        token,
        (RelatedLocation(place, token),),
        Fix(token, (Replace(place, token),)),
        token,
    )
    assert token not in json.dumps(findings_to_json([leaky], spec()))


def test_joined_adds_up() -> None:
    both = merge_documents(
        [findings_to_json(found(), spec()), findings_to_json(found()[:1], spec())]
    )
    assert both["summary"]["error"] == 2
    assert both["summary"]["fixable"] == 2
    assert len(both["diagnostics"]) == 3


def test_drawing_libraries_stay_unloaded() -> None:
    program = (
        "import sys, provision.views.diagnostics.json; sys.exit(any(name in sys.modules for "
        "name in ('rich', 'jinja2')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
