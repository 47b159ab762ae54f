"""The list of findings: every kind can occur, and its text is harmless."""

import re

import pytest

from provision.diagnostics import RelatedLocation, RouteLocation, Severity, Span
from provision.source.findings import FINDING_KINDS, MAX_MESSAGE_LENGTH, make_finding

OK = 'gpu: L4\npython: "3.12"\npackages: [torch]\n'
OF_FILES = ("IMP", "SUP", "POL", "REF006", "REF007", "REF009")
"""Kinds that are not about the text of a spec; they have tests of their own."""
SPEC_KINDS = [one for one in FINDING_KINDS if not one.id.startswith(OF_FILES)]
"""The kinds about specs; those about the files that `check` reads are in test_check.py, those about
comments in tests/rules/test_suppressions.py, those about policies in
tests/commands/test_lint_policy.py.
"""
EXAMPLES = {
    "syntax": "a: [\n",
    "duplicate-key": OK + "gpu: T4\n",
    "types-lost": OK + "cuda: 12.8\n",
    "encoding": b"\xff",
    "control-character": "a: \x07\n",
    "empty-document": "",
    "limit": "[" * 99,
    "root-not-mapping": "- a\n",
    "tag": "a: !b c\n",
    "alias": "a: *b\n",
    "key-not-text": "1: a\n",
    "merge-key": "<<: a\n",
    "number": "a: .inf\n",
    "duplicate-anchor": "a: &x 1\nb: &x 2\n",
    "yaml-version": "%YAML 1.1\n---\n" + OK,
    "unknown-key": OK + "a: 1\n",
    "missing-key": "gpu: L4\n",
    "wrong-type": OK + "env: a\n",
    "not-a-choice": OK + "platforms: [beos]\n",
    "bad-format": OK + "cuda: new\n",
    "out-of-range": OK + "targets: {}\n",
    "secret-written-out": OK + "secrets: {A: b}\n",
    "more-findings": OK + "env:\n" + "".join(f"  A{n}: 1\n" for n in range(101)),
    "extends-missing": "extends: nowhere.yaml\n",
    "extends-outside-root": "extends: ../x.yaml\n",
    "extends-cycle": "extends: spec.yaml\n",
    "extends-limit": "extends: 0.yaml\n",
    "extends-unusable": "extends: list.yaml\n",
    "model-config-unusable": OK + "training: {model: {id: ./nowhere}}\n",
}


def test_ids_and_names_are_unique_and_well_formed():
    assert (
        len({one.id for one in FINDING_KINDS})
        == len({one.name for one in FINDING_KINDS})
        == len(FINDING_KINDS)
    )
    for one in FINDING_KINDS:
        assert re.fullmatch(r"(YML|SPC|REF|IMP|SUP|POL)\d{3}", one.id)
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", one.name)
        assert one.explanation.endswith(".")


def test_every_kind_of_finding_has_an_example():
    assert set(EXAMPLES) == {one.name for one in SPEC_KINDS}


@pytest.mark.parametrize("kind", SPEC_KINDS, ids=lambda kind: kind.name)
def test_every_kind_of_finding_occurs_and_a_good_spec_has_none(folder, kind):
    folder.write("list.yaml", "- a\n")
    for number in range(10):
        folder.write(f"{number}.yaml", f"extends: {number + 1}.yaml\n")
    found = {
        one.name: one for linted in folder.lint_all(EXAMPLES[kind.name]) for one in linted.findings
    }
    assert found[kind.name].id == kind.id
    assert found[kind.name].severity is kind.severity
    assert folder.lint(OK).findings == ()


def test_only_what_leaves_the_meaning_clear_is_a_warning():
    kinds = [one for one in FINDING_KINDS if not one.id.startswith("SUP")]
    assert {one.name for one in kinds if one.severity is not Severity.ERROR} == {
        "duplicate-anchor",
        "yaml-version",
        "command-file-not-found",
        "include-not-read",
        "torch-build-without-index",
        "python-excluded",
    }


def test_the_text_of_a_finding_is_harmless_short_and_without_secrets():
    token = "hf_" + "a1B2" * 8
    one = make_finding(
        "syntax",
        f"\x1b[31m\u202e {token} " + "x" * 9_999,
        RouteLocation(()),
        why="a\nb\r",
        hint="\x00",
        related=(RelatedLocation(RouteLocation(()), f"\x07{token}"),),
    )
    said = one.message + one.why + one.help + one.related[0].text
    assert said.isprintable()
    assert token not in said
    assert len(one.message) == MAX_MESSAGE_LENGTH


def test_a_finding_of_the_text_names_a_span(lint):
    assert isinstance(lint("a: [\n").one("syntax").where, Span)
