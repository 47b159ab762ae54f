"""`provision explain`: every id and name leads to its page, anything else to the nearest one."""

from __future__ import annotations

import json
import subprocess

import pytest

from provision.commands.explain import all_pages, find_page
from provision.errors import CheckFailed
from provision.rules import RULES, load_notebook_rules, render_rule_page
from provision.source import FINDING_KINDS
from tests import fork_server


def provision(*words: str) -> subprocess.CompletedProcess[str]:
    return fork_server.run(
        [*fork_server.ARGV, *words],
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )


def test_there_is_a_page_for_everything_that_lint_can_say() -> None:
    rules = {rule.id for rule in (*RULES, *load_notebook_rules())}
    assert {one.id for one in all_pages()} == rules | {kind.id for kind in FINDING_KINDS} | {
        "BUG000"
    }
    assert (
        len({one.id for one in all_pages()})
        == len({one.name for one in all_pages()})
        == len(all_pages())
    )


@pytest.mark.thorough
def test_id_and_name_in_any_case_lead_to_the_page(subtests: pytest.Subtests) -> None:
    for one in all_pages():
        with subtests.test(one.id):
            identity, name = one.id, one.name
            assert all(
                find_page(word) == one
                for word in (identity, identity.lower(), name, name.upper(), name.replace("-", "_"))
            )
            assert identity in find_page(identity).markdown
            assert find_page(identity).description


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("REF11", "REF101"),
        ("trainer-need-accelerate", "trainer-needs-accelerate"),
        ("duplicate-kye", "duplicate-key"),
        ("SEC01", "SEC001"),
        ("PKG01", "did you mean PKG001, PKG010 or PKG011?"),
        ("pkg-1", "did you mean PKG001?"),
        ("PKG", "PKG001"),
        ("accelerate", "trainer-needs-accelerate"),
    ],
)
def test_what_is_mistyped_is_refused_with_the_nearest(word: str, near: str) -> None:
    with pytest.raises(CheckFailed) as refused:
        find_page(word)
    assert refused.value.exit_code == 1
    assert near in refused.value.hint


def test_what_resembles_nothing_gets_no_guess() -> None:
    with pytest.raises(CheckFailed) as refused:
        find_page("?" * 100_000)
    assert "did you mean" not in refused.value.hint
    assert len(refused.value.what) < 100


@pytest.mark.parametrize("word", ["H05", "h05", "D02", "P06:torch"])
def test_a_check_of_a_verification_is_told_from_a_finding(word: str) -> None:
    done = provision("explain", word)
    assert done.returncode == 1
    assert f"{word[:3].upper()} is a check of `provision verify`" in done.stderr
    assert "did you mean" not in done.stderr
    assert f"provision verify --only {word[:3].upper()}" in done.stderr


def test_the_forms_of_the_command() -> None:
    rule = RULES[0]
    as_text, as_json, as_markdown = (
        provision("explain", rule.id, "--output-format", form)
        for form in ("text", "json", "markdown")
    )
    assert (as_text.returncode, as_json.returncode, as_markdown.returncode) == (0, 0, 0)
    assert as_markdown.stdout == render_rule_page(rule)
    assert json.loads(as_json.stdout)["markdown"] == render_rule_page(rule)
    assert as_text.stdout.startswith(f"{rule.id} {rule.name}\n")
    refused = provision("explain", "no\x1b[2Jthing")
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert "\x1b" not in refused.stderr
