"""JUnit XML of reports: what the usual schema asks for, green only where the verdict is, and XML
whatever a report holds.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views.builders import (
    check,
    crowded,
    failed,
    hostile,
    render_suites,
    sample,
    stage,
    verified,
)

RECORDED = Path(__file__).parents[1] / "reports" / "recorded"
NUMBER, SECONDS = re.compile(r"\d+"), re.compile(r"\d+\.\d{3}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
SUITE = {
    "name": re.compile(".+", re.DOTALL),
    "package": re.compile(".+"),
    "id": NUMBER,
    "timestamp": TIME,
    "hostname": re.compile(".+"),
    "tests": NUMBER,
    "failures": NUMBER,
    "errors": NUMBER,
    "skipped": NUMBER,
    "time": SECONDS,
}


def fits(text: str) -> list[ET.Element]:
    """Hold a document against the schema that Ant's JUnit task writes by (its element orders, its
    required attributes and their types); return its suites.
    """
    root = ET.fromstring(text)
    assert (root.tag, root.attrib) == ("testsuites", {})
    for suite in root:
        assert suite.tag == "testsuite"
        assert suite.attrib.keys() == SUITE.keys()
        assert all(pattern.fullmatch(suite.attrib[name]) for name, pattern in SUITE.items()), (
            suite.attrib
        )
        tags = [child.tag for child in suite]
        assert tags == ["properties", *["testcase"] * (len(tags) - 3), "system-out", "system-err"]
        assert all(
            one.tag == "property" and one.attrib.keys() == {"name", "value"} for one in suite[0]
        )
        cases = suite.findall("testcase")
        for case in cases:
            assert case.attrib.keys() == {"name", "classname", "time"}
            assert all(case.attrib.values())
            assert len(case) <= 1
            for outcome in case:
                wanted = {
                    "failure": {"type", "message"},
                    "error": {"type", "message"},
                    "skipped": {"message"},
                }
                assert outcome.attrib.keys() == wanted[outcome.tag]
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[name]) == len(suite.findall(f"testcase/{tag}"))
        assert int(suite.attrib["tests"]) == len(cases)
    return list(root)


@pytest.mark.parametrize(
    "report",
    [verified(), failed(), crowded(), hostile(), {}],
    ids=["verified", "failed", "crowded", "hostile", "empty"],
)
def test_it_fits_the_usual_schema(report: dict[str, Any]) -> None:
    fits(render_suites([report]))


@pytest.mark.parametrize(
    ("spoil", "by"),
    [
        ("system-err", "system-out"),
        ('failures="', 'fails="'),
        ("<testcase classname", "<testcase klass"),
        ('tests="', 'tests="9'),
        ('timestamp="', 'timestamp="on '),
    ],
)
def test_the_schema_refuses_what_is_wrong(spoil: str, by: str) -> None:
    with pytest.raises(AssertionError):
        fits(render_suites([failed()]).replace(spoil, by))


@pytest.mark.parametrize(
    ("status", "required", "outcome"),
    [
        ("pass", True, None),
        ("warn", False, None),
        ("skip", False, "skipped"),
        ("unknown", False, "skipped"),
        ("unknown", True, "error"),
        ("fail", True, "failure"),
        ("superb", True, "error"),
    ],
)
def test_how_checks_are_told(status: str, required: bool, outcome: str | None) -> None:
    (suite,) = fits(
        render_suites(
            [
                sample(
                    "failed",
                    [
                        check(
                            "P02",
                            "packages",
                            "locked packages",
                            status,
                            required=required,
                            message="said",
                            fix="mend",
                        )
                    ],
                )
            ]
        )
    )
    case = suite.findall("testcase")[1]
    assert (case.attrib["classname"], case.attrib["name"]) == ("packages", "P02 locked packages")
    assert [one.tag for one in case] == ([outcome] if outcome else [])
    assert (
        ("fix: mend" in (case[0].text or "")) is (outcome in ("failure", "error"))
        if outcome
        else True
    )
    assert ("P02 locked packages: said" in (suite.findtext("system-out") or "")) is (
        status == "warn"
    )


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ("verified", []),
        ("simulated", ["skipped"]),
        ("failed", ["failure"]),
        ("unverified", ["error"]),
        ("error", ["error"]),
        ("splendid", ["error"]),
    ],
)
def test_no_suite_is_green_whose_verdict_is_not(result: str, outcome: list[str]) -> None:
    (suite,) = fits(render_suites([sample(result, [check("P02", "packages", "t")])]))
    assert [one.tag for one in suite.findall("testcase")[0]] == outcome


def test_several_reports_are_several_suites() -> None:
    suites = fits(render_suites([verified(), failed()]))
    assert [(suite.attrib["id"], suite.attrib["name"]) for suite in suites] == [
        ("0", "sample-trainer.here"),
        ("1", "sample-trainer.here"),
    ]


@settings(deadline=None)
@given(st.text(), st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_makes_xml(one: str, other: str) -> None:
    rows = [
        check(one, other, one, "fail", message=other, expected=one, fix=other),
        check("X", "g", "t", "warn", message=one + other),
    ]
    fits(
        render_suites(
            [
                sample(
                    "failed",
                    rows,
                    stages=[stage(one, 1.0, tail=other)],
                    spec={"name": other, "digest": one},
                )
            ]
        )
    )


def test_secrets_are_redacted() -> None:
    token = "hf_" + "Zq3" * 10
    assert "Zq3" not in render_suites(
        [
            sample(
                "failed",
                [check("P06", "g", "t", "fail", observed=token, message=token)],
                stages=[stage("x", 1.0, tail=token)],
            )
        ]
    )


def test_the_command() -> None:
    argv = [
        str(Path(sys.executable).parent / "provision"),
        "report",
        str(RECORDED / "small-shm.json"),
        "--output-format",
        "junit",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=True)
    (suite,) = fits(done.stdout)
    assert [
        case.attrib["name"]
        for case in suite.findall("testcase")
        if case.find("failure") is not None
    ] == [
        "is the declared environment",
        "H07 shared memory",
    ]
