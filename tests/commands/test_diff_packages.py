"""provision diff and parity of two reports that list their packages: each difference is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from provision.agent.probe.report_json import canonical_digest, compact
from provision.verification import Report, read_report
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.summary import summarize_comparison
from provision.views.diff import report_text
from tests.rig import Bench

QUICKSTART = Path(__file__).parents[1] / "reports" / "recorded" / "quickstart.json"
LISTED = {"certifi": "2026.1.1", "requests": "2.32.3", "torch": "2.13.0+cpu", "urllib3": "2.2.3"}


def listing(packages: dict[str, str], *, direct: str, others: int = 0) -> bytes:
    """Return a report whose probe found these packages, and `others` that its lock has not."""
    document: dict[str, Any] = dict(read_report(QUICKSTART.read_bytes(), "x").document)
    document["packages"] = {
        "locked": len(packages),
        "matching": len(packages),
        "differences": [],
        "installed": packages,
    }
    readings = {
        "packages.digest": ("identity", canonical_digest(packages)),
        "packages.count": ("context", len(packages) + others),
        f"package.{direct}": ("identity", packages[direct]),
    }
    kept = [row for row in document["readings"] if not row["key"].startswith("package")]
    kept += [{"key": key, "class": kind, "value": value} for key, (kind, value) in readings.items()]
    document["readings"] = sorted(kept, key=lambda row: str(row["key"]))
    document["lock"] = {**document["lock"], "environment_digest": canonical_digest(packages)}
    content = {key: value for key, value in document.items() if key != "digests"}
    document["digests"] = {
        **document["digests"],
        "identity": canonical_digest([packages, direct]),
        "report": canonical_digest(compact(content)),
    }
    return json.dumps(compact(document)).encode()


def report(packages: dict[str, str], *, direct: str, others: int = 0) -> Report:
    return read_report(listing(packages, direct=direct, others=others), "x")


def test_a_package_that_another_one_requires_is_named() -> None:
    old = report(LISTED, direct="requests")
    new = report({**LISTED, "urllib3": "2.8.0"}, direct="requests")

    found = compare_reports(old, new, ("old", "new"))

    shown = report_text.render_text(found, color=False, width=100, everything=False)
    assert "package.urllib3 2.2.3 -> 2.8.0" in summarize_comparison(found)
    assert "sha256" not in shown
    assert not found.is_same


def test_a_package_on_one_side_only_is_named_before_those_that_follow() -> None:
    more = {**LISTED, "aiohttp": "3.11.0", "pandas": "2.3.3"}
    found = compare_reports(
        report(LISTED, direct="requests"), report(more, direct="pandas"), ("a", "b")
    )

    named = [pair.key for pair in found.differences if pair.key.startswith("package")]
    assert named == ["package.pandas", "package.aiohttp"]
    assert "package.pandas absent -> 2.3.3" in summarize_comparison(found)


def test_a_package_that_only_the_other_lock_names_may_be_in_an_image() -> None:
    image = report(LISTED, direct="requests", others=400)
    own = report({**LISTED, "pandas": "2.3.3", "urllib3": "2.8.0"}, direct="requests")

    found = compare_reports(image, own, ("image", "own"))

    named = [pair.key for pair in found.differences if pair.key.startswith("package.")]
    assert named == ["package.urllib3"]
    assert "package.pandas" in found.one_sided_keys


def test_parity_of_two_reports_states_their_packages(bench: Bench) -> None:
    files = {"a": LISTED, "b": {**LISTED, "certifi": "2026.2.2"}, "c": {**LISTED, "torch": "2.9.0"}}
    for name, packages in files.items():
        content = listing(packages, direct="requests")
        (bench.folder / f"{name}.json").write_bytes(content)

    harmless = bench.run("parity", "a.json", "b.json")
    differing = bench.run("diff", "a.json", "c.json")

    assert "equal        packages; observed: 4 packages on both" in harmless.stdout, harmless
    assert "certifi 2026.1.1 -> 2026.2.2" in harmless.stdout
    assert differing.returncode == 1
    assert "package.torch 2.13.0+cpu -> 2.9.0" in differing.stdout
