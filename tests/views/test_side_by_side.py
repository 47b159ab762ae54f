"""The page of two reports beside each other: what matters first, everything aligned, inert whatever
the reports hold.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from provision.verification import Report, read_report
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.model import ReportComparison
from provision.views.diff.report_html import render_page
from tests import fork_server
from tests.views.builders import failed, hostile, sample, verified
from tests.views.test_html import LEAKS, REMOTE, Page, visit

RECORDED = Path(__file__).parents[1] / "reports" / "recorded"
SIMULATED = RECORDED.with_name("simulated")


def recorded(name: str) -> Report:
    return read_report((RECORDED / f"{name}.json").read_bytes(), name)


def of(document: dict[str, Any]) -> Report:
    return Report(document)


def attacked() -> ReportComparison:
    evil = hostile()
    bad = str(evil["spec"]["name"]) + LEAKS
    keys = [
        {"key": f"{n}{bad}", "value": [bad], "class": kind}
        for n, kind in enumerate(("identity", "context", "exact", "measurement"))
    ]
    evil["readings"] += keys
    calm = {
        **sample("verified", [{**one, "status": "pass"} for one in evil["checks"]]),
        "readings": [{**one, "value": bad + "2"} for one in keys],
    }
    return compare_reports(of(calm), of(evil), (f"a{bad}", f"b{bad}"))


@pytest.fixture(
    params=[
        "numpy-abi",
        "other-instruction-set",
        "quickstart-again",
        "python-3.12",
        "hostile",
        "samples",
    ]
)
def made(request: pytest.FixtureRequest) -> str:
    if request.param == "hostile":
        return render_page(attacked())
    if request.param == "samples":
        return render_page(compare_reports(of(verified()), of(failed()), ("verified", "failed")))
    return render_page(
        compare_reports(
            recorded("quickstart"), recorded(request.param), ("quickstart", request.param)
        )
    )


def test_it_is_whole_inert_and_accessible(made: str) -> None:
    found = Page(made)
    assert found.open == []
    forbidden = {"script", "img", "iframe", "object", "embed", "form", "a", "base"}
    assert not forbidden & {name for name, _ in found.elements}
    for name, attributes in found.elements:
        assert not [
            key for key in attributes if key.startswith("on") or key in ("src", "style", "srcset")
        ], name
    assert REMOTE.search("".join(data for tag, data in found.texts if tag == "style")) is None
    assert [meta["content"] for meta in found.named("meta") if meta.get("http-equiv")] == [
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    ]
    assert found.named("html") == [{"lang": "en"}]
    assert all(cell.get("scope") in ("col", "row") for cell in found.named("th"))
    levels = [int(name[1]) for name, _ in found.elements if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all(
        drawing.get("aria-hidden") == "true" or drawing.get("aria-label")
        for drawing in found.named("svg")
    )
    assert (
        re.search(
            "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]", made
        )
        is None
    )


def test_the_difference_that_matters_comes_first() -> None:
    text = Page(
        render_page(
            compare_reports(recorded("quickstart"), recorded("numpy-abi"), ("colab", "workbench"))
        )
    ).text()
    story = [
        "WORKS ON ONE, FAILS ON THE OTHER",
        "works on colab, fails on workbench: P02 locked packages",
        "The decisive difference",
        "package.pandas can explain P02, P04, P06:datasets, R01",
        "and 6 that depend on it: packages.count",
        "3.1.1 2.1.4 identity",
        "Passes in one report, fails in the other",
        "P02 locked packages colab passed workbench failed",
        "differs package.pandas 3.1.1 -> 2.1.4",
        "Other checks with different results",
        "Readings side by side",
        "Checks side by side",
        "H01 operating system passed passed",
    ]
    places = [text.index(part) for part in story]
    assert places == sorted(places)


def test_of_two_machines_the_card_comes_first() -> None:
    found = compare_reports(recorded("gpu-h200"), recorded("gpu-h100"), ("h200", "h100"))

    assert found.differences[0].key == "gpu.name"
    assert found.check_changes == ()
    assert found.tampered == ()


def test_every_reading_and_every_check_of_both_is_there() -> None:
    one, other = recorded("quickstart"), recorded("accelerate-too-old")
    text = Page(render_page(compare_reports(one, other, ("a", "b")))).text()
    for report in (one, other):
        assert all(
            f" {check['id']} {check['title']} " in text for check in report.document["checks"]
        )
        assert all(
            f" {row['key']} " in text
            for row in report.document["readings"]
            if row["class"] != "noise"
        )


@pytest.mark.parametrize(
    ("other", "headline"),
    [
        ("quickstart-again", "THE SAME ENVIRONMENT"),
        ("other-instruction-set", "NOT THE SAME"),
        ("small-shm", "WORKS ON ONE, FAILS"),
    ],
)
def test_the_headline(other: str, headline: str) -> None:
    assert (
        headline
        in Page(
            render_page(compare_reports(recorded("quickstart"), recorded(other), ("a", "b")))
        ).text()
    )


def test_what_fails_on_both_sides_is_no_good_news() -> None:
    sides = [
        read_report((SIMULATED / f"l4-{name}.json").read_bytes(), name)
        for name in ("ecc-errors", "remap-failed")
    ]
    made = render_page(compare_reports(*sides, ("a", "b")))
    text = Page(made).text()
    assert "THE SAME ENVIRONMENT" in text
    assert (
        "Fails, and passes in neither report D05 GPU memory errors a failed b failed why A: the "
        "card's memory is faulty: 3 uncorrected errors since boot" in text
    )
    assert 'class="verdict verified"' not in made


def test_measurements_have_a_bar_for_each_side() -> None:
    sides = [
        of(
            {
                **sample("verified", []),
                "readings": [{"key": "bandwidth_gb_s", "value": value, "class": "measurement"}],
                "packages": {},
            }
        )
        for value in (50.0, 100)
    ]
    found = Page(render_page(compare_reports(*sides, ("a", "b"))))
    assert [
        shape["width"] for shape in found.named("rect") if shape.get("class") in ("a", "b")
    ] == ["50.0", "100.0"]


def test_secrets_are_redacted() -> None:
    token = "hf_" + "Zq3" * 10
    leaking = [
        {"key": "env.X", "value": f"x {token}", "class": "context"},
        {"key": "host.platform", "value": "l", "class": "identity"},
    ]
    one = of({**sample("verified", []), "readings": leaking})
    other = of({**sample("verified", []), "readings": leaking[1:]})
    assert "Zq3" not in render_page(compare_reports(one, other, (token, "b")))


@pytest.mark.browser
def test_in_a_browser_a_hostile_pair_is_inert(tmp_path: Path) -> None:
    found, asked = visit(tmp_path, render_page(attacked()))
    assert asked == ["/page.html"]
    assert not {"script", "img", "iframe", "a"} & {name for name, _ in found.elements}
    assert "alert(1)" in found.text()


def test_the_command_writes_it(tmp_path: Path) -> None:
    words = [
        *fork_server.ARGV,
        "diff",
        str(RECORDED / "quickstart.json"),
        str(RECORDED / "small-shm.json"),
    ]
    written = fork_server.run(
        [*words, "--html", "diff.html"], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert (written.returncode, written.stdout, written.stderr) == (1, "", "wrote diff.html\n")
    shown = fork_server.run(
        [*words, "--output-format", "html"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert shown.returncode == 1
    assert (tmp_path / "diff.html").read_text(encoding="utf-8").rstrip("\n") == shown.stdout.rstrip(
        "\n"
    )
    assert (
        json.loads(
            Page(shown.stdout).texts[[tag for tag, _ in Page(shown.stdout).texts].index("pre")][1]
        )["same"]
        is False
    )
