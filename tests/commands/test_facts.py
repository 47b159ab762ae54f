"""provision facts: what it prints, as text and as data, and what it says when it knows nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rig import Bench


def document(bench: Bench, *words: str) -> dict[str, Any]:
    done = bench.run("facts", *words, "--output-format", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_why_a_build_of_torch(bench: Bench) -> None:
    done = bench.run("facts", "why", "torch:2.11.0:cu128")
    assert done.returncode == 0
    assert "builds:2.11.0:cu128:linux-x86_64" in done.stdout
    assert "build_cuda.sh" in done.stdout
    assert "old; confidence high" in done.stdout
    assert "has no code for K80" in done.stdout


def test_rows_as_data_carry_their_evidence(bench: Bench) -> None:
    for words in (("why", "gpu:L4"), ("show", "gpus", "nvidia-l4")):
        (row,) = document(bench, *words)["rows"]
        assert (row["table"], row["key"], row["values"]["cc"]) == ("gpus", "L4", "8.9")
        assert row["source"]
        assert row["confidence"] == "high"
        assert row["age_days"] is None or row["age_days"] >= 0
        assert row["follows"]


def test_lists(bench: Bench) -> None:
    names = {table["name"]: table for table in document(bench, "list")["tables"]}
    assert names["torch"]["rows"] >= 32
    assert names["prices"]["key"] == ["item", "card", "region"]
    assert len(document(bench, "list", "gpus")["rows"]) == names["gpus"]["rows"]
    done = bench.run("facts", "list")
    assert "cuda.toolkits" in done.stdout
    assert bench.run("facts", "list", "pythons").stdout.splitlines()[0] == "3.9"


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("why", "torch:2.110.0:cu128"), "2.11.0:cu128"),
        (("why", "RTX-5095"), "RTX-5090"),
        (("show", "gpus", "L44"), "L4"),
        (("show", "gpu", "L4"), "gpus"),
        (("list", "torchs"), "torch"),
    ],
)
def test_an_unknown_key_names_the_nearest(bench: Bench, words: tuple[str, ...], near: str) -> None:
    done = bench.run("facts", *words)
    assert done.returncode == 1
    assert done.stdout == ""
    assert (
        f"there are no facts about {words[-1] if words[:2] != ('show', 'gpu') else 'gpu'}"
        in done.stderr
    )
    assert near in done.stderr
    data = bench.run("facts", *words, "--output-format", "json")
    assert data.returncode == 1
    assert near in " ".join(json.loads(data.stdout)["nearest"])


def test_nothing_near_is_nothing_named(bench: Bench) -> None:
    done = bench.run("facts", "why", "zzzzzzzzzz\x1b[31m")
    assert done.returncode == 1
    assert "nearest" not in done.stderr
    assert "\x1b" not in done.stderr


def test_a_thing_in_the_place_of_a_command_is_told_how_to_ask(bench: Bench) -> None:
    done = bench.run("facts", "V100")
    assert done.returncode == 2
    assert "provision facts why V100" in done.stderr
    near = bench.run("facts", "lst")
    assert "Did you mean 'list'?" in near.stderr
    assert "facts why" not in near.stderr
    assert "facts why" not in bench.run("facts", "--nope").stderr


def test_help_shows_the_command_among_checks_with_an_example(bench: Bench) -> None:
    overview = bench.run("--help").stdout
    assert overview.index("lint") < overview.index("facts") < overview.index("schema")
    assert "provision facts why torch:2.11.0:cu128" in bench.run("facts", "--help").stdout
