"""The shipped JSON Schema takes every report that the probe writes, and none that is damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from provision.agent.probe.checks import CHECKS
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.model import (
    Judgement,
    Proof,
    ReadingClass,
    SelectedCheck,
    Status,
    Threshold,
    Tier,
    Verdict,
)
from provision.agent.probe.readings import READING_CLASSES
from provision.agent.probe.redactor import Redactor
from provision.agent.probe.report import JudgedCheck, make_report
from provision.agent.probe.report_json import compact, expand, to_canonical_json
from provision.agent.probe.supervisor import StageRun
from provision.assets import find_asset
from tests.views.builders import failed, verified

REPORTS = sorted((Path(__file__).parents[2] / "reports").rglob("*.json"))
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    found = json.loads(find_asset("templates/report.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


def made(document: Callable[..., dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """A report with a check of every status, a reading under every pattern, a stage that ended well
    and one that was killed.
    """
    statuses = list(Status) * (len(CHECKS) // len(Status) + 1)
    checks = []
    for check, status in zip(CHECKS, statuses, strict=False):
        told = Judgement(
            status,
            "said",
            {"a": 1},
            [1, None],
            "why",
            "mend it",
            check.threshold or Threshold(1.5, "u", "own choice"),
        )
        calm = replace(told, cause=None, fix=None) if status in (Status.PASS, Status.SKIP) else told
        checks.append(
            JudgedCheck(
                SelectedCheck(check, check.id, check.title, None, status is not Status.SKIP),
                calm,
                0.25,
            )
        )
    seen = {pattern.replace("*", "some"): 1 for pattern in READING_CLASSES} | {
        "_packages.installed": {"torch": "2.0"}
    }
    runs = [
        StageRun("host", 0, None, 0.1, 0.1, 12.5, False, ""),
        StageRun("torch", None, "SIGKILL", 240.0, 3.0, 900.0, True, "the end"),
    ]
    expected = parse_expectations(
        document(packages=[{"name": "torch", "version": "2.1"}], **changes)
    )
    return make_report(expected, checks, seen, runs, Redactor(), partial=False)


def test_a_report_with_every_status_fits_whole_and_brief(
    schema: Draft202012Validator, document: Callable[..., dict[str, Any]]
) -> None:
    report = made(document)
    assert {check["status"] for check in report["checks"]} == {status.value for status in Status}
    for form in (report, compact(report)):
        schema.validate(json.loads(to_canonical_json(form)))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_every_report_that_is_kept_fits(schema: Draft202012Validator, path: Path) -> None:
    document = json.loads(path.read_bytes())
    schema.validate(document)
    schema.validate(compact(expand(document)))


@pytest.mark.parametrize("report", [verified(), failed()])
def test_the_samples_of_other_tests_fit(
    schema: Draft202012Validator, report: dict[str, Any]
) -> None:
    schema.validate(report)


def _set(*route: Any, value: Any) -> Change:
    def change(document: dict[str, Any]) -> None:
        at: Any = document
        for part in route[:-1]:
            at = at[part]
        at[route[-1]] = value

    return change


def _drop(*route: Any) -> Change:
    def change(document: dict[str, Any]) -> None:
        at: Any = document
        for part in route[:-1]:
            at = at[part]
        del at[route[-1]]

    return change


DAMAGE: list[Change] = [
    *(
        _drop(part)
        for part in (
            "schema",
            "tool",
            "subject",
            "spec",
            "lock",
            "tier",
            "readings",
            "checks",
            "stages",
            "packages",
            "verdict",
            "digests",
        )
    ),
    *(_drop("checks", 0, field) for field in ("id", "title", "status", "message")),
    *(_drop("verdict", field) for field in ("result", "counts", "sentence", "first_cause")),
    *(_drop("stages", 0, field) for field in ("name", "wall_s", "exit")),
    _set("schema", value="provision.report/2"),
    _set("more", value=1),
    _set("tier", value="slow"),
    _set("checks", 0, "status", value="passed"),
    _set("checks", 0, "status", value=None),
    _set("checks", 0, "message", value=None),
    _set("checks", 0, "required", value="yes"),
    _set("checks", 0, "seconds", value=-1),
    _set("checks", 0, "fixx", value="typing error"),
    _set("checks", 0, "id", value="h1"),
    _set("checks", 0, "threshold", value={"value": "2", "unit": "bytes"}),
    _set("checks", 0, "causes", value=[1]),
    _set("checks", value={}),
    _set("readings", value={"important": {"os.id": "debian"}}),
    _set("readings", value={"identity": ["os.id"]}),
    _set("readings", value=[{"key": "os.id", "value": 1}]),
    _set("readings", value=[{"key": "os.id", "class": "identity"}]),
    _set("stages", 0, "timed_out", value="no"),
    _set("verdict", "result", value="green"),
    _set("verdict", "counts", value={"pass": 1}),
    _set("digests", "identity", value="sha256:short"),
    _set("digests", "report", value=None),
    _set("subject", "created_utc", value="yesterday"),
    _set("subject", "simulated", value="no"),
    _set("packages", "locked", value=-1),
    _set("packages", "differences", value=[{"name": "torch"}]),
]


@pytest.mark.parametrize("place", range(len(DAMAGE)))
def test_a_damaged_report_does_not(
    schema: Draft202012Validator, document: Callable[..., dict[str, Any]], place: int
) -> None:
    report = json.loads(to_canonical_json(compact(made(document))))
    DAMAGE[place](report)
    assert not schema.is_valid(report)


@pytest.mark.parametrize(
    ("route", "known"),
    [
        (("$defs", "check", "properties", "status"), Status),
        (("$defs", "reading", "properties", "class"), ReadingClass),
        (("properties", "readings", "oneOf", 0, "propertyNames"), ReadingClass),
        (("properties", "tier"), Tier),
        (("properties", "subject", "properties", "proof"), Proof),
        (("properties", "verdict", "properties", "result"), Verdict),
    ],
)
def test_its_words_are_those_of_the_probe(
    schema: Draft202012Validator, route: tuple[Any, ...], known: type[Enum]
) -> None:
    at: Any = schema.schema
    for part in route:
        at = at[part]
    assert at["enum"] == [one.value for one in known]


def test_the_command_prints_it() -> None:
    argv = [str(Path(sys.executable).parent / "provision"), "schema", "report"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout == find_asset("templates/report.schema.json").read_text(encoding="utf-8")
