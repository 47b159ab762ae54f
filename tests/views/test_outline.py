"""What is told of a report: numbers in their unit, bounds where they belong, nothing invented."""

from __future__ import annotations

from typing import Any

import pytest

from provision.verification.report import Report
from provision.views.formatting import (
    format_amount,
    format_json_value,
    format_number,
    format_seconds,
    shorten_digest,
)
from provision.views.report.model import Measurement, ReportView, list_measurements
from tests.views.builders import check, sample, threshold, verified


def only(**more: Any) -> ReportView:
    document = sample("failed", [check("X1", "g", "t", **{"status": "fail", **more})])
    document["readings"] = [
        {"key": key, "value": 1}
        for key in ("host.ram_bytes", "host.nofile", "disk.tmp.free_bytes", "disk.env.free_bytes")
    ]
    return ReportView(Report(document))


def measurements(**more: Any) -> tuple[Measurement, ...]:
    return tuple(list_measurements(only(**more).report.checks[0]))


@pytest.mark.parametrize(
    ("causes", "told"),
    [
        (["host.ram_bytes"], "2 GiB"),
        (["disk.*"], "2 GiB"),
        (["host.ram_bytes", "host.nofile"], "2147483648"),
        (["gone_bytes"], "2147483648"),
        ([], "2147483648"),
    ],
)
def test_numbers_are_bytes_when_every_reading_behind_them_is(causes: list[str], told: str) -> None:
    assert only(causes=causes, observed=2**31).checks[0].observed == told


def test_bytes_inside_a_mapping() -> None:
    assert (
        only(causes=["disk.*"], observed={"tmp": 2**30, "env": None}).checks[0].observed
        == "tmp: 1 GiB, env: none"
    )


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
        expected={"a": 4, "b": 9, "c": "x"},
        observed={"a": 3, "b": 8, "c": 1, "d": 1},
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
        "1.049e+06 TiB",
    ]
    assert format_amount(2e-6, "relative error") == "2e-06 relative error"
    assert (format_number(12345.6), format_number(0.123456)) == ("12,346", "0.1235")
    assert [format_seconds(value) for value in (0.014, 1.74, 20.35)] == ["0.01", "1.7", "20"]
    assert (shorten_digest("sha256:" + "a" * 64), shorten_digest("plain")) == (
        "sha256:aaaaaaaaaaaa",
        "plain",
    )
