"""`apply --tier`: another tier than the spec's, for one verification."""

from __future__ import annotations

import json

import pytest

from provision.cli.apply import TIERS
from provision.spec import TIERS as TIERS_OF_SPECS
from tests.rig import Bench, small_spec

DONE = "nothing has changed since"


def apply(bench: Bench, *words: str) -> tuple[str, str]:
    """Apply, and return the output and the tier of the report."""
    done = bench.run("apply", "spec.yaml", "--yes", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((bench.own / "reports/spec.local/report.json").read_bytes())
    return done.stdout + done.stderr, report["tier"]


@pytest.mark.long
def test_a_deeper_verification_counts_until_something_changes(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    assert apply(bench)[1] == "quick"
    assert DONE in bench.run("plan", "spec.yaml").stdout
    assert apply(bench, "--tier", "deep")[1] == "deep"
    assert DONE in bench.run("plan", "spec.yaml").stdout
    assert "drift" not in bench.run("status", "spec.yaml").stdout
    assert apply(bench)[1] == "deep"
    assert apply(bench, "--tier", "quick")[1] == "deep"
    assert apply(bench, "--tier", "quick", "--verify")[1] == "quick"
    bench.spec(small_spec("alpha", extra="verify: {tier: deep}\n"))
    assert "it was verified with tier quick" in bench.run("plan", "spec.yaml").stdout
    assert apply(bench, "--tier", "quick")[1] == "quick"
    bench.spec(small_spec("alpha", extra="env: {A: b}\n"))
    assert "has changed since it was verified" in bench.run("plan", "spec.yaml").stdout


@pytest.mark.parametrize(
    ("extra", "tier", "words"),
    [
        ("verify: {command: [python, -V]}\n", "inventory", "does not run verify.command"),
        (
            "targets: {c: {kind: colab, runtime: '2026.07', isolation: venv}}\n",
            "deep",
            "--tier has no effect on c, whose notebook is run in a browser",
        ),
        ("", "whole", "'whole' is not one of"),
    ],
)
def test_a_tier_that_cannot_be_had_is_an_error(
    bench: Bench, extra: str, tier: str, words: str
) -> None:
    bench.spec(small_spec("alpha", extra=extra))
    done = bench.run("apply", "spec.yaml", "--yes", "--tier", tier)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())


def test_the_option_offers_the_tiers_of_specs() -> None:
    assert TIERS == TIERS_OF_SPECS
