"""What is told of a report: numbers in their unit, bounds where they belong, nothing invented."""

from __future__ import annotations

from typing import Any

import pytest

from provision.agent.probe.checks import CHECKS
from provision.verification.report import Report
from provision.views.formatting import (
    format_amount,
    format_json_value,
    format_number,
    format_seconds,
    shorten_digest,
)
from provision.views.report import model
from provision.views.report.model import Measurement, ReportView, list_measurements
from tests.views.builders import check, sample, threshold, verified


def only(id: str = "X1", **more: Any) -> ReportView:  # noqa: A002
    return ReportView(
        Report(
            sample("failed", [check(id, more.pop("group", "g"), "t", **{"status": "fail", **more})])
        )
    )


def measurements(**more: Any) -> tuple[Measurement, ...]:
    return tuple(list_measurements(only(**more).report.checks[0]))


@pytest.mark.parametrize(
    ("id", "unit", "shown"),
    [
        ("H05", "of the declared bytes", "2 GiB"),
        ("H06", "", "2 GiB"),
        ("H07", "bytes", "2 GiB"),
        ("D04", "of the card's memory", "2 GiB"),
        ("S03", "of the memory", "2 GiB"),
        ("X1", "bytes", "2 GiB"),
        ("H12", "processes and threads", "2147483648"),
        ("L01", "", "2147483648"),
    ],
)
def test_sizes_have_a_unit(id: str, unit: str, shown: str) -> None:  # noqa: A002
    bound = threshold(1, unit) if unit else None
    view = only(id, expected=2**31, observed={"tmp": 2**31, "env": None}, threshold=bound)
    assert view.checks[0].expected == shown
    assert view.checks[0].observed == f"tmp: {shown}, env: none"


def test_the_checks_of_sizes_are_in_the_catalogue() -> None:
    assert {check.id for check in CHECKS} >= model._SIZE_CHECKS


def test_an_empty_list_in_a_mapping_is_left_out() -> None:
    assert only(observed={"first": 4.5, "still": []}).checks[0].observed == "first: 4.5"


def test_the_ratio_of_losses_is_a_measurement() -> None:
    losses = {"first": 4.0, "last": 1.0, "steps": 40}
    assert measurements(
        expected="< 0.5 of the first", observed=losses, threshold=threshold(0.5, "u", "s")
    ) == (Measurement("", 0.25, 0.5, "u", "s"),)


def test_errors_of_numerics_are_measurements_without_a_threshold_too() -> None:
    assert measurements(group="numerics", expected=1e-3, observed=2e-4) == (
        Measurement("", 2e-4, 1e-3, "relative error", ""),
    )
    assert measurements(group="numerics", expected={"fp32": 1e-3}, observed={"fp32": 2e-4}) == (
        Measurement("fp32", 2e-4, 1e-3, "relative error", ""),
    )
    assert measurements(group="numerics", expected=True, observed=True) == ()


def test_the_tally_gives_the_most_frequent_reason_why_checks_do_not_apply() -> None:
    def tally(*reasons: str) -> str:
        skipped = [check(f"D{n}", "g", "t", "skip", message=text) for n, text in enumerate(reasons)]
        return ReportView(Report(sample("verified", [check("X1", "g", "t"), *skipped]))).tally

    assert tally() == "1 check passed"
    assert tally("no GPU", "no GPU") == "1 check passed, 2 not applicable (no GPU)"
    assert tally("no GPU", "no GPU", "x") == "1 check passed, 3 not applicable (mostly: no GPU)"
    assert tally("no GPU", "x") == "1 check passed, 2 not applicable"


def test_groups_in_which_no_check_applies_are_one_line_per_reason() -> None:
    checks = [
        check("H01", "host", "t"),
        *(check(f"D0{n}", "device", "t", "skip", message="no GPU") for n in (1, 2)),
        check("M01", "card", "t", "skip", message="no GPU"),
        check("Y01", "secrets", "t", "skip", message="no secrets"),
    ]
    view = ReportView(Report(sample("verified", checks)))
    assert [group.name for group in view.inapplicable] == [
        "3 device, card checks not applicable: no GPU",
        "1 secrets check not applicable: no secrets",
    ]
    assert [group.name for group in view.groups if group.applies] == ["host"]


def test_a_number_is_held_against_the_threshold() -> None:
    assert measurements(observed=3, threshold=threshold(4, "u", "s")) == (
        Measurement("", 3.0, 4.0, "u", "s"),
    )


def test_a_share_is_held_against_what_is_declared() -> None:
    assert measurements(
        expected=100, observed=50, threshold=threshold(0.9, "of the declared bytes", "s")
    ) == (Measurement("", 50.0, 90.0, "bytes", "s"),)


def test_numbers_by_key_are_held_against_each_other_and_keep_the_source_of_their_own_bound() -> (
    None
):
    assert measurements(
        expected={"a": 4.0, "b": 9.0, "c": "x", "steps": 40},
        observed={"a": 3, "b": 8, "c": 1, "d": 1, "steps": 40},
        threshold=threshold(4, "u", "s"),
    ) == (
        Measurement("a", 3.0, 4.0, "u", "s"),
        Measurement("b", 8.0, 9.0, "u", ""),
    )


@pytest.mark.parametrize(
    "more",
    [
        {"status": "skip", "observed": 3},
        {"observed": "3"},
        {"observed": True},
        {"observed": float("nan")},
        {"observed": None},
    ],
)
def test_nothing_is_measured_where_nothing_can_be(more: dict[str, Any]) -> None:
    assert measurements(threshold=threshold(4, "u"), **more) == ()


def test_proof_needs_a_verified_report_in_which_training_ran() -> None:
    assert ReportView(Report(verified())).proven == (
        "imports and arguments",
        "learns",
        "resumes exactly in a fresh process",
    )
    assert ReportView(Report({**verified(), "verdict": {"result": "unverified"}})).proven == ()


def test_unknown_words_of_a_newer_tool_are_never_good() -> None:
    told = ReportView(Report(sample("splendid", [check("X1", "g", "t", "superb")])))
    assert told.report.verdict == "error"
    assert told.checks[0].status.value == "unknown"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, ""),
        (True, "yes"),
        (0, "0"),
        (0.000000337751, "3.37751e-07"),
        ([], ""),
        (["a", None, ["b", 1]], "a, none, [b, 1]"),
        ({"a": {"b": False}}, "a: (b: no)"),
        ("\x1b[2J", "\\x1b[2J"),
        ("ab" * 32, "abababababab..."),
        ("hf_" + "Zq3" * 10, "***"),
    ],
)
def test_words(value: object, told: str) -> None:
    assert format_json_value(value) == told


def test_amounts() -> None:
    assert [
        format_amount(value, "bytes") for value in (0, 1023, 1024, 2**30, 1.5 * 2**40, 2**60)
    ] == [
        "0 bytes",
        "1023 bytes",
        "1 KiB",
        "1 GiB",
        "1.5 TiB",
        "1 EiB",
    ]
    assert format_amount(2e-6, "relative error") == "2e-06 relative error"
    assert (format_number(12345.6), format_number(0.123456)) == ("12,346", "0.1235")
    assert [format_seconds(value) for value in (0.014, 1.74, 20.35)] == ["0.01", "1.7", "20"]
    assert (shorten_digest("sha256:" + "a" * 64), shorten_digest("plain")) == (
        "sha256:aaaaaaaaaaaa",
        "plain",
    )
