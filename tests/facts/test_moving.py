"""What follows for cards, drivers and Pythons when torch moves from one build to another, by the
real tables and by changed ones.
"""

from __future__ import annotations

import pytest

from provision.diagnostics import Severity
from provision.facts import Facts, load_facts
from provision.facts.torch_upgrade import (
    Implication,
    ImplicationKind,
    TorchVariant,
    card_implications,
    describe_upgrade,
    driver_implications,
    other_card_implications,
    python_implications,
    torch_python_implications,
)

FACTS = load_facts()
LINUX = "linux-x86_64"


def built(torch: str, flavour: str, platform: str = LINUX) -> TorchVariant:
    return TorchVariant(f"{torch}+{flavour}", flavour, platform)


def of_card(
    name: str, old: TorchVariant, new: TorchVariant, facts: Facts = FACTS
) -> tuple[Implication, ...]:
    card = facts.card(name)
    assert card is not None
    return tuple(card_implications(card, old, new, facts))


def test_v100_loses_its_code_with_torch_2_11() -> None:
    (found,) = of_card("V100", built("2.10.0", "cu128"), built("2.11.0", "cu128"))
    assert (found.kind, found.severity) == (ImplicationKind.LOST, Severity.ERROR)
    assert (
        found.text
        == "torch 2.10.0 -> 2.11.0 (cu128): V100 loses sm_70: torch 2.11.0 (cu128) has no "
        "code for it; of torch 2.11.0, cu126 has"
    )


def test_and_gets_it_back() -> None:
    (found,) = of_card("V100", built("2.11.0", "cu128"), built("2.10.0", "cu128"))
    assert found == Implication(
        ImplicationKind.GAINED, Severity.INFO, "torch 2.11.0 -> 2.10.0 (cu128): V100 gains sm_70"
    )


def test_a_card_that_keeps_its_code_is_not_spoken_of() -> None:
    assert of_card("V100", built("2.10.0", "cu126"), built("2.11.0", "cu126")) == ()


def test_a_cpu_build_has_no_code_for_any_card() -> None:
    (found,) = of_card("L4", built("2.11.0", "cu128"), built("2.11.0", "cpu"))
    assert found.kind is ImplicationKind.LOST
    assert "torch 2.11.0 (cu128 -> cpu): L4 loses sm_" in found.text


def test_a_build_that_is_not_in_the_facts_is_unknown() -> None:
    (found,) = of_card("L4", built("2.11.0", "cu128"), built("99.0.0", "cu128"))
    assert (found.kind, found.severity) == (ImplicationKind.UNKNOWN, Severity.UNKNOWN)
    assert of_card("L4", built("0.0.1", "cu128"), built("2.11.0", "cu128")) == ()


def with_build(torch: str, sm: tuple[str, ...], ptx: str) -> Facts:
    key = f"{torch}:cu128:{LINUX}"
    return FACTS.with_tables(
        builds={**FACTS.builds, key: FACTS.builds[key]._replace(sm=sm, ptx=ptx)}
    )


def test_machine_code_that_becomes_ptx_and_back() -> None:
    facts = with_build("2.11.0", ("7.5",), "8.0")
    (found,) = of_card("A100", built("2.10.0", "cu128"), built("2.11.0", "cu128"), facts)
    assert (found.kind, found.severity) == (ImplicationKind.PTX, Severity.WARNING)
    assert "A100-40GB loses sm_80 and gets PTX compute_80" in found.text
    (found,) = of_card("A100", built("2.11.0", "cu128"), built("2.10.0", "cu128"), facts)
    assert (found.kind, found.severity) == (ImplicationKind.MACHINE, Severity.INFO)


def test_other_machine_code() -> None:
    (found,) = of_card(
        "L4", built("2.10.0", "cu128"), built("2.11.0", "cu128"), with_build("2.11.0", ("8.0",), "")
    )
    assert (found.kind, found.text) == (
        ImplicationKind.OTHER,
        "torch 2.10.0 -> 2.11.0 (cu128): L4 runs sm_80 instead of sm_86",
    )


