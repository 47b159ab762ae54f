"""Cards are found by the names that nvidia-smi, lspci and clouds print."""

from __future__ import annotations

from collections import defaultdict

import pytest

from provision.facts import Facts, load_facts
from provision.facts.card_names import reduce_name

PRINTED = {
    "Tesla K80": "K80",
    "Tesla M40 24GB": "M40-24GB",
    "Tesla P100-PCIE-16GB": "P100",
    "Tesla P100-PCIE-12GB": "P100-12GB",
    "Tesla V100-SXM2-16GB": "V100",
    "Tesla V100-SXM2-32GB": "V100-32GB",
    "Tesla V100S-PCIE-32GB": "V100S",
    "Tesla T4": "T4",
    "NVIDIA A10G": "A10G",
    "NVIDIA A100-SXM4-40GB": "A100-40GB",
    "NVIDIA A100-SXM4-80GB": "A100-80GB",
    "NVIDIA A100 80GB PCIe": "A100-80GB",
    "NVIDIA A100-SXM-80GB": "A100-80GB",
    "GA100 [A100 SXM4 80GB]": "A100-80GB",
    "AD102 [GeForce RTX 4090]": "RTX-4090",
    "TU104GL [Tesla T4]": "T4",
    "NVIDIA A800-SXM4-80GB": "A800-80GB",
    "NVIDIA A800 80GB PCIe": "A800-80GB",
    "NVIDIA H100 80GB HBM3": "H100-80GB",
    "NVIDIA H100 PCIe": "H100-PCIe",
    "NVIDIA H100 NVL": "H100-NVL",
    "NVIDIA H800": "H800",
    "NVIDIA H20": "H20",
    "NVIDIA H20-3e": "H20-3e",
    "NVIDIA H200": "H200-141GB",
    "NVIDIA H200 NVL": "H200-NVL",
    "NVIDIA GH200 480GB": "GH200",
    "NVIDIA GH200 144G HBM3e": "GH200-144GB",
    "NVIDIA L20": "L20",
    "NVIDIA L40S": "L40S",
    "NVIDIA B300 SXM6 AC": "B300",
    "NVIDIA GB10": "GB10",
    "NVIDIA GeForce RTX 2070 SUPER": "RTX-2070-SUPER",
    "NVIDIA GeForce RTX 4070 Ti SUPER": "RTX-4070-Ti-SUPER",
    "NVIDIA GeForce RTX 4090 D": "RTX-4090-D",
    "NVIDIA GeForce RTX 4090 Laptop GPU": "RTX-4090-Laptop",
    "NVIDIA GeForce RTX 5050": "RTX-5050",
    "NVIDIA GeForce RTX 5090 Laptop GPU": "RTX-5090-Laptop",
    "NVIDIA GeForce GTX 980 Ti": "GTX-980-Ti",
    "NVIDIA RTX 6000 Ada Generation": "RTX-6000-Ada",
    "NVIDIA RTX 4000 SFF Ada Generation": "RTX-4000-SFF-Ada",
    "NVIDIA RTX A6000": "RTX-A6000",
    "Quadro RTX 6000": "Quadro-RTX-6000",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX-PRO-6000",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "RTX-PRO-6000",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "RTX-PRO-6000-Max-Q",
    "NVIDIA RTX PRO 4500 Blackwell": "RTX-PRO-4500",
    "NVIDIA RTX PRO 5000 72GB Blackwell": "RTX-PRO-5000-72GB",
}
ONLY_THE_FORM_DIFFERS = {"h100": {"H100-80GB", "H100-PCIe"}}


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


@pytest.mark.parametrize(("printed", "name"), PRINTED.items())
def test_printed_names(facts: Facts, printed: str, name: str) -> None:
    card = facts.card(printed)
    assert card is not None
    assert card.name == name


@pytest.mark.parametrize("name", ["NVIDIA", "A100-64GB", "RTX 9090", "NVIDIA Graphics Device", ""])
def test_unknown_names(facts: Facts, name: str) -> None:
    assert facts.card(name) is None
    assert facts.unsupported_accelerator(name) is None


def test_no_two_cards_have_one_reduced_name(facts: Facts) -> None:
    cards = defaultdict(set)
    for card in facts.cards:
        for name in (card.name, *card.aliases):
            cards[reduce_name(name)].add(card.name)
    ambiguous = {name: found for name, found in cards.items() if len(found) > 1}
    # the longer names of H100-PCIe are aliases, which are looked up first
    assert {name: found for name, found in ambiguous.items() if name != "h100-80gb"} == (
        ONLY_THE_FORM_DIFFERS
    )


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("AMD GPU", "MI300X|AMD Instinct MI250X|MI325X|Radeon RX 7900 XTX|RX-9070-XT|gfx942"),
        ("Google TPU", "TPU-v5e|v5e1|v6e1|v5litepod-8|TPU_V5_LITEPOD|ct5lp-hightpu-4t|v4-8"),
        ("Intel GPU", "Intel Data Center GPU Max 1550|Arc A770|Arc B580|Max 1100"),
        ("Intel Gaudi", "Gaudi2|Intel Gaudi 3|HL-225"),
        ("AWS accelerator", "Trainium2|inf2.xlarge|trn1.32xlarge"),
        ("Ascend NPU", "Ascend 910B|Huawei Ascend 910C|910B3"),
    ],
)
def test_other_accelerators(facts: Facts, family: str, names: str) -> None:
    for name in names.split("|"):
        known = facts.unsupported_accelerator(name)
        assert known is not None, name
        assert known.family == family, name


def test_no_card_is_another_accelerator(facts: Facts) -> None:
    empty = facts.with_tables(cards=())
    for card in facts.cards:
        for name in (card.name, *card.aliases):
            assert empty.unsupported_accelerator(name) is None, name
