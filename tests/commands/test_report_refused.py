"""Reports that are not what they say, or not of this notebook: each is refused, with where, why and
the way out, and nothing is written.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from provision.agent.probe.report_json import to_canonical_json
from provision.verification.report import MAX_REPORT_BYTES
from tests.notebook_rig import (
    Change,
    Home,
    at,
    changed,
    of_check,
    of_reading,
    refused,
    whole,
    without,
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            at("verdict", "result", value="failed"),
            "its verdict is failed, but its checks give verified",
        ),
        (at("verdict", "counts", "pass", value=99), "its counts do not match its checks"),
        (at("verdict", "first_cause", value="P02"), "its first cause is P02"),
        (at("verdict", "sentence", value="All is well."), "its sentence is 'All is well.'"),
        (
            of_check("P02", status="fail", causes=["packages.digest", "package.*"]),
            "but its checks give failed",
        ),
        (
            of_check("P02", required=False),
            "fields of P02 were changed: required",
        ),
        (of_check("P02", title="nothing"), "fields of P02 were changed: title"),
        (without("checks", "id", "P02"), "P02 is missing"),
        (at("checks", 0, "id", value="H02"), "H01 is missing"),
        (
            lambda document: document["checks"].append(document["checks"][0]),
            "its checks differ from the checks of this verification",
        ),
        (
            of_reading("host.platform", "linux-aarch64"),
            "H01 is pass, but its readings give fail",
        ),
        (
            of_reading("packages.unmet", ["alpha 1.0 needs beta"]),
            "P04 is pass, but its readings give fail",
        ),
        (
            without("readings", "key", "host.platform"),
            "H01 is pass, but the reading host.platform is missing",
        ),
        (of_reading("host.platform", {"a": 1}), "H01 is pass, but"),
        (of_reading("python.minor", "3.9"), "P01 passes, but the readings show Python 3.9"),
        (of_reading("python.prefix_matches", False), "P01 passes"),
        (
            of_reading("package.alpha", "1.0"),
            "P02 passes, but the report lists packages that differ",
        ),
        (at("packages", "differences", value=[{"name": "alpha"}]), "P02 passes"),
        (at("packages", "locked", value=7), "it checked 7 locked packages, expected 1"),
        (
            of_reading("packages.altered", ["alpha: was changed"]),
            "P07 passes, but the report lists modified files",
        ),
        (
            of_reading("host.cpus", 2, kind="noise"),
            "the reading host.cpus has class noise, but the probe writes class context",
        ),
        (
            of_reading("host.cpus", 2, key="host.cpus_there"),
            "host.cpus_there has class context, but the probe writes no such reading",
        ),
        (
            at("readings", 0, "key", value="zzz"),
            "or are not in the order in which the probe writes them",
        ),
        (at("subject", "proof", value="hf-trainer"), "its proof is hf-trainer"),
        (at("tier", value="inventory"), "its tier is inventory"),
    ],
)
def test_a_forged_report_is_refused(home: Home, genuine: bytes, change: Change, words: str) -> None:
    error = refused(home, changed(genuine, change))
    assert error.what == "report.json contradicts itself"
    assert words in error.why


def test_an_identity_that_does_not_fit_its_readings_is_refused(home: Home, genuine: bytes) -> None:
    def other(document: dict[str, Any]) -> None:
        document["digests"]["identity"] = "sha256:" + "0" * 64

    assert (
        "its identity digest is sha256:0000"
        in refused(home, changed(genuine, other, sealed=False)).why
    )


@pytest.mark.parametrize(
    "change",
    [at("verdict", "result", value="failed"), of_check("P02", message="x"), at("more", value=1)],
)
def test_a_report_that_was_edited_is_refused(home: Home, genuine: bytes, change: Change) -> None:
    assert (
        refused(home, changed(genuine, change, sealed=False)).what
        == "report.json was edited or damaged"
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"\x00\xff\xfe", "it is not UTF-8 text (byte 2)"),
        (b"{}", "is not a provision report"),
        (b"[1, 2]", "is not a provision report"),
        (b'{"schema": "provision.report/2"}', "written by a different version of provision"),
        (
            b'{"schema": "provision.agent.notebook-status/1"}',
            "is the status file of the notebook cell, not a report",
        ),
        (b'{"schema": "provision.report/1"}', "tier is missing"),
        (b'{"schema": "provision.report/1", "schema": 1}', "duplicate key 'schema'"),
        (b'{"schema": NaN}', "NaN is not a JSON number"),
        (b'{"schema": 1e999}', "a number that is too large"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "it is not valid JSON"),
        (b"PK\x03\x04rest", "is an archive"),
        (b"[" * 100_000 + b"]" * 100_000, "nested"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested"),
        (b"[" * 60 + b"]" * 60, "nested more than 50 levels deep"),
        (b'{"schema": "' + b"x" * 70_000 + b'"}', "a string in it has 70,000 characters"),
        (b" " * (MAX_REPORT_BYTES + 1), "too large to be a report"),
        (b'{"schema": "\x1b[31m\xe2\x80\xae\\ud800"}', "it is not valid JSON"),
        (b'{"schema": "\\u001b[31m\\u202e\\ud800"}', "is not a provision report"),
    ],
)
def test_what_is_no_report_is_refused(home: Home, content: bytes, words: str) -> None:
    error = refused(home, content)
    assert words in whole(error)
    assert "\x1b" not in whole(error)
    assert "\u202e" not in whole(error)


def test_a_download_that_was_cut_short_is_refused(home: Home, genuine: bytes) -> None:
    after_a_check = genuine.index(b"}") + 1
    for length in (1, after_a_check, len(genuine) // 2, len(genuine) - 3):
        assert "the download was interrupted" in refused(home, genuine[:length]).why


@pytest.mark.parametrize(
    "part",
    [
        "tool",
        "subject",
        "spec",
        "lock",
        "readings",
        "checks",
        "stages",
        "packages",
        "verdict",
        "digests",
    ],
)
@pytest.mark.parametrize("value", [None, [], {}, [1], [{}], "text", 7])
def test_a_part_of_another_form_is_refused(
    home: Home, genuine: bytes, part: str, value: object
) -> None:
    document = {**json.loads(genuine), part: value}
    assert refused(home, to_canonical_json(document).encode()).what


@pytest.mark.parametrize(
    ("change", "what", "words"),
    [
        (
            at("subject", "nonce", value="f" * 32),
            "from a different version of the notebook for spec/colab",
            f"its nonce is {'f' * 32}, expected ",
        ),
        (
            at("lock", "digest", value="sha256:other"),
            "is not a report for spec/colab",
            "its lock digest is sha256:other, expected sha256:",
        ),
        (
            at("lock", "environment_digest", value="sha256:e"),
            "is not a report for spec/colab",
            "its environment digest is sha256:e, expected sha256:",
        ),
        (
            at("spec", "name", value="another"),
            "is not a report for spec/colab",
            "its spec is another, expected spec",
        ),
        (
            at("spec", "digest", value="sha256:s"),
            "is not a report for spec/colab",
            "its spec digest is sha256:s, expected sha256:",
        ),
        (
            at("subject", "target", value="gpu"),
            "is not a report for spec/colab",
            "its target is gpu, expected colab",
        ),
        (
            at("subject", "kind", value="local"),
            "is not a report for spec/colab",
            "its kind is local, expected colab",
        ),
    ],
)
def test_a_foreign_report_is_refused_with_both_values(
    home: Home, genuine: bytes, change: Change, what: str, words: str
) -> None:
    error = refused(home, changed(genuine, change), target="colab")
    assert what in error.what
    assert words in error.why


def test_the_report_of_another_place_on_this_machine_is_foreign(home: Home, origin: Home) -> None:
    error = refused(
        home, (origin.bench.own / "reports/spec.local/report.json").read_bytes(), target="colab"
    )
    assert "its target is local, expected colab; its kind is local, expected colab" in error.why


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("2199-01-01T00:00:00Z", "a timestamp in the future"),
        ("yesterday", "is damaged"),
        ("2026-9-1T0:0:0Z", "is damaged"),
        ("", "is damaged"),
    ],
)
def test_a_time_that_cannot_be_is_refused(
    home: Home, genuine: bytes, when: str, words: str
) -> None:
    assert words in refused(home, changed(genuine, at("subject", "created_utc", value=when))).what


def test_a_report_of_another_probe_is_refused(home: Home, genuine: bytes) -> None:
    assert (
        refused(home, changed(genuine, at("tool", "probe_sha256", value="0" * 64))).what
        == "report.json was written by a different version of the probe"
    )


def test_a_report_of_some_checks_only_is_refused(home: Home, genuine: bytes) -> None:
    def partial(document: dict[str, Any]) -> None:
        document["checks"] = [one for one in document["checks"] if one["id"] == "P02"]
        document["verdict"] |= {
            "result": "unverified",
            "counts": {"pass": 1, "fail": 0, "warn": 0, "skip": 0, "unknown": 0},
        }

    assert (
        "are missing, although this verification requires them"
        in refused(home, changed(genuine, partial)).why
    )
