"""What each kind of place refuses because nothing does it yet, and what the rehearsal gets of the
declared training.
"""

from __future__ import annotations

from typing import Any

import pytest

from provision.facts import load_facts
from provision.spec import Spec
from provision.target_facts import find_target_refusals
from provision.verification.device_files import _from_facts

MODEL = {"parameters": "60M", "hidden_size": 512, "layers": 8}
SHAPE = {"model": MODEL, "batch_size": 4, "sequence_length": 512}


def spec(**fields: Any) -> Spec:
    return Spec.model_validate(
        {
            "name": "spec",
            "gpu": "none",
            "python": "3.11",
            "packages": ["torch"],
            "targets": {"local": {"kind": "local"}},
            **fields,
        }
    )


def routes(**fields: Any) -> list[tuple[str, ...]]:
    return [
        refusal.route for refusal in find_target_refusals(spec(**fields), "local", load_facts())
    ]


@pytest.mark.parametrize("tier", ["inventory", "quick", "deep", "burn"])
def test_every_tier_and_the_shape_of_the_model_are_taken(tier: str) -> None:
    assert routes(verify={"tier": tier}, training=SHAPE) == []


def test_what_a_place_without_a_card_cannot_show_is_refused_at_its_field() -> None:
    assert routes(requires={"vram": "24GB"}) == [("requires", "vram")]


def test_estimate_and_levers_travel_with_the_expectations() -> None:
    here, card = _from_facts(spec(training=SHAPE)), _from_facts(spec(gpu="L4", training=SHAPE))
    assert card["estimate_bytes"] - here["estimate_bytes"] == 10**9, (
        "there is no CUDA context without a card"
    )
    assert card["levers"][0]["saves_bytes"] >= card["levers"][-1]["saves_bytes"] > 0
    assert {"gradient_checkpointing": True} in [one["change"] for one in card["levers"]]
    assert "qlora" in [one["change"].get("method") for one in card["levers"]]
    assert here["levers"]
    assert "qlora" not in [one["change"].get("method") for one in here["levers"]], (
        "weights of 4 bits are for a card"
    )
    assert _from_facts(spec())["estimate_bytes"] is None
    assert _from_facts(spec())["levers"] == []


def test_a_card_without_bf16_is_not_told_to_use_it() -> None:
    changes = [
        one["change"]
        for gpu in ("T4", "L4")
        for one in _from_facts(spec(gpu=gpu, training={**SHAPE, "method": "inference"}))["levers"]
    ]
    assert {"precision": "fp16"} in changes
    assert {"precision": "bf16"} in changes
