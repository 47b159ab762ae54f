"""Findings about windows between packages: pinned, floating and resolved."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.diagnostics import Severity
from provision.facts import Evidence, Facts
from provision.facts.schema_windows import ReadReleases, ReleaseWindow
from provision.rules import ResolvedSet
from tests.rules.conftest import Judged, judge_text

EVIDENCE = Evidence("both wheels", "2026-11-27", "medium")
READ = {
    "peft": ReadReleases("peft", True, ("0.9", "0.10", "0.11", "0.12"), EVIDENCE),
    "diffusers": ReadReleases("diffusers", True, ("0.30", "0.31"), EVIDENCE),
}


def window(
    first: str,
    specifier: str,
    severity: str = "error",
    *,
    last: str = "",
    declared: str = "",
    confidence: str = "medium",
) -> ReleaseWindow:
    """Releases of peft from `first` on use a name that some releases of pandas have."""
    return ReleaseWindow(
        f"peft-{first}-pandas",
        "peft",
        first,
        last,
        "pandas",
        specifier,
        "pandas.Name" if severity == "error" else "pandas.call(name=)",
        severity,
        "peft/a.py:1",
        "pandas/b.py:1",
        EVIDENCE._replace(confidence=confidence),
        declared,
    )


@pytest.fixture
def judged(tmp_path: Path, facts: Facts) -> object:
    """Judge packages with windows in place of those of the facts."""

    def judge(
        *packages: str, windows: tuple[ReleaseWindow, ...], resolved: bool = False, more: str = ""
    ) -> Judged:
        own = facts.with_tables(windows=windows, windows_read=READ, undeclared=())
        lines = "".join(f"  - {line}\n" for line in packages)
        text = f'gpu: none\npython: "3.11"\ntraining: {{framework: none}}\n{more}packages:\n{lines}'
        versions = dict(line.split("==") for line in packages) if resolved else None
        sets = ResolvedSet(versions, "3.11", "cpu") if versions else None
        return judge_text(text, tmp_path, own, sets)

    return judge


NEW = window("0.11", ">=2.0")
OLD = window("0.9", "<2.0", last="0.10")


@pytest.mark.parametrize(
    ("windows", "packages", "severity", "message"),
    [
        ((NEW,), ("peft==0.10", "pandas==1.5"), None, ""),
        ((NEW,), ("peft==0.11", "pandas==2.0"), None, ""),
        ((NEW,), ("peft==0.11", "pandas"), None, ""),
        ((NEW,), ("peft", "pandas"), None, ""),
        ((NEW,), ("peft",), None, ""),
        (
            (NEW,),
            ("peft==0.11", "pandas==1.5"),
            Severity.ERROR,
            "peft==0.11 needs pandas>=2.0, which it does not declare, but pandas==1.5 is requested",
        ),
        (
            (window("0.11", ">=2.0", "warning"),),
            ("peft==0.11", "pandas==1.5"),
            Severity.WARNING,
            "peft==0.11 needs pandas>=2.0, which it does not declare, but pandas==1.5 is requested",
        ),
        (
            (window("0.11", ">=2.0", confidence="low"),),
            ("peft==0.11", "pandas==1.5"),
            Severity.WARNING,
            "peft==0.11 needs pandas>=2.0, which it does not declare, but pandas==1.5 is requested",
        ),
        (
            (window("0.11", ">=2.0", last="0.11"), window("0.12", ">=1.9", "warning")),
            ("peft>=0.11", "pandas==1.5"),
            Severity.WARNING,
            "peft>=0.11 needs pandas>=1.9, which it does not declare, but pandas==1.5 is requested",
        ),
        (
            (NEW,),
            ("peft", "pandas==1.5"),
            Severity.WARNING,
            (
                "the newest peft that peft allows, 0.12, needs pandas>=2.0, but pandas==1.5 is "
                "requested"
            ),
        ),
        (
            (NEW,),
            ("peft>=0.10", "pandas<2"),
            Severity.WARNING,
            (
                "the newest peft that peft>=0.10 allows, 0.12, needs pandas>=2.0, but pandas<2 is "
                "requested"
            ),
        ),
        ((window("0.11", ">=2.0", declared=">=1.8"),), ("peft", "pandas==1.5"), None, ""),
        ((window("0.11", ">=2.0", last="0.11"),), ("peft", "pandas==1.5"), None, ""),
        (
            (OLD,),
            ("peft==0.10", "pandas==2.1"),
            Severity.ERROR,
            "peft==0.10 needs pandas<2.0, which it does not declare, but pandas==2.1 is requested",
        ),
        (
            (OLD,),
            ("peft==0.10", "pandas"),
            Severity.WARNING,
            (
                "peft==0.10 needs pandas<2.0 without declaring it, and nothing in the spec keeps "
                "pandas below 2.0"
            ),
        ),
        (
            (OLD._replace(severity="warning", name="pandas.f(x=)"),),
            ("peft==0.10", "pandas"),
            None,
            "",
        ),
        (
            (NEW._replace(severity="warning", name="pandas.f(x=)"),),
            ("peft", "pandas==1.5"),
            None,
            "",
        ),
        ((NEW._replace(severity="warning"),), ("peft==0.11", "pandas==1.5"), None, ""),
        ((OLD,), ("peft==0.11", "pandas"), None, ""),
        ((OLD,), ("peft", "pandas==2.1"), None, ""),
    ],
)
def test_what_a_spec_requests(
    judged: object,
    windows: tuple[ReleaseWindow, ...],
    packages: tuple[str, ...],
    severity: Severity | None,
    message: str,
) -> None:
    assert callable(judged)
    found = judged(*packages, windows=windows).of("PKG010")
    assert [(finding.severity, finding.message) for finding in found] == (
        [(severity, message)] if severity else []
    )


def test_a_floating_package_gets_the_bound_that_keeps_it_out_of_the_window(judged: object) -> None:
    assert callable(judged)
    finding = judged("peft>=0.9", "pandas==1.5", windows=(NEW,)).one("PKG010")
    assert finding.help == "use peft>=0.9,<0.11, or pandas>=2.0"
    assert finding.fix is not None
    assert "peft>=0.9,<0.11" in finding.fix.edits[0].text
    assert "pandas.Name" in str(finding.why)


def test_an_upload_date_keeps_a_floating_package_back(judged: object) -> None:
    assert callable(judged)
    more = "exclude_newer: 2024-01-01\n"
    assert judged("peft", "pandas==1.5", windows=(NEW,), more=more).of("PKG010") == []


def test_a_resolved_set_is_judged_by_its_versions(judged: object) -> None:
    assert callable(judged)
    windows = (NEW, window("0.11", ">=1.9", "warning"))
    (finding,) = judged("peft==0.12", "pandas==1.5", windows=windows, resolved=True).of("PKG010")
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("peft 0.12 needs pandas>=2.0")
    assert judged("peft==0.12", "pandas==2.0", windows=windows, resolved=True).of("PKG010") == []
    assert judged("peft==0.10", "pandas==1.5", windows=windows, resolved=True).of("PKG010") == []


def test_one_finding_for_a_pair(judged: object) -> None:
    assert callable(judged)
    windows = (NEW, window("0.11", ">=1.9", "warning"))
    found = judged("peft==0.12", "pandas==1.5", windows=windows).of("PKG010")
    assert [finding.severity for finding in found] == [Severity.ERROR]


def test_the_effect_names_the_arguments_that_a_replaced_method_lacks() -> None:
    replaced = window("0.9", "<2.0", "warning")._replace(name="pandas.Base.log(logs)")
    assert replaced.is_override
    assert replaced.is_certain
    assert replaced.effect == (
        "a part of peft fails: it replaces a method as pandas.Base.log(logs), and pandas passes "
        "these arguments only before 2.0"
    )
    called = window("0.9", "<2.0", "warning")
    assert not called.is_override
    assert called.effect == (
        "a part of peft fails: it calls pandas.call(name=), which pandas has before 2.0"
    )
