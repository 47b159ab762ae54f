"""Parameters counted from a config.json, against the table of models."""

from __future__ import annotations

from typing import Any

import pytest

from provision.facts.lazy_tables import load_models
from provision.facts.model_shapes import count_parameters, sizes_of_config


def config(
    kind: str, hidden: int, layers: int, heads: int, groups: int, width: int, vocabulary: int
) -> dict[str, Any]:
    return {
        "model_type": kind,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "intermediate_size": width,
        "vocab_size": vocabulary,
    }


SHARED = {"tie_word_embeddings": True}
CONFIGS = {
    "meta-llama/Llama-3.1-8B": config("llama", 4096, 32, 32, 8, 14336, 128256),
    "meta-llama/Llama-3.2-1B": config("llama", 2048, 16, 32, 8, 8192, 128256) | SHARED,
    "mistralai/Mixtral-8x7B-v0.1": config("mixtral", 4096, 32, 32, 8, 14336, 32000)
    | {"num_local_experts": 8},
    "Qwen/Qwen2.5-0.5B": config("qwen2", 896, 24, 14, 2, 4864, 151936) | SHARED,
    "Qwen/Qwen2.5-7B": config("qwen2", 3584, 28, 28, 4, 18944, 152064),
    "Qwen/Qwen3-0.6B": config("qwen3", 1024, 28, 16, 8, 3072, 151936) | SHARED | {"head_dim": 128},
    "google/gemma-2b": config("gemma", 2048, 18, 8, 1, 16384, 256000) | {"head_dim": 256},
    "google/gemma-2-2b": config("gemma2", 2304, 26, 8, 4, 9216, 256000) | {"head_dim": 256},
    "google/gemma-3-1b-it": config("gemma3_text", 1152, 26, 4, 1, 6912, 262144) | {"head_dim": 256},
    "microsoft/Phi-3-mini-4k-instruct": config("phi3", 3072, 32, 32, 32, 8192, 32064),
    "EleutherAI/pythia-160m": config("gpt_neox", 768, 12, 12, 12, 3072, 50304),
    "microsoft/phi-2": config("phi", 2560, 32, 32, 32, 10240, 51200),
    "openai-community/gpt2": {
        "model_type": "gpt2",
        "n_embd": 768,
        "n_layer": 12,
        "n_positions": 1024,
        "vocab_size": 50257,
    },
    "google-bert/bert-base-uncased": config("bert", 768, 12, 12, 12, 3072, 30522)
    | {"max_position_embeddings": 512, "type_vocab_size": 2},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_count_is_that_of_the_table(name: str) -> None:
    known = load_models()[name.lower()]
    assert sizes_of_config(CONFIGS[name]) == {
        "parameters": known.parameters,
        "hidden_size": known.hidden_size,
        "layers": known.layers,
    }


LLAMA = CONFIGS["meta-llama/Llama-3.1-8B"]


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "own"},
        {"vocab_size": None},
        {"hidden_size": 0},
        {"quantization_config": {"bits": 4}},
    ],
)
def test_a_count_that_does_not_follow_is_none(change: dict[str, Any]) -> None:
    assert count_parameters(LLAMA | change) is None


def test_a_model_of_several_parts_has_the_shape_of_its_text_and_no_count() -> None:
    nested = {"model_type": "gemma3", "text_config": LLAMA, "vision_config": {"hidden_size": 1}}
    assert sizes_of_config(nested) == {"hidden_size": 4096, "layers": 32}
