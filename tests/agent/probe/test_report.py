"""The rules of the verdict, the digests, and the canonical spelling."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.core.files import write_atomically
from provision.agent.probe.checks import CHECKS
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.model import (
    Judgement,
    Reading,
    ReadingClass,
    SelectedCheck,
    Status,
    Verdict,
)
from provision.agent.probe.redactor import Redactor
from provision.agent.probe.report import (
    EXIT_CODES,
    JudgedCheck,
    identity_digest,
    make_report,
    result_of,
)
from provision.agent.probe.report_json import (
    canonical_digest,
    to_canonical_json,
)
from provision.verification import read_report


def judged(*pairs: tuple[str, bool]) -> list[JudgedCheck]:
    return [
        JudgedCheck(
            SelectedCheck(check, check.id, check.title, None, required),
            Judgement(Status(status), "said"),
            0.1,
        )
        for check, (status, required) in zip(CHECKS, pairs, strict=False)
    ]


@pytest.mark.parametrize(
    ("pairs", "partial", "result"),
    [
        ([("pass", True), ("warn", True), ("skip", True)], False, Verdict.VERIFIED),
        ([("pass", True), ("unknown", False), ("warn", False)], False, Verdict.VERIFIED),
        ([("pass", True), ("unknown", True)], False, Verdict.UNVERIFIED),
        ([("unknown", True), ("fail", True)], False, Verdict.FAILED),
        ([("pass", True)], True, Verdict.UNVERIFIED),
        ([("fail", True)], True, Verdict.FAILED),
    ],
)
def test_results(pairs: list[tuple[str, bool]], partial: bool, result: Verdict) -> None:
    assert result_of(judged(*pairs), partial) is result


def test_every_result_has_an_exit_code() -> None:
    assert EXIT_CODES == {
        Verdict.VERIFIED: 0,
        Verdict.SIMULATED: 0,
        Verdict.FAILED: 1,
        Verdict.ERROR: 2,
        Verdict.UNVERIFIED: 3,
    }


@pytest.mark.parametrize(
    ("pairs", "partial", "result"),
    [
        ([("pass", True)], False, Verdict.SIMULATED),
        ([("pass", True)], True, Verdict.UNVERIFIED),
        ([("unknown", True)], False, Verdict.UNVERIFIED),
        ([("fail", True)], False, Verdict.FAILED),
    ],
)
def test_where_not_all_is_real_what_would_be_verified_is_simulated(
    document: Callable[..., dict[str, Any]],
    pairs: list[tuple[str, bool]],
    partial: bool,
    result: Verdict,
) -> None:
    expected = parse_expectations({**document(), "simulated": ["gpu: an L4 that is not there"]})
    report = make_report(expected, judged(*pairs), {}, [], Redactor(), partial=partial)
    assert report["verdict"]["result"] == result.value
    assert report["subject"]["simulated"] == ["gpu: an L4 that is not there"]
    assert ("simulated: gpu: an L4 that is not there" in report["verdict"]["sentence"]) is (
        result is Verdict.SIMULATED
    )


def test_a_simulated_report_is_no_proof_outside_a_sandbox(
    document: Callable[..., dict[str, Any]],
) -> None:
    told = make_report(
        parse_expectations({**document(), "simulated": ["x"]}),
        judged(("pass", True)),
        {},
        [],
        Redactor(),
        partial=False,
    )
    report = read_report(json.dumps(told).encode(), "report.json")
    assert (report.exit_code, report.exit_code_in_sandbox) == (3, 0)
    failed = make_report(
        parse_expectations({**document(), "simulated": ["x"]}),
        judged(("fail", True)),
        {},
        [],
        Redactor(),
        partial=False,
    )
    assert read_report(json.dumps(failed).encode(), "report.json").exit_code_in_sandbox == 1


def test_the_first_required_failure_is_the_cause(document: Callable[..., dict[str, Any]]) -> None:
    checks = judged(("fail", False), ("unknown", True), ("fail", True), ("fail", True))
    report = make_report(parse_expectations(document()), checks, {}, [], Redactor(), partial=False)
    assert report["verdict"]["first_cause"] == CHECKS[2].id
    assert "(and 1 more)" in report["verdict"]["sentence"]
    assert report["verdict"]["counts"] == {"pass": 0, "fail": 3, "warn": 0, "skip": 0, "unknown": 1}


def test_a_secret_does_not_break_the_structure_of_a_report(
    document: Callable[..., dict[str, Any]],
) -> None:
    report = make_report(
        parse_expectations(document()),
        judged(("pass", True)),
        {"os.id": "pass", "host.kernel": "pass"},
        [],
        Redactor(["pass", "host"]),
        partial=False,
    )
    assert report["checks"][0]["status"] == "pass"
    assert report["checks"][0]["group"] == "host"
    assert [reading["value"] for reading in report["readings"]] == ["<redacted>", "pass"]


def test_identity_covers_identity_readings_only() -> None:
    base = [
        Reading("os.id", "debian", ReadingClass.IDENTITY),
        Reading("host.kernel", "6.1", ReadingClass.CONTEXT),
    ]
    other_kernel = [base[0], Reading("host.kernel", "6.2", ReadingClass.CONTEXT)]
    other_system = [Reading("os.id", "ubuntu", ReadingClass.IDENTITY), base[1]]
    assert identity_digest(base) == identity_digest(other_kernel)
    assert identity_digest(base) != identity_digest(other_system)


def test_the_canonical_spelling() -> None:
    assert (
        to_canonical_json({"b": 1.23456789e-7, "a": [True, None, "é", 3]})
        == '{"a":[true,null,"é",3],"b":1.23457e-07}'
    )
    assert to_canonical_json([math.nan, math.inf]) == '["nan","inf"]'
    assert json.loads(to_canonical_json({1: (2, Path("/x"))})) == {"1": [2, "/x"]}
    assert canonical_digest({"a": 1, "b": 2}) == canonical_digest({"b": 2, "a": 1})
    assert canonical_digest({"a": 1}) != canonical_digest({"a": 2})
    assert canonical_digest("\udcff").startswith("sha256:")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    write_atomically(target, "one")
    write_atomically(target, "two")
    assert target.read_text(encoding="utf-8") == "two"
    blocked = tmp_path / "folder"
    (blocked / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):
        write_atomically(blocked, "three")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "report.json"]
