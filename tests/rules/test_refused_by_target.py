"""What a target refuses from the text of a spec is found by lint, with the same words."""

from __future__ import annotations

from typing import Any

import pytest

from provision.diagnostics import Severity
from provision.facts import load_facts
from provision.target_facts import find_target_refusals, find_unlockable
from tests.rules.conftest import Ask

TOP = 'gpu: none\npython: "3.12"\npackages: [numpy]\n'
LOCAL = "here: {kind: local}"
COLAB = "colab: {kind: colab, isolation: venv}"


@pytest.mark.parametrize(
    ("fields", "targets"),
    [
        ("", "here: {kind: local, kernel: true}"),
        ("conda_packages: [ffmpeg]", LOCAL),
        ('cuda_toolkit: "12.8"', LOCAL),
        ('cuda_toolkit: "12.8"', COLAB),
        ("requires: {vram: 16GiB}", LOCAL),
    ],
)
def test_the_words_of_lint_are_those_of_plan_and_lock(ask: Ask, fields: str, targets: str) -> None:
    judged = ask(f"{TOP}{fields}\ntargets: {{{targets}}}\n")
    found = {(finding.message, finding.help) for finding in judged.of("SPC009")}
    spec = judged.case.spec
    refusals = [*find_unlockable(spec)]
    for name in spec.targets:
        refusals += find_target_refusals(spec, name, load_facts())
    assert found == {(refusal.why, refusal.hint) for refusal in refusals}
    assert {finding.severity for finding in judged.of("SPC009")} == {Severity.ERROR}


def test_a_field_that_serves_another_target_is_a_warning(ask: Ask) -> None:
    text = 'gpu: L4\npython: "3.12"\npackages: [torch]\nrequires: {vram: 16GiB}\n'
    judged = ask(f"{text}targets: {{{LOCAL}, laptop: {{kind: local, gpu: none}}}}\n")
    assert judged.of("SPC009") == []
    text = f"{TOP}secrets: {{HF_TOKEN: {{env: HF_TOKEN}}}}\ntargets: {{{LOCAL}, {COLAB}}}\n"
    assert ask(text).one("SEC004").severity is Severity.WARNING


def test_a_secret_without_a_browser_cannot_be_read(ask: Ask) -> None:
    fields: dict[str, Any] = {"kind": "colab", "via": "colab-cli", "isolation": "venv"}
    listed = ", ".join(f"{key}: {value}" for key, value in fields.items())
    text = f"{TOP}secrets: {{HF_TOKEN: {{colab: HF_TOKEN}}}}\ntargets: {{colab: {{{listed}}}}}\n"
    assert "browser" in ask(text).one("SEC004").message
