"""Settings of single targets: rules see the merged values, and findings point at the target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from provision import source
from provision.diagnostics import RouteLocation, Severity
from provision.facts import Facts
from provision.rules import RULES, LintContext
from provision.spec import Spec
from tests.rules.conftest import Ask, Disk

TOP = 'gpu: T4\npython: "3.12"\npackages: [torch]\n'
SETTINGS = ("env", "secrets", "training")


def test_a_rule_points_at_the_field_of_the_target(ask: Ask) -> None:
    judged = ask(
        TOP + "training: {precision: fp16}\ntargets:\n  a: {kind: local}\n"
        '  b: {kind: local, training: {precision: bf16}, env: {RANK: "0"}}\n'
    )
    precision, rank = judged.one("GPU004"), judged.one("ENV001")
    assert precision.where == RouteLocation(("targets", "b", "training", "precision"))
    assert judged.at(precision) == "bf16"
    assert judged.at(rank) == "RANK"
    assert precision.fix is not None
    (text,) = judged.source.apply_fixes([precision.fix]).values()
    assert "b: {kind: local, training: {precision: fp16}" in text
    assert ask(text).of("GPU004") == []


def test_a_target_that_corrects_the_spec_has_no_finding(ask: Ask) -> None:
    spec = TOP + 'training: {precision: bf16}\nenv: {RANK: "0"}\ntargets:\n'
    fixed = "  b: {kind: local, training: {precision: fp16}, env: {RANK: null}}\n"
    judged = ask(spec + fixed)
    assert (judged.of("GPU004"), judged.of("ENV001")) == ([], [])
    judged = ask(spec + "  a: {kind: local}\n" + fixed)
    assert judged.at(judged.one("GPU004")) == "bf16"
    assert judged.at(judged.one("ENV001")) == "RANK"


def test_a_finding_about_the_spec_is_shown_once_for_all_targets(ask: Ask) -> None:
    targets = "".join(f'  t{n}: {{kind: local, env: {{N: "{n}"}}}}\n' for n in range(3))
    judged = ask(TOP + 'env: {RANK: "0"}\ntargets:\n' + targets)
    assert judged.at(judged.one("ENV001")) == "RANK"


def test_a_secret_with_a_source_for_every_target_has_no_finding(ask: Ask) -> None:
    secret = "{env: A, colab: B, secret: projects/my-project/secrets/hf/versions/3}"
    targets = (
        "targets:\n  laptop: {kind: local}\n  colab: {kind: colab, isolation: venv}\n"
        "  wb: {kind: workbench, project: my-project, zones: [us-central1-a]}\n"
    )
    judged = ask(f"{TOP}secrets: {{HF_TOKEN: {secret}}}\n{targets}")
    assert (judged.of("SEC004"), judged.of("GCP023")) == ([], [])
    judged = ask(f"{TOP}secrets: {{HF_TOKEN: {{env: A, colab: B}}}}\n{targets}")
    assert judged.one("GCP023").where == RouteLocation(("secrets", "HF_TOKEN"))
    assert judged.one("GCP023").severity is Severity.WARNING
    assert "from colab or env" in judged.one("GCP023").message


def test_a_secret_that_one_target_declares_or_removes(ask: Ask) -> None:
    spec = f"{TOP}secrets: {{HF_TOKEN: {{env: A}}}}\ntargets:\n  laptop: {{kind: local}}\n"
    colab = "  colab: {{kind: colab, isolation: venv, secrets: {}}}\n"
    assert ask(spec + colab.format("{HF_TOKEN: null}")).of("SEC004") == []
    assert ask(spec + colab.format("{HF_TOKEN: {colab: B}}")).of("SEC004") == []
    found = ask(spec + colab.format("{OTHER: {env: B}}"))
    finding = next(one for one in found.of("SEC004") if "OTHER" in one.message)
    assert finding.where == RouteLocation(("targets", "colab", "secrets", "OTHER", "env"))
    assert finding.severity is Severity.ERROR


def test_a_secret_that_no_target_keeps_needs_no_source(ask: Ask) -> None:
    spec = f"{TOP}secrets: {{HF_TOKEN: {{colab: A}}}}\ntargets:\n"
    assert ask(spec + "  a: {kind: local}\n").one("SEC004").severity is Severity.ERROR
    assert ask(spec + "  a: {kind: local, secrets: {HF_TOKEN: null}}\n").of("SEC004") == []


def test_a_token_in_the_settings_of_a_target_is_a_secret(ask: Ask) -> None:
    token = "hf_" + "a" * 30
    judged = ask(f"{TOP}targets: {{a: {{kind: local, env: {{GREETING: {token}}}}}}}\n")
    assert judged.at(judged.one("SEC001")) == token


READ: set[str] = set()
JUDGE_EACH_TARGET = {"SEC001", "SEC004", "GCP023", "SPC009"}
"""Rules that read the settings of each target themselves."""


class Watched(Spec):
    """A spec that notes which settings are read."""

    def __getattribute__(self, name: str) -> Any:
        if name in SETTINGS:
            READ.add(name)
        return super().__getattribute__(name)


def test_a_rule_that_reads_settings_says_so(
    tmp_path: Path, facts: Facts, subtests: pytest.Subtests
) -> None:
    path = tmp_path / "spec.yaml"
    for rule in RULES:
        read = set[str]()
        for example in (*rule.bad, *rule.good):
            path.write_text(example.spec, encoding="utf-8")
            (document,) = source.read_spec_file(path, Disk())  # type: ignore[arg-type]
            assert document.data is not None
            spec = Watched.model_validate({"name": "spec", **document.data})
            READ.clear()
            tuple(rule.check(LintContext(spec, document, facts, example.resolved)))
            read |= READ
        with subtests.test(rule.id):
            assert rule.reads_settings == bool(read) or rule.id in JUDGE_EACH_TARGET
