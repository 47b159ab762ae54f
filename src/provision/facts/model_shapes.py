"""Counts the parameters of a language model from the config.json of transformers.

The shapes are those of the modeling files of transformers 5.24.0. Tests compare a model of each
type with the table of models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

MAX_VALUE = 1 << 32
"""Largest number in a config.json that is taken for a size (our choice)."""
_GATED = frozenset(
    {"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3_text"}
    | {"phi3"}
)
"""Model types with three matrices in each MLP, grouped heads and RMS norms."""
_SHARES_EMBEDDING = frozenset({"gemma", "gemma2", "gemma3_text", "gpt2", "bert"})
"""Model types whose output layer is the embedding unless config.json says otherwise."""
_ALTERNATIVE_KEYS = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer"}

Config = Mapping[str, Any]


def sizes_of_config(config: Config) -> dict[str, int]:
    """Return `parameters`, `hidden_size` and `layers` of a config.json, as far as they follow.

    A model of several parts, such as text and images, has the shape of its text part and no count.
    """
    nested = config.get("text_config")
    text = nested if isinstance(nested, dict) else config
    sizes = {
        "hidden_size": _number(text, "hidden_size"),
        "layers": _number(text, "num_hidden_layers"),
        "parameters": None if text is not config else count_parameters(config),
    }
    return {name: size for name, size in sizes.items() if size}


def count_parameters(config: Config) -> int | None:
    """Return the parameters of a model; None for an unknown type or a missing size."""
    kind = str(config.get("model_type"))
    counts: dict[str, Callable[[Config], int]] = {
        **dict.fromkeys(_GATED, _count_gated),
        "gpt_neox": _count_gpt_neox,
        "phi": _count_phi,
        "gpt2": _count_gpt2,
        "bert": _count_bert,
    }
    if kind not in counts or config.get("quantization_config"):
        return None
    try:
        return counts[kind](config)
    except KeyError:
        return None


def _count_gated(config: Config) -> int:
    kind = config["model_type"]
    hidden, heads = _size(config, "hidden_size"), _size(config, "num_attention_heads")
    groups = _number(config, "num_key_value_heads") or heads
    head = _number(config, "head_dim") or hidden // heads
    attention = 2 * hidden * heads * head + 2 * hidden * groups * head
    if kind == "qwen2" or config.get("attention_bias") is True:
        attention += (heads + 2 * groups) * head + (0 if kind == "qwen2" else hidden)
    if kind in {"qwen3", "qwen3_moe", "gemma3_text"}:
        attention += 2 * head
    norms = (4 if kind in {"gemma2", "gemma3_text"} else 2) * hidden
    experts = _number(config, "num_local_experts") or _number(config, "num_experts")
    if kind in {"mixtral", "qwen3_moe"} and experts:
        width = _number(config, "moe_intermediate_size") or _size(config, "intermediate_size")
        mlp = experts * (3 * hidden * width + hidden)
    else:
        mlp = 3 * hidden * _size(config, "intermediate_size")
    layers = _size(config, "num_hidden_layers") * (attention + mlp + norms)
    return layers + hidden + _embeddings(config, hidden)


def _count_gpt_neox(config: Config) -> int:
    hidden = _size(config, "hidden_size")
    layers = _size(config, "num_hidden_layers") * (_plain_layer(config) + 4 * hidden)
    return layers + 2 * hidden + _embeddings(config, hidden)


def _count_phi(config: Config) -> int:
    hidden = _size(config, "hidden_size")
    layers = _size(config, "num_hidden_layers") * (_plain_layer(config) + 2 * hidden)
    return layers + 2 * hidden + _embeddings(config, hidden) + _size(config, "vocab_size")


def _count_gpt2(config: Config) -> int:
    hidden = _size(config, "hidden_size")
    width = _number(config, "n_inner") or 4 * hidden
    sized = {**config, "intermediate_size": width}
    layers = _size(config, "num_hidden_layers") * (_plain_layer(sized) + 4 * hidden)
    positions = _size(config, "n_positions") * hidden
    return layers + 2 * hidden + positions + _embeddings(config, hidden)


def _count_bert(config: Config) -> int:
    hidden = _size(config, "hidden_size")
    layers = _size(config, "num_hidden_layers") * (_plain_layer(config) + 4 * hidden)
    rows = _size(config, "max_position_embeddings") + _size(config, "type_vocab_size")
    pooler = hidden * hidden + hidden
    return layers + pooler + 2 * hidden + rows * hidden + _embeddings(config, hidden)


def _plain_layer(config: Config) -> int:
    """Return a layer of four square and two wide matrices with biases, without its norms."""
    hidden, width = _size(config, "hidden_size"), _size(config, "intermediate_size")
    return 4 * hidden * (hidden + 1) + 2 * hidden * width + width + hidden


def _embeddings(config: Config, hidden: int) -> int:
    shares = config.get("tie_word_embeddings", config["model_type"] in _SHARES_EMBEDDING)
    return _size(config, "vocab_size") * hidden * (1 if shares else 2)


def _size(config: Config, key: str) -> int:
    """Return a size; raise KeyError without a positive one."""
    size = _number(config, key)
    if size is None:
        raise KeyError(key)
    return size


def _number(config: Config, key: str) -> int | None:
    value = config.get(key, config.get(_ALTERNATIVE_KEYS.get(key, "")))
    return value if type(value) is int and 0 < value <= MAX_VALUE else None