def test_facts_of_low_confidence_are_no_error() -> None:
    key = f"2.11.0:cu128:{LINUX}"
    unsure = FACTS.builds[key]._replace(
        evidence=FACTS.builds[key].evidence._replace(confidence="low")
    )
    (found,) = of_card(
        "V100",
        built("2.10.0", "cu128"),
        built("2.11.0", "cu128"),
        FACTS.with_tables(builds={**FACTS.builds, key: unsure}),
    )
    assert found.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("driver", "severity", "end"),
    [
        (None, Severity.WARNING, "(before: 525.60.13)"),
        (
            "535.104.05",
            Severity.ERROR,
            "(before: 525.60.13); the target has 535.104.05 (the image), which is too old",
        ),
        ("580.82.07", Severity.INFO, "(before: 525.60.13); the target has 580.82.07 (the image)"),
        ("nonsense", Severity.WARNING, "(before: 525.60.13); the target has nonsense (the image)"),
    ],
)
def test_a_driver_floor_that_rises_is_held_against_the_driver_that_is_there(
    driver: str | None, severity: Severity, end: str
) -> None:
    (found,) = driver_implications(
        built("2.11.0", "cu128"), built("2.11.0", "cu130"), FACTS, driver, "the image"
    )
    assert found == Implication(
        ImplicationKind.DRIVER,
        severity,
        f"torch 2.11.0 (cu128 -> cu130): the oldest supported driver is 580.65.06 {end}",
    )


def test_a_driver_floor_that_stays_or_falls() -> None:
    assert not list(
        driver_implications(built("2.11.0", "cu126"), built("2.11.0", "cu128"), FACTS, None, "")
    )
    assert not list(
        driver_implications(built("2.11.0", "cu128"), built("2.11.0", "cpu"), FACTS, None, "")
    )
    (found,) = driver_implications(
        built("2.11.0", "cu130"), built("2.11.0", "cu128"), FACTS, None, ""
    )
    assert found.severity is Severity.INFO
    (found,) = driver_implications(
        built("2.11.0", "cpu"), built("2.11.0", "cu128", "windows-x86_64"), FACTS, None, ""
    )
    assert found.text.endswith("the oldest supported driver is 528.33 (before: none)")


def test_pythons_that_torch_drops_and_takes_up() -> None:
    old, new = FACTS.torch_release("2.8.0"), FACTS.torch_release("2.9.0")
    assert old is not None
    assert new is not None
    assert old.pythons != new.pythons
    (found,) = torch_python_implications(built("2.8.0", "cu128"), built("2.9.0", "cu128"), FACTS)
    assert (
        found.text
        == "torch 2.8.0 -> 2.9.0 (cu128): no longer has wheels for Python 3.9, adds wheels for "
        "Python 3.14"
    )
    assert not list(
        torch_python_implications(built("2.10.0", "cu128"), built("2.11.0", "cu128"), FACTS)
    )


def test_until_when_a_python_is_kept() -> None:
    (found,) = python_implications("3.11", "3.12", FACTS)
    assert found.text == "Python 3.11 -> 3.12: security fixes until 2028-10"
    assert not list(python_implications("3.12", "3.12", FACTS))
    assert not list(python_implications("3.12", "3.98", FACTS))


def test_other_cards_are_told_together_and_named_ones_are_left_out() -> None:
    (found,) = other_card_implications(
        frozenset({"V100"}), built("2.10.0", "cu128"), built("2.11.0", "cu128"), FACTS
    )
    assert found.text.startswith("torch 2.10.0 -> 2.11.0 (cu128) no longer has code for ")
    assert "V100-32GB" in found.text
    assert "V100," not in found.text


def test_what_stays_of_a_move_is_said_once() -> None:
    assert (
        describe_upgrade(built("2.11.0", "cu126"), built("2.11.0", "cu128"))
        == "torch 2.11.0 (cu126 -> cu128)"
    )
    assert (
        describe_upgrade(built("2.10.0", "cu128"), built("2.11.0", "cu128"))
        == "torch 2.10.0 -> 2.11.0 (cu128)"
    )
