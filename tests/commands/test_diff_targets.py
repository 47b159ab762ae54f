"""provision diff of two targets by their names: stored reports, and the lock that tells what
requires what.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provision.errors import ExternalError
from provision.verification import Report, read_report
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.derived import NO_LOCKED_PACKAGES, LockedPackages
from provision.verification.diff.model import ReportComparison
from provision.views.diff import report_html, report_text
from tests.rig import Bench, small_spec
from tests.views.builders import failed

BOTH = "targets:\n  colab: {kind: local}\n  workbench: {kind: local}\n"


@pytest.fixture
def pair(bench: Bench) -> Bench:
    """Two targets of provision.yaml, both applied; in the second beta and the alpha that beta
    requires are of another version than locked.
    """
    path = bench.spec(small_spec("beta", extra=BOTH), "provision.yaml")
    assert path.exists()
    assert bench.run("apply", "--all", "--yes").returncode == 0
    site = next(
        (bench.own / "envs/provision.workbench").resolve().glob("lib/python*/site-packages")
    )
    for name, version in (("alpha", "1.5"), ("beta", "1.1")):
        (folder,) = site.glob(f"{name}-*.dist-info")
        text = (folder / "METADATA").read_text().replace("Version: 1.0", f"Version: {version}")
        (folder / "METADATA").write_text(text)
    assert bench.run("verify", "--target", "workbench").returncode == 1
    return bench


@pytest.mark.long
def test_two_target_names_are_enough_where_the_spec_is(pair: Bench) -> None:
    for words in (("colab", "workbench"), ("colab", "workbench", "--spec", "provision.yaml")):
        done = pair.run("diff", *words)
        assert done.returncode == 1, done.stderr
        assert done.stdout.startswith("works on colab, fails on workbench: P02 locked packages")
        assert "the decisive difference: package.beta 1.0 -> 1.1 (and 3" in " ".join(
            done.stdout.split()
        )


@pytest.mark.long
def test_a_package_is_told_under_the_one_that_requires_it(pair: Bench, tmp_path: Path) -> None:
    by_lock = json.loads(pair.run("diff", "colab", "workbench", "--output-format", "json").stdout)
    for name in ("colab", "workbench"):
        shutil.copy(pair.own / f"reports/provision.{name}/report.json", tmp_path / f"{name}.json")
    # The files alone tell it too: the probe noted who requires what it found otherwise than locked.
    by_report = json.loads(
        pair.run(
            "diff",
            str(tmp_path / "colab.json"),
            str(tmp_path / "workbench.json"),
            "--output-format",
            "json",
        ).stdout
    )
    for told in (by_lock, by_report):
        (difference,) = [one for one in told["differences"] if one["class"] == "identity"]
        assert (difference["key"], difference["a"], difference["b"]) == (
            "package.beta",
            "1.0",
            "1.1",
        )
        assert {"package.alpha", "packages.digest"} <= set(difference["followers"])


@pytest.mark.long
def test_a_name_that_is_no_target_says_which_there_are(pair: Bench) -> None:
    done = pair.run("diff", "colab", "laptop")
    assert (done.returncode, "its targets (colab, workbench)" in done.stderr) == (2, True), (
        done.stderr
    )


def report(
    environment: str,
    packages: Mapping[str, str | None],
    differences: list[dict[str, Any]] | None = None,
) -> Report:
    readings = [
        {"key": f"package.{name}", "value": version, "class": "identity"}
        for name, version in packages.items()
    ]
    readings.append(
        {
            "key": "packages.digest",
            "value": environment + json.dumps(differences),
            "class": "identity",
        }
    )
    blocks = {
        "lock": {"environment_digest": environment},
        "spec": {},
        "packages": {"differences": differences or []},
        "checks": [],
    }
    return Report({"readings": readings, **blocks})


KNOWN = LockedPackages(
    {
        "cpu": {"torch": "2.13.0+cpu", "numpy": "2.4.6", "sympy": "1.14", "mpmath": "1.3"},
        "cuda": {
            "torch": "2.13.0+cu130",
            "numpy": "2.4.6",
            "sympy": "1.14",
            "mpmath": "1.3",
            "nvidia-cublas": "13.1",
            "cuda-pathfinder": "1.2",
        },
    },
    {
        "nvidia-cublas": frozenset({"torch"}),
        "cuda-pathfinder": frozenset({"nvidia-cublas"}),
        "sympy": frozenset({"torch"}),
        "mpmath": frozenset({"sympy"}),
        "numpy": frozenset({"transformers"}),
        "torch": frozenset({"accelerate"}),
    },
)


def found(known: LockedPackages, **more: Any) -> ReportComparison:
    return compare_reports(
        report("cpu", {"torch": "2.13.0+cpu"}),
        report("cuda", {"torch": "2.13.0+cu130"}, **more),
        ("a", "b"),
        known,
    )


def test_packages_of_two_environments_of_one_lock_are_compared_and_grouped() -> None:
    (only,) = found(KNOWN).differences
    assert only.key == "package.torch"
    assert set(only.followers) == {
        "package.nvidia-cublas",
        "package.cuda-pathfinder",
        "packages.digest",
    }
    rows = {row.key: (row.a, row.b, row.differs) for row in found(KNOWN).readings}
    assert rows["package.nvidia-cublas"] == (None, "13.1", True)
    assert rows["package.numpy"] == ("2.4.6", "2.4.6", False)


def test_without_a_lock_only_what_reports_tell_is_compared() -> None:
    assert {row.key for row in found(NO_LOCKED_PACKAGES).readings} == {
        "package.torch",
        "packages.digest",
    }


def test_a_version_other_than_locked_counts_and_an_equal_requirer_explains_nothing() -> None:
    wrong = [{"name": "mpmath", "expected": "1.3", "observed": "1.4"}]
    result = found(KNOWN, differences=wrong)
    assert {one.key for one in result.differences} == {"package.torch", "package.mpmath"}, (
        "sympy is the same on both sides"
    )
    result = found(
        KNOWN, differences=[*wrong, {"name": "sympy", "expected": "1.14", "observed": None}]
    )
    (only,) = result.differences
    assert {"package.sympy", "package.mpmath"} <= set(only.followers)


JUNK = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.lists(st.integers(), max_size=2)
    | st.just({"a": [1]})
)
ROUTES = [
    ("readings", 0),
    *(("readings", 0, field) for field in ("key", "value", "class")),
    ("checks", 0),
    *(
        ("checks", 0, field)
        for field in ("id", "title", "status", "required", "message", "fix", "causes", "group")
    ),
    ("lock", "environment_digest"),
    ("packages",),
    ("packages", "differences"),
    *(
        ("packages", "differences", 0, field)
        for field in ("name", "expected", "observed", "required_by")
    ),
    ("verdict", "sentence"),
    ("subject", "target"),
]


@pytest.mark.thorough
@settings(deadline=None, max_examples=60)
@given(st.sampled_from(ROUTES), JUNK)
def test_a_report_that_was_forged_or_damaged_is_compared_all_the_same(
    route: tuple[Any, ...], junk: Any
) -> None:
    document = failed()
    document["packages"]["differences"][0]["required_by"] = ["accelerate"]
    at = document
    for part in route[:-1]:
        at = at[part]
    at[route[-1]] = junk
    if route == ("checks", 0) and not isinstance(junk, dict):
        with pytest.raises(ExternalError, match="damaged"):
            read_report(json.dumps(document).encode(), "x")
        return
    spoilt = read_report(json.dumps(document).encode(), "x")
    for one, other in ((failed(), spoilt), (spoilt, failed())):
        sides = [
            side if isinstance(side, Report) else read_report(json.dumps(side).encode(), "x")
            for side in (one, other)
        ]
        told = compare_reports(*sides, ("a", "b"), KNOWN)
        assert report_text.render_text(told, color=False, width=80, everything=True)
        assert report_text.render_markdown(told)
        assert report_html.render_page(told)


def test_packages_that_require_each_other_do_not_hang_it() -> None:
    circle = LockedPackages(
        {"cpu": {"x": "1", "y": "1"}, "cuda": {"x": "2", "y": "2"}},
        {"x": frozenset({"y"}), "y": frozenset({"x"})},
    )
    told = {one.key: one.followers for one in found(circle).differences}
    assert told == {"package.torch": ("packages.digest",), "package.x": ("package.y",)}
