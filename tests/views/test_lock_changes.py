"""What differs between two locks as text, Markdown and data: exact words, and nothing harmful whatever an older lock holds."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from provision.diagnostics import Diagnostic, Place, Severity
from provision.facts.moving import Kind, Meaning
from provision.lock import Environment
from provision.lock.comparing import Comparison, Consequence, Held, Moved, OtherFiles, PackageChange, PlaceChange, Review
from provision.views.ink import cells
from provision.views.lock_changes import document, text
from provision.views.lock_comment import LARGEST, comment
from tests.views.builders import Draft, agree, draft

RAW_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
OURS = re.compile(r"\x1b\[[0-9;]*m")
EVIL = "evil|`<img src=x>\n\n# @team [a](http://b) \x1b[31m\u202e</details>"
TOKEN = "hf_" + "Zq3" * 10
PLAIN = Comparison(None, (), 4, (), (), (), (), identical=True)


def source() -> Draft:
    return draft({"spec.yaml": "gpu: V100\npackages: [torch, numpy]\n"}, packages__0=("spec.yaml", "torch"), gpu=("spec.yaml", "V100"))


def finding(severity: Severity, message: str) -> Diagnostic:
    return Diagnostic("GPU005", "card-not-in-build", severity, message, Place(("gpu",)), "why", "take another card")


def environment(key: str, flavour: str | None) -> Environment:
    return Environment(key, "linux-x86_64", flavour, "2.28", None, "")


def whole() -> Review:
    cu128, cpu = environment("linux-x86_64-cu128", "cu128"), environment("linux-x86_64-cpu", "cpu")
    comparison = Comparison(
        python=Moved("python", "3.11", "3.12"),
        packages=(
            PackageChange("accelerate", None, Held("1.2.0", "pypi")),
            PackageChange("gone", Held("1.0", "pypi"), None),
            PackageChange("inner", Held("1.0", "pypi"), Held("1.0", "private", unconfirmed=True)),
            PackageChange("torch", Held("2.10.0+cpu", "pytorch-cpu"), Held("2.11.0+cpu", "pytorch-cpu"), ("laptop", "here on linux-x86_64")),
            PackageChange("torch", Held("2.10.0+cu128", "pytorch-cu128"), Held("2.11.0+cu128", "pytorch-cu128"), ("server",)),
        ),
        unchanged=30,
        files=(
            OtherFiles("numpy", "2.3.0", ("numpy-2.3.0-py3-none-any.whl",), (), (), 0),
            OtherFiles("regex", "1.0", (), ("regex-1.0-musl.whl",), (), 2),
        ),
        places=(
            PlaceChange("laptop", "linux-x86_64", None, cpu),
            PlaceChange("old", "linux-x86_64", cu128, None),
            PlaceChange("server", "linux-x86_64", cpu, replace(cu128, glibc=None)),
        ),
        indexes=(Moved("private", "https://a.example/simple", "https://b.example/simple"),),
        asked=(Moved("packages", None, "accelerate>=1"), Moved("targets.colab", "colab 2026.07 system gpu=T4", "colab 2026.10 system gpu=T4")),
        identical=False,
    )
    follows = (
        Consequence(Meaning(Kind.LOST, Severity.ERROR, "torch 2.10.0 -> 2.11.0 (cu128): V100 loses sm_70"), ("server",)),
        Consequence(Meaning(Kind.PYTHON, Severity.INFO, "Python 3.11 -> 3.12: security fixes until 2028-10"), ()),
    )
    others = (Meaning(Kind.LOST, Severity.INFO, "torch 2.10.0 -> 2.11.0 (cu128) has no code any more for TITAN-V"),)
    new, settled = finding(Severity.ERROR, "torch 2.11.0 has no code for V100"), finding(Severity.WARNING, "torch 2.10.0 is old")
    return Review("old.lock", "spec.lock", comparison, follows, others, (new,), (settled,))


def hostile() -> Review:
    held, place = Held(EVIL, EVIL), replace(environment(EVIL, EVIL), glibc=EVIL)
    comparison = Comparison(
        Moved("python", EVIL, EVIL),
        (PackageChange(EVIL, held, Held(TOKEN, "x", unconfirmed=True), (EVIL,)), PackageChange(EVIL, None, held)),
        0,
        (OtherFiles(EVIL, EVIL, (EVIL,), (EVIL,), (EVIL,), 0),),
        (PlaceChange(EVIL, EVIL, None, place), PlaceChange(EVIL, EVIL, place, environment("x", None))),
        (Moved(EVIL, None, f"https://user:hunter2@host/{EVIL}"),),
        (Moved(EVIL, EVIL, EVIL),),
        identical=False,
    )
    meaning = Meaning(Kind.LOST, Severity.ERROR, EVIL)
    return Review(EVIL, EVIL, comparison, (Consequence(meaning, (EVIL,)),), (meaning,), (finding(Severity.ERROR, EVIL),), (finding(Severity.INFO, EVIL),))


def test_for_a_terminal() -> None:
    agree("lock-changes.txt", text(whole(), source(), color=False, width=100))
    agree("lock-changes-color.txt", text(whole(), source(), color=True, width=100))


def test_as_a_comment() -> None:
    agree("lock-changes.md", comment(whole(), source()))


def test_nothing_that_differs_is_said_too() -> None:
    same = Review("a.lock", "b.lock", PLAIN, (), (), (), ())
    assert text(same, source(), color=False, width=80) == "a.lock -> b.lock\nNo changes.\n"
    assert comment(same, source()) == "### Lock: a\\.lock → b\\.lock\n\nNo changes.\n"
    assert document(same, source())["changed"] is False
    words = replace(same, comparison=replace(PLAIN, identical=False))
    assert "only what the lock says about it differs" in text(words, source(), color=False, width=80)
    rules = replace(same, appeared=(finding(Severity.ERROR, "x"),))
    assert "GPU005" in text(rules, source(), color=False, width=80)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_text_holds_no_control_character_and_fits(width: int) -> None:
    for review in (whole(), hostile()):
        shown = text(review, source(), color=True, width=width)
        plain = OURS.sub("", shown)
        assert not RAW_CONTROL.search(plain)
        assert max(cells(line) for line in plain.splitlines()) <= max(width, 40)
        assert TOKEN not in shown
        assert "hunter2" not in shown


def test_a_comment_is_well_formed_whatever_the_names_are() -> None:
    for review, rows in ((whole(), 5), (hostile(), 2)):
        written = comment(review, source())
        tokens = MarkdownIt("commonmark").enable("table").parse(written)
        kinds = [token.type for token in tokens]
        assert kinds.count("table_open") == 1
        assert kinds.count("tr_open") == rows + 1
        assert kinds.count("td_open") == rows * 5
        assert kinds.count("heading_open") == 1
        inside = {child.type for token in tokens for child in token.children or ()}
        assert inside <= {"text", "text_special", "strong_open", "strong_close", "softbreak"}, "no link, image, code or HTML"
        assert [token.content.strip() for token in tokens if token.type == "html_block"] == [
            "<details><summary>Cards that the spec does not name</summary>",
            "</details>",
        ]
        assert "@team" not in written
        assert TOKEN not in written
        assert "hunter2" not in written
        assert not RAW_CONTROL.search(written)


def test_a_comment_with_very_many_packages_says_how_many_it_leaves_out() -> None:
    many = tuple(PackageChange(f"package-{number}", Held("1.0", "pypi"), None) for number in range(5000))
    written = comment(replace(whole(), comparison=replace(PLAIN, packages=many)), source())
    assert len(written) < 65_536
    assert LARGEST > len(written) - 3_000 > LARGEST - 3_000
    left = re.search(r"and (\d+) more, which do not fit", written)
    assert left is not None
    assert written.count("| package\\-") == 5000 - int(left[1])


def test_as_data() -> None:
    told = json.loads(json.dumps(document(whole(), source())))
    assert told["version"] == 1
    assert told["changed"] is True
    assert told["packages"][0] == {"name": "accelerate", "old": None, "new": {"version": "1.2.0", "index": "pypi", "unconfirmed": False}, "where": None}
    assert told["packages"][4]["where"] == ["server"]
    assert [(one["name"], one["suspicious"]) for one in told["files"]] == [("numpy", True), ("regex", False)]
    assert told["follows"][0]["kind"] == "code lost"
    assert told["follows"][0]["targets"] == ["server"]
    assert [one["id"] for one in told["findings"]["new"]] == ["GPU005"]
    assert [one["severity"] for one in told["findings"]["settled"]] == ["warning"]
    shown = json.dumps(document(hostile(), source()))
    assert TOKEN not in shown
    assert "hunter2" not in shown
