"""A GPU is known by its own name, and by no other's."""

from __future__ import annotations

import re

import pytest

from provision.agent.core.gpu_names import is_declared_gpu
from provision.agent.notebook.document import RequiredGpu
from provision.agent.notebook.machine_check import _fits
from provision.agent.notebook.machine_info import GpuCard
from provision.facts import load_facts

DRIVER_NAMES = {
    "K80": "Tesla K80",
    "P4": "Tesla P4",
    "P100": "Tesla P100-PCIE-16GB",
    "V100": "Tesla V100-SXM2-16GB",
    "T4": "Tesla T4",
    "L4": "NVIDIA L4",
    "A100-40GB": "NVIDIA A100-SXM4-40GB",
    "A100-80GB": "NVIDIA A100-SXM4-80GB",
    "H100-80GB": "NVIDIA H100 80GB HBM3",
    "H100-MEGA-80GB": "NVIDIA H100 80GB HBM3",
    "H200-141GB": "NVIDIA H200",
    "B200": "NVIDIA B200",
    "RTX-PRO-6000": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
}
"""What the driver calls the GPUs of Compute Engine."""
INCLUDED_IN = {"H100-PCIe": {"H100", "H100-MEGA"}}
"""Cards whose declaration does not name a form factor, and so admits another card."""
CARDS = load_facts().cards


@pytest.mark.parametrize("name", DRIVER_NAMES)
def test_each_gpu_of_compute_engine_has_its_own_name_and_all_its_aliases(name: str) -> None:
    card = next(card for card in CARDS if card.name == name)
    for declared in (card.name, *card.aliases):
        assert is_declared_gpu(DRIVER_NAMES[name], declared), declared


@pytest.mark.parametrize("name", sorted(card.name for card in CARDS))
def test_a_gpu_is_no_other_one(name: str) -> None:
    spoken = DRIVER_NAMES.get(name, f"NVIDIA {name.replace('-', ' ')}")
    assert is_declared_gpu(spoken, name)
    same = {
        without_size(name),
        *(without_size(other) for other, told in DRIVER_NAMES.items() if told == spoken),
        *INCLUDED_IN.get(name, ()),
    }
    assert [
        card.name
        for card in CARDS
        if without_size(card.name) not in same and is_declared_gpu(spoken, card.name)
    ] == []


def without_size(name: str) -> str:
    """Drivers do not tell two GPUs apart that differ in memory only: the memory itself is looked
    at.
    """
    return re.sub(r"-\d+GB$", "", name)


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ("RTX-4090", "NVIDIA GeForce RTX 3090"),
        ("V100-32GB", "Tesla V100-SXM2-16GB"),
        ("L4", "NVIDIA L40S"),
        ("RTX-4060", "NVIDIA RTX 4060 Ti"),
    ],
)
def test_a_notebook_takes_no_other_gpu_either(declared: str, name: str) -> None:
    assert not _fits(GpuCard(name, "", 1, 1), RequiredGpu(declared, None, 1))
