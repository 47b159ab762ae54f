"""Implications of a move from one torch build to another for cards, drivers and Pythons."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from provision.diagnostics import Severity
from provision.facts.compatibility import CodeForm, DeviceCode, is_driver_at_least
from provision.facts.facts import Facts, cuda_of
from provision.facts.schema_torch import Card
from provision.facts.versions import require_version


class ImplicationKind(StrEnum):
    """The subject of an implication."""

    LOST = "code lost"
    GAINED = "code gained"
    PTX = "machine code became PTX"
    MACHINE = "PTX became machine code"
    OTHER = "other machine code"
    UNKNOWN = "code unknown"
    DRIVER = "driver floor"
    PYTHONS = "torch's Pythons"
    PYTHON = "Python"


class Implication(NamedTuple):
    """One consequence in a sentence, and its severity."""

    kind: ImplicationKind
    severity: Severity
    text: str


class TorchVariant(NamedTuple):
    """A build of torch: exact version ("2.11.0+cu128"), flavour ("cu128", "cpu") and platform."""

    torch: str
    flavour: str
    platform: str

    @property
    def release(self) -> str:
        """The version without its local part."""
        return self.torch.partition("+")[0]

    @property
    def name(self) -> str:
        """The build in a message: "torch 2.11.0 (cu128)"."""
        return f"torch {self.release} ({self.flavour})"


def describe_upgrade(old: TorchVariant, new: TorchVariant) -> str:
    """Return "torch 2.10.0 -> 2.11.0 (cu128)" or "torch 2.11.0 (cu126 -> cu128)"."""
    release = _change(old.release, new.release)
    return f"torch {release} ({_change(old.flavour, new.flavour)})"


def card_implications(
    card: Card, old: TorchVariant, new: TorchVariant, facts: Facts
) -> Iterator[Implication]:
    """Yield the compiled code that a card loses or gains.

    See `compatibility.code_for_capability` for the rule and its source.
    """
    old_is_known, old_code = _code(card, old, facts)
    new_is_known, new_code = _code(card, new, facts)
    lead = f"{describe_upgrade(old, new)}: {card.name}"
    if not new_is_known:
        yield Implication(
            ImplicationKind.UNKNOWN,
            Severity.UNKNOWN,
            f"{lead}: the compiled code of {new.name} is unknown",
        )
    elif new_code is None:
        if old_code is not None or not old_is_known:
            yield _lost_code(lead, old_code, card, new, facts)
    elif old_is_known and old_code is None:
        text = f"{lead} gains {_code_text(new_code)}"
        yield Implication(ImplicationKind.GAINED, Severity.INFO, text)
    elif old_code is not None and new_code != old_code:
        yield _other_code(lead, old_code, new_code)


def driver_implications(
    old: TorchVariant, new: TorchVariant, facts: Facts, driver: str | None, source: str
) -> Iterator[Implication]:
    """Yield the oldest driver of each build if they differ.

    `driver` is the driver of the target (None: unknown), and `source` names what provides it.
    """
    toolkit = facts.toolkits.get(cuda_of(new.flavour))
    if toolkit is None or old.flavour == new.flavour:
        return
    new_floor = _driver_floor(new, facts)
    old_floor = _driver_floor(old, facts)
    if new_floor is None or new_floor == old_floor:
        return
    is_raised = old_floor is None or require_version(new_floor) > require_version(old_floor)
    severity, status = Severity.WARNING if is_raised else Severity.INFO, ""
    if driver is not None:
        status = f"; the target has {driver} ({source})"
        is_enough = is_driver_at_least(driver, new_floor)
        if is_enough:
            severity = Severity.INFO
        elif is_enough is False:
            severity = toolkit.evidence.cap_severity(Severity.ERROR)
            status += ", which is too old"
    yield Implication(
        ImplicationKind.DRIVER,
        severity,
        f"{describe_upgrade(old, new)}: the oldest supported driver is {new_floor} "
        f"(before: {old_floor or 'none'}){status}",
    )


def torch_python_implications(
    old: TorchVariant, new: TorchVariant, facts: Facts
) -> Iterator[Implication]:
    """Yield the Pythons that lose or gain wheels of torch."""
    old_release, new_release = facts.torch_release(old.torch), facts.torch_release(new.torch)
    if old_release is None or new_release is None:
        return
    before, after = old_release.pythons_on(old.platform), new_release.pythons_on(new.platform)
    changes = []
    if removed := [python for python in before if python not in after]:
        changes.append(f"no longer has wheels for Python {', '.join(removed)}")
    if added := [python for python in after if python not in before]:
        changes.append(f"adds wheels for Python {', '.join(added)}")
    if changes:
        text = f"{describe_upgrade(old, new)}: {', '.join(changes)}"
        yield Implication(ImplicationKind.PYTHONS, Severity.INFO, text)


def python_implications(old: str, new: str, facts: Facts) -> Iterator[Implication]:
    """Yield the month until which the new Python gets security fixes."""
    row = next((row for row in facts.pythons if row.version == new), None)
    if row is not None and old != new:
        text = f"Python {old} -> {new}: security fixes until {row.end_of_life}"
        yield Implication(ImplicationKind.PYTHON, Severity.INFO, text)


def other_card_implications(
    named: frozenset[str], old: TorchVariant, new: TorchVariant, facts: Facts
) -> Iterator[Implication]:
    """Yield one sentence on each kind of change of code for the cards that are not `named`."""
    cards: dict[ImplicationKind, dict[str, Severity]] = {}
    for card in facts.cards:
        if card.name not in named and card.host in ("", new.platform):
            for implication in card_implications(card, old, new, facts):
                cards.setdefault(implication.kind, {})[card.name] = implication.severity
    for kind, change in (
        (ImplicationKind.LOST, "no longer has code for"),
        (ImplicationKind.GAINED, "now has code for"),
        (ImplicationKind.PTX, "has PTX instead of machine code for"),
    ):
        if kind in cards:
            text = f"{describe_upgrade(old, new)} {change} {', '.join(cards[kind])}"
            yield Implication(kind, Severity.INFO, text)


def _change(old: str, new: str) -> str:
    return old if old == new else f"{old} -> {new}"


def _code(card: Card, variant: TorchVariant, facts: Facts) -> tuple[bool, DeviceCode | None]:
    """Return whether the facts know the code of a build, and the code that the card runs."""
    if variant.flavour == "cpu":
        return True, None
    build = facts.build(variant.torch, variant.flavour, variant.platform)
    return (False, None) if build is None else (True, facts.code_for(card, build))


def _lost_code(
    lead: str, old_code: DeviceCode | None, card: Card, new: TorchVariant, facts: Facts
) -> Implication:
    build = facts.build(new.torch, new.flavour, new.platform)
    severity = build.evidence.cap_severity(Severity.ERROR) if build else Severity.WARNING
    loss = f" loses {_code_text(old_code)}" if old_code else ""
    others = _other_flavours_with_code(card, new, facts)
    return Implication(
        ImplicationKind.LOST,
        card.evidence.cap_severity(severity),
        f"{lead}{loss}: {new.name} has no code for it{others}",
    )


def _other_code(lead: str, old: DeviceCode, new: DeviceCode) -> Implication:
    match old.form, new.form:
        case CodeForm.MACHINE, CodeForm.PTX:
            return Implication(
                ImplicationKind.PTX,
                Severity.WARNING,
                f"{lead} loses {_code_text(old)} and gets {_code_text(new)}, which the "
                "driver compiles when a program first starts",
            )
        case CodeForm.PTX, CodeForm.MACHINE:
            text = f"{lead} gains {_code_text(new)}; before, it had only {_code_text(old)}"
            return Implication(ImplicationKind.MACHINE, Severity.INFO, text)
        case _:
            text = f"{lead} runs {_code_text(new)} instead of {_code_text(old)}"
            return Implication(ImplicationKind.OTHER, Severity.INFO, text)


def _other_flavours_with_code(card: Card, new: TorchVariant, facts: Facts) -> str:
    flavours = [build.flavour for build in facts.builds_for_card(card, new.torch, new.platform)]
    if not flavours:
        return ""
    verb = "has" if len(flavours) == 1 else "have"
    return f"; of torch {new.release}, {' and '.join(flavours)} {verb}"


def _code_text(code: DeviceCode) -> str:
    digits = code.cc.replace(".", "")
    return f"sm_{digits}" if code.form is CodeForm.MACHINE else f"PTX compute_{digits}"


def _driver_floor(variant: TorchVariant, facts: Facts) -> str | None:
    return facts.driver_floor(
        cuda_of(variant.flavour), windows=variant.platform.startswith("windows")
    )
