"""Packages with compiled code decide the CUDA major of the torch build."""

from __future__ import annotations

import pytest

from provision.facts import load_facts
from provision.lock.cuda_ties import cuda_ties
from provision.lock.flavours import propose_flavours
from provision.spec import Spec

FACTS = load_facts()


def spec(*packages: object, **fields: object) -> Spec:
    """A spec for an L4 whose driver is not known."""
    return Spec.model_validate(
        {"gpu": "L4", "python": "3.12", "packages": list(packages), **fields}
    )


@pytest.mark.parametrize(
    ("packages", "requires", "flavour", "reason"),
    [
        (["torch==2.13.0"], {}, "cu126", "the driver is unknown"),
        (["torch==2.13.0", "torchao"], {}, "cu126", "the driver is unknown"),
        (["torch==2.10.0", "vllm"], {}, "cu128", "vllm 0.19.1 is compiled for CUDA 12"),
        (["torch==2.14.0", "vllm"], {}, "cu130", "vllm 0.33.0 is compiled for CUDA 13"),
        (["torch==2.14.0", "vllm"], {"driver": "==550.*"}, "cu126", "runs with"),
        (
            ["torch==2.10.0", "vllm"],
            {"driver": ">=580"},
            "cu128",
            "vllm 0.19.1 is compiled for CUDA 12",
        ),
        (["torch==2.10.0"], {"driver": ">=580"}, "cu130", "the newest build"),
    ],
)
def test_the_flavour_that_is_chosen(
    packages: list[str], requires: dict[str, str], flavour: str, reason: str
) -> None:
    proposal = next(iter(propose_flavours(spec(*packages, requires=requires), FACTS)))
    (choice,) = proposal.choices.values()
    assert choice.flavour == flavour
    assert reason in choice.reason


def test_a_package_from_another_index_or_that_is_built_ties_nothing() -> None:
    indexes = {"ours": {"url": "https://packages.example.com/simple"}}
    for package in ({"name": "vllm", "index": "ours"}, {"name": "vllm", "build": True}):
        assert cuda_ties(spec("torch", package, indexes=indexes), FACTS, "2.14.0") == []
    assert [tie.cuda_major for tie in cuda_ties(spec("vllm"), FACTS, "2.14.0")] == ["13"]
    assert cuda_ties(spec("vllm==99"), FACTS, "2.14.0") == []
