"""What a training run shows of itself: whose optimizer was built, told by its class."""

from __future__ import annotations

from typing import Any

import pytest

from provision.agent.probe.proofs.instrumentation import built_optimizer

BUILT = {
    "adamw_torch": "torch.optim.adamw.AdamW",
    "adamw_hf": "transformers.optimization.AdamW",
    "sgd": "torch.optim.sgd.SGD",
    "rmsprop": "torch.optim.rmsprop.RMSprop",
    "rmsprop_bnb_8bit": "bitsandbytes.optim.rmsprop.RMSprop",
    "paged_adamw_8bit": "bitsandbytes.optim.adamw.AdamW",
    "lion_32bit": "bitsandbytes.optim.lion.Lion",
    "ademamix_8bit": "bitsandbytes.optim.ademamix.AdEMAMix",
    "adamw_torch_4bit": "torchao.optim.adam.AdamW4bit",
    "adamw_torch_npu_fused": "torch_npu.optim.NpuFusedAdamW",
    "adamw_apex_fused": "apex.optimizers.fused_adam.FusedAdam",
    "adamw_anyprecision": "torchdistx.optimizers.AnyPrecisionAdamW",
    "galore_adamw_8bit": "galore_torch.adamw8bit.GaLoreAdamW8bit",
    "galore_adafactor": "galore_torch.adafactor.GaLoreAdafactor",
    "apollo_adamw": "apollo_torch.apollo.APOLLOAdamW",
    "schedule_free_radam": "schedulefree.radam_schedulefree.RAdamScheduleFree",
    "stable_adamw": "optimi.stableadamw.StableAdamW",
    "adalomo": "lomo_optim.adalomo.AdaLomo",
    "grokadamw": "grokadamw.GrokAdamW",
}
"""The class that transformers 5.23.0 and 4.57.6 build for each name."""
ANOTHER = [
    ("adamw_torch", "torch.optim.sgd.SGD"),
    ("adamw_torch", "grokadamw.GrokAdamW"),
    ("lomo", "lomo_optim.adalomo.AdaLomo"),
    ("galore_adamw", "torch.optim.adamw.AdamW"),
    ("schedule_free_adamw", "schedulefree.sgd_schedulefree.SGDScheduleFree"),
    ("lion_32bit", "torch.optim.adamw.AdamW"),
    ("adamw_8bit", "torch.optim.adamw.AdamW"),
    ("adamw_apex_fused", "torch.optim.adamw.AdamW"),
]


def made(name: str, **values: Any) -> Any:
    module, _, kind = name.rpartition(".")
    return type(kind, (), {"__module__": module, "defaults": {}, **values})()


@pytest.mark.parametrize("name", BUILT)
def test_the_class_that_belongs_to_a_name_is_it(name: str) -> None:
    assert built_optimizer(name, made(BUILT[name])) == name


@pytest.mark.parametrize(("name", "kind"), ANOTHER)
def test_another_class_is_told_by_its_own_name(name: str, kind: str) -> None:
    assert built_optimizer(name, made(kind)) == kind


def test_how_it_is_made_counts_too() -> None:
    fused = made("torch.optim.adamw.AdamW", defaults={"fused": True})
    assert built_optimizer("adamw_torch_fused", fused) == "adamw_torch_fused"
    assert (
        built_optimizer("adamw_torch_fused", made("torch.optim.adamw.AdamW"))
        == "torch.optim.adamw.AdamW, not fused"
    )
    bits = made("bitsandbytes.optim.adamw.AdamW", args=made("x.Args", optim_bits=32))
    assert built_optimizer("adamw_bnb_8bit", bits) == "bitsandbytes.optim.adamw.AdamW of 32 bits"
    assert built_optimizer("paged_adamw_32bit", bits) == "paged_adamw_32bit"


def test_what_accelerate_and_layerwise_ones_hold_is_looked_at() -> None:
    galore = made("galore_torch.adamw.GaLoreAdamW")
    behind = made(
        "transformers.trainer_pt_utils.LayerWiseDummyOptimizer", optimizer_dict={"a": galore}
    )
    assert built_optimizer("galore_adamw_layerwise", behind) == "galore_adamw_layerwise"
    wrapped = made(
        "accelerate.optimizer.AcceleratedOptimizer", optimizer=made("torch.optim.sgd.SGD")
    )
    assert built_optimizer("adamw_torch", wrapped) == "torch.optim.sgd.SGD"
