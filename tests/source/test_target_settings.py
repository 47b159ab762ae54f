"""How the `env`, `secrets` and `training` of a target merge over those of the spec."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from provision.spec import Precision, Spec

TOP: dict[str, Any] = {"name": "s", "gpu": "none", "python": "3.12", "packages": ["torch"]}


def merged(own: dict[str, Any], **fields: Any) -> Spec:
    targets = {"a": {"kind": "local", **own}, "b": {"kind": "local"}}
    spec = Spec.model_validate({**TOP, **fields, "targets": targets})
    assert spec.for_target("b").env == spec.env
    return spec.for_target("a")


def test_variables_merge_and_null_removes() -> None:
    spec = merged({"env": {"A": None, "C": "3"}}, env={"A": "1", "B": "2"})
    assert spec.env == {"B": "2", "C": "3"}


def test_secrets_merge_source_by_source() -> None:
    secrets = {"T": {"env": "A", "colab": "B"}, "U": {"env": "U"}}
    spec = merged({"secrets": {"T": {"env": "C"}, "U": None, "V": {"env": "V"}}}, secrets=secrets)
    assert {name: (one.env, one.colab) for name, one in spec.secrets.items()} == {
        "T": ("C", "B"),
        "V": ("V", None),
    }


def test_training_merges_key_by_key() -> None:
    training = {
        "precision": "bf16",
        "batch_size": 4,
        "model": {"parameters": "1B", "layers": 2},
        "arguments": {"warmup_steps": 10, "seed": 1},
    }
    own = {
        "precision": None,
        "sequence_length": 8,
        "model": {"layers": 3},
        "arguments": {"seed": None, "logging_steps": 5},
    }
    found = merged({"training": own}, training=training).training
    assert (found.precision, found.batch_size, found.sequence_length) == (Precision.FP32, 4, 8)
    assert found.arguments == {"warmup_steps": 10, "logging_steps": 5}
    assert found.model is not None
    assert (found.model.parameters, found.model.layers) == ("1B", 3)
    assert merged({"training": {"model": None}}, training=training).training.model is None


def test_a_target_without_settings_has_those_of_the_spec() -> None:
    spec = Spec.model_validate({**TOP, "env": {"A": "1"}, "targets": {"a": {"kind": "local"}}})
    assert spec.with_settings_of("a") is spec


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"env": {"PATH": "/bin"}}, "is set by the environment itself"),
        ({"secrets": {"PROVISION_X": {"env": "X"}}}, "is set by the environment itself"),
        ({"secrets": {"T": {}}}, "set at least one of"),
        ({"secrets": {"T": "hf_abc"}}, "never contains them"),
        ({"training": {"precison": "bf16"}}, "Extra inputs"),
        ({"training": {"gradient_checkpointing": "yes"}}, "valid boolean"),
    ],
)
def test_settings_of_a_target_are_as_strict_as_those_of_the_spec(
    own: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        merged(own)


@pytest.mark.parametrize(
    ("gpu", "strategy", "packages", "is_set"),
    [
        ("none", "ddp", ["transformers"], True),
        ("none", "fsdp", ["torch", "accelerate"], True),
        ("none", "none", ["transformers"], False),
        ("none", "ddp", ["torch"], False),
        ("L4:2", "ddp", ["transformers"], False),
    ],
)
def test_processes_on_a_cpu_get_the_variable_that_connects_them(
    gpu: str, strategy: str, packages: list[str], is_set: bool
) -> None:
    fields = {"gpu": gpu, "packages": packages, "training": {"strategy": strategy}}
    spec = Spec.model_validate({**TOP, **fields, "targets": {"a": {"kind": "local"}}})
    expected = {"ACCELERATE_USE_CPU": "true"} if is_set else {}
    assert spec.for_target("a").env == expected
    own = Spec.model_validate({**spec.model_dump(), "env": {"ACCELERATE_USE_CPU": "false"}})
    assert own.for_target("a").env == {"ACCELERATE_USE_CPU": "false"}
