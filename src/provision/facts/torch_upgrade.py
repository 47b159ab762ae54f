"""What it means for a card, a driver and the Pythons when torch moves from one build to another."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from provision.diagnostics import Severity
from provision.facts.compatibility import CodeForm, DeviceCode, is_driver_at_least
from provision.facts.facts import Facts, cuda_of
from provision.facts.schema_torch import Card, CudaToolkit
from provision.facts.versions import require_version


class ImplicationKind(StrEnum):
    """What a meaning is about."""

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
    """One thing that follows, in a sentence, and how much it matters."""

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
        """The build as a person calls it: "torch 2.11.0 (cu128)"."""
        return f"torch {self.release} ({self.flavour})"


def describe_upgrade(old: TorchVariant, new: TorchVariant) -> str:
    """Return the move in few words: "torch 2.10.0 -> 2.11.0 (cu128)", "torch 2.11.0 (cu126 ->
    cu128)".
    """
    release = old.release if old.release == new.release else f"{old.release} -> {new.release}"
    return (
        f"torch {release} "
        f"({old.flavour if old.flavour == new.flavour else f'{old.flavour} -> {new.flavour}'})"
    )


def card_implications(
    card: Card, old: TorchVariant, new: TorchVariant, facts: Facts
) -> Iterator[Implication]:
    """Yield what a card loses or gains of compiled code. See `coverage.code_for` for the rule and
    its source.
    """
    (was_known, was), (known, now) = _code(card, old, facts), _code(card, new, facts)
    lead = f"{describe_upgrade(old, new)}: {card.name}"
    if not known:
        yield Implication(
            ImplicationKind.UNKNOWN,
            Severity.UNKNOWN,
            f"{lead}: the facts do not know what {new.name} was compiled for",
        )
    elif now is None and (was is not None or not was_known):
        row = facts.build(new.torch, new.flavour, new.platform)
        severity = card.evidence.cap_severity(
            row.evidence.cap_severity(Severity.ERROR) if row else Severity.WARNING
        )
        lost = f" loses {_code_text(was)}" if was else ""
        yield Implication(
            ImplicationKind.LOST,
            severity,
            f"{lead}{lost}: {new.name} has no code for "
            f"it{_other_flavours_with_code(card, new, facts)}",
        )
    elif now is not None and was_known and was is None:
        yield Implication(ImplicationKind.GAINED, Severity.INFO, f"{lead} gains {_code_text(now)}")
    elif now is not None and was is not None and now != was:
        yield _other_code(lead, was, now)


def driver_implications(
    old: TorchVariant, new: TorchVariant, facts: Facts, driver: str | None, by: str
) -> Iterator[Implication]:
    """Yield the oldest driver that runs each build where it differs; `driver` is what the place has
    (None: not known), `by` who brings it.
    """
    was, now = (facts.toolkits.get(cuda_of(built.flavour)) for built in (old, new))
    if (
        now is None
        or old.flavour == new.flavour
        or (was is not None and _driver_floor(was, old) == _driver_floor(now, new))
    ):
        return
    floor, before = _driver_floor(now, new), _driver_floor(was, old) if was else "none"
    raised = was is None or require_version(floor) > require_version(before)
    severity, has = Severity.WARNING if raised else Severity.INFO, ""
    if driver is not None:
        enough = is_driver_at_least(driver, floor)
        severity = (
            Severity.INFO
            if enough
            else now.evidence.cap_severity(Severity.ERROR)
            if enough is False
            else severity
        )
        has = f"; there it is {driver} ({by})" + (
            "" if enough else ", which is too old" if enough is False else ""
        )
    yield Implication(
        ImplicationKind.DRIVER,
        severity,
        f"{describe_upgrade(old, new)}: the oldest driver is {floor}, {before} before{has}",
    )


def torch_python_implications(
    old: TorchVariant, new: TorchVariant, facts: Facts
) -> Iterator[Implication]:
    """Yield the Pythons that torch has wheels for no more, or now."""
    was, now = facts.torch_release(old.torch), facts.torch_release(new.torch)
    if was is None or now is None:
        return
    before, after = was.pythons_on(old.platform), now.pythons_on(new.platform)
    gone, come = (
        [python for python in before if python not in after],
        [python for python in after if python not in before],
    )
    if gone or come:
        said = ([f"no wheels for Python {', '.join(gone)} any more"] if gone else []) + (
            [f"wheels for Python {', '.join(come)}"] if come else []
        )
        yield Implication(
            ImplicationKind.PYTHONS,
            Severity.INFO,
            f"{describe_upgrade(old, new)}: {', '.join(said)}",
        )


def python_implications(old: str, new: str, facts: Facts) -> Iterator[Implication]:
    """Yield until when the new Python gets security fixes."""
    row = next((row for row in facts.pythons if row.version == new), None)
    if row is not None and old != new:
        yield Implication(
            ImplicationKind.PYTHON,
            Severity.INFO,
            f"Python {old} -> {new}: security fixes until {row.end_of_life}",
        )


def other_card_implications(
    named: frozenset[str], old: TorchVariant, new: TorchVariant, facts: Facts
) -> Iterator[Implication]:
    """Yield the cards, but for those `named`, that lose or gain code, or have PTX alone where they
    had machine code: a sentence of each kind.
    """
    cards: dict[ImplicationKind, dict[str, Severity]] = {}
    for card in facts.cards:
        if card.name not in named and card.host in ("", new.platform):
            for meaning in card_implications(card, old, new, facts):
                cards.setdefault(meaning.kind, {})[card.name] = meaning.severity
    for kind, words in (
        (ImplicationKind.LOST, "no code any more for"),
        (ImplicationKind.GAINED, "code now for"),
        (ImplicationKind.PTX, "PTX only, where there was machine code, for"),
    ):
        if kind in cards:
            yield Implication(
                kind,
                Severity.INFO,
                f"{describe_upgrade(old, new)} has {words} {', '.join(cards[kind])}",
            )


def _code(card: Card, built: TorchVariant, facts: Facts) -> tuple[bool, DeviceCode | None]:
    """Return whether it is known what a build holds for a card, and the code that the card would
    run.
    """
    if built.flavour == "cpu":
        return True, None
    build = facts.build(built.torch, built.flavour, built.platform)
    return (False, None) if build is None else (True, facts.code_for(card, build))


def _other_code(lead: str, was: DeviceCode, now: DeviceCode) -> Implication:
    match was.form, now.form:
        case CodeForm.MACHINE, CodeForm.PTX:
            return Implication(
                ImplicationKind.PTX,
                Severity.WARNING,
                f"{lead} loses {_code_text(was)} and has {_code_text(now)}, which the "
                "driver compiles when a program first starts",
            )
        case CodeForm.PTX, CodeForm.MACHINE:
            return Implication(
                ImplicationKind.MACHINE,
                Severity.INFO,
                f"{lead} gains {_code_text(now)}, and had {_code_text(was)} only",
            )
        case _:
            return Implication(
                ImplicationKind.OTHER,
                Severity.INFO,
                f"{lead} runs {_code_text(now)}, {_code_text(was)} before",
            )


def _other_flavours_with_code(card: Card, new: TorchVariant, facts: Facts) -> str:
    flavours = [build.flavour for build in facts.builds_for_card(card, new.torch, new.platform)]
    return (
        f"; of torch {new.release}, {' and '.join(flavours)} "
        f"{'has' if len(flavours) == 1 else 'have'}"
        if flavours
        else ""
    )


def _code_text(code: DeviceCode) -> str:
    digits = code.cc.replace(".", "")
    return f"sm_{digits}" if code.form is CodeForm.MACHINE else f"PTX compute_{digits}"


def _driver_floor(toolkit: CudaToolkit, built: TorchVariant) -> str:
    return toolkit.floor_windows if built.platform.startswith("windows") else toolkit.floor_linux
