"""What differs between two locks as text, Markdown and data: exact words, and nothing harmful
whatever an older lock holds.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from provision.diagnostics import Diagnostic, RouteLocation, Severity
from provision.facts.torch_upgrade import Implication, ImplicationKind
from provision.lock import LockedEnvironment
from provision.lock.diff import (
    Consequence,
    FilesChange,
    LockDiff,
    LockedVersion,
    LockReview,
    PackageChange,
    TargetChange,
    ValueChange,
)
from provision.views.diff.lock_markdown import MAX_TABLE_CHARACTERS, render_comment
from provision.views.diff.lock_text import render_text, to_json
from provision.views.formatting import display_width
from tests.views.builders import Draft, agree, draft

RAW_CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
OURS = re.compile(r"\x1b\[[0-9;]*m")
EVIL = "evil|`<img src=x>\n\n# @team [a](http://b) \x1b[31m\u202e</details>"
TOKEN = "hf_" + "Zq3" * 10
PLAIN = LockDiff(None, (), 4, (), (), (), (), identical=True)


def source() -> Draft:
    return draft(
        {"spec.yaml": "gpu: V100\npackages: [torch, numpy]\n"},
        packages__0=("spec.yaml", "torch"),
        gpu=("spec.yaml", "V100"),
    )


def finding(severity: Severity, message: str) -> Diagnostic:
    return Diagnostic(
        "GPU005",
        "card-not-in-build",
        severity,
        message,
        RouteLocation(("gpu",)),
        "why",
        "take another card",
    )


def environment(key: str, flavour: str | None) -> LockedEnvironment:
    return LockedEnvironment(key, "linux-x86_64", flavour, "2.28", None, "")


def whole() -> LockReview:
    cu128, cpu = environment("linux-x86_64-cu128", "cu128"), environment("linux-x86_64-cpu", "cpu")
    comparison = LockDiff(
        python=ValueChange("python", "3.11", "3.12"),
        packages=(
            PackageChange("accelerate", None, LockedVersion("1.2.0", "pypi")),
            PackageChange("gone", LockedVersion("1.0", "pypi"), None),
            PackageChange(
                "inner",
                LockedVersion("1.0", "pypi"),
                LockedVersion("1.0", "private", unconfirmed=True),
            ),
            PackageChange(
                "torch",
                LockedVersion("2.10.0+cpu", "pytorch-cpu"),
                LockedVersion("2.11.0+cpu", "pytorch-cpu"),
                ("laptop", "here on linux-x86_64"),
            ),
            PackageChange(
                "torch",
                LockedVersion("2.10.0+cu128", "pytorch-cu128"),
                LockedVersion("2.11.0+cu128", "pytorch-cu128"),
                ("server",),
            ),
        ),
        unchanged=30,
        files=(
            FilesChange("numpy", "2.3.0", ("numpy-2.3.0-py3-none-any.whl",), (), (), 0),
            FilesChange("regex", "1.0", (), ("regex-1.0-musl.whl",), (), 2),
        ),
        targets=(
            TargetChange("laptop", "linux-x86_64", None, cpu),
            TargetChange("old", "linux-x86_64", cu128, None),
            TargetChange("server", "linux-x86_64", cpu, replace(cu128, glibc=None)),
        ),
        indexes=(ValueChange("private", "https://a.example/simple", "https://b.example/simple"),),
        inputs=(
            ValueChange("packages", None, "accelerate>=1"),
            ValueChange(
                "targets.colab", "colab 2026.07 system gpu=T4", "colab 2026.10 system gpu=T4"
            ),
        ),
        identical=False,
    )
    follows = (
        Consequence(
            Implication(
                ImplicationKind.LOST,
                Severity.ERROR,
                "torch 2.10.0 -> 2.11.0 (cu128): V100 loses sm_70",
            ),
            ("server",),
        ),
        Consequence(
            Implication(
                ImplicationKind.PYTHON,
                Severity.INFO,
                "Python 3.11 -> 3.12: security fixes until 2028-10",
            ),
            (),
        ),
    )
    others = (
        Implication(
            ImplicationKind.LOST,
            Severity.INFO,
            "torch 2.10.0 -> 2.11.0 (cu128) no longer has code for TITAN-V",
        ),
    )
    new, settled = (
        finding(Severity.ERROR, "torch 2.11.0 has no code for V100"),
        finding(Severity.WARNING, "torch 2.10.0 is old"),
    )
    return LockReview("old.lock", "spec.lock", comparison, follows, others, (new,), (settled,))


def hostile() -> LockReview:
    held, place = LockedVersion(EVIL, EVIL), replace(environment(EVIL, EVIL), glibc=EVIL)
    comparison = LockDiff(
        ValueChange("python", EVIL, EVIL),
        (
            PackageChange(EVIL, held, LockedVersion(TOKEN, "x", unconfirmed=True), (EVIL,)),
            PackageChange(EVIL, None, held),
        ),
        0,
        (FilesChange(EVIL, EVIL, (EVIL,), (EVIL,), (EVIL,), 0),),
        (
            TargetChange(EVIL, EVIL, None, place),
            TargetChange(EVIL, EVIL, place, environment("x", None)),
        ),
        (ValueChange(EVIL, None, f"https://user:hunter2@host/{EVIL}"),),
        (ValueChange(EVIL, EVIL, EVIL),),
        identical=False,
    )
    meaning = Implication(ImplicationKind.LOST, Severity.ERROR, EVIL)
    return LockReview(
        EVIL,
        EVIL,
        comparison,
        (Consequence(meaning, (EVIL,)),),
        (meaning,),
        (finding(Severity.ERROR, EVIL),),
        (finding(Severity.INFO, EVIL),),
    )


def test_for_a_terminal() -> None:
    agree("lock-changes.txt", render_text(whole(), source(), color=False, width=100))
    agree("lock-changes-color.txt", render_text(whole(), source(), color=True, width=100))


def test_as_a_comment() -> None:
    agree("lock-changes.md", render_comment(whole(), source()))


def test_nothing_that_differs_is_said_too() -> None:
    same = LockReview("a.lock", "b.lock", PLAIN, (), (), (), ())
    assert render_text(same, source(), color=False, width=80) == "a.lock -> b.lock\nNo changes.\n"
    assert render_comment(same, source()) == "### Lock: a\\.lock → b\\.lock\n\nNo changes.\n"
    assert to_json(same, source())["changed"] is False
    words = replace(same, comparison=replace(PLAIN, identical=False))
    assert "only other parts of the lock differ" in render_text(
        words, source(), color=False, width=80
    )
    rules = replace(same, new_findings=(finding(Severity.ERROR, "x"),))
    assert "GPU005" in render_text(rules, source(), color=False, width=80)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_text_holds_no_control_character_and_fits(width: int) -> None:
    for review in (whole(), hostile()):
        shown = render_text(review, source(), color=True, width=width)
        plain = OURS.sub("", shown)
        assert not RAW_CONTROL.search(plain)
        assert max(display_width(line) for line in plain.splitlines()) <= max(width, 40)
        assert TOKEN not in shown
        assert "hunter2" not in shown


def test_a_comment_is_well_formed_whatever_the_names_are() -> None:
    for review, rows in ((whole(), 5), (hostile(), 2)):
        written = render_comment(review, source())
        tokens = MarkdownIt("commonmark").enable("table").parse(written)
        kinds = [token.type for token in tokens]
        assert kinds.count("table_open") == 1
        assert kinds.count("tr_open") == rows + 1
        assert kinds.count("td_open") == rows * 5
        assert kinds.count("heading_open") == 1
        inside = {child.type for token in tokens for child in token.children or ()}
        assert inside <= {"text", "text_special", "strong_open", "strong_close", "softbreak"}, (
            "no link, image, code or HTML"
        )
        assert [token.content.strip() for token in tokens if token.type == "html_block"] == [
            "<details><summary>GPUs that the spec does not declare</summary>",
            "</details>",
        ]
        assert "@team" not in written
        assert TOKEN not in written
        assert "hunter2" not in written
        assert not RAW_CONTROL.search(written)


def test_a_comment_with_very_many_packages_says_how_many_it_leaves_out() -> None:
    many = tuple(
        PackageChange(f"package-{number}", LockedVersion("1.0", "pypi"), None)
        for number in range(5000)
    )
    written = render_comment(replace(whole(), comparison=replace(PLAIN, packages=many)), source())
    assert len(written) < 65_536
    assert MAX_TABLE_CHARACTERS > len(written) - 3_000 > MAX_TABLE_CHARACTERS - 3_000
    left = re.search(r"and (\d+) more, which do not fit", written)
    assert left is not None
    assert written.count("| package\\-") == 5000 - int(left[1])


def test_as_data() -> None:
    told = json.loads(json.dumps(to_json(whole(), source())))
    assert told["version"] == 1
    assert told["changed"] is True
    assert told["packages"][0] == {
        "name": "accelerate",
        "old": None,
        "new": {"version": "1.2.0", "index": "pypi", "unconfirmed": False},
        "where": None,
    }
    assert told["packages"][4]["where"] == ["server"]
    assert [(one["name"], one["suspicious"]) for one in told["files"]] == [
        ("numpy", True),
        ("regex", False),
    ]
    assert told["follows"][0]["kind"] == "code lost"
    assert told["follows"][0]["targets"] == ["server"]
    assert [one["id"] for one in told["findings"]["new"]] == ["GPU005"]
    assert [one["severity"] for one in told["findings"]["settled"]] == ["warning"]
    shown = json.dumps(to_json(hostile(), source()))
    assert TOKEN not in shown
    assert "hunter2" not in shown
