"""What it means for a card, a driver and the Pythons when torch moves from one build to another."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from provision.diagnostics import Severity
from provision.facts.catalogue import Facts, cuda_of
from provision.facts.coverage import Code, Form, at_least
from provision.facts.rows import Card, Toolkit
from provision.facts.versions import ordered


class Kind(StrEnum):
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


class Meaning(NamedTuple):
    """One thing that follows, in a sentence, and how much it matters."""

    kind: Kind
    severity: Severity
    text: str


class Built(NamedTuple):
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


def between(old: Built, new: Built) -> str:
    """Return the move in few words: "torch 2.10.0 -> 2.11.0 (cu128)", "torch 2.11.0 (cu126 -> cu128)"."""
    release = old.release if old.release == new.release else f"{old.release} -> {new.release}"
    return f"torch {release} ({old.flavour if old.flavour == new.flavour else f'{old.flavour} -> {new.flavour}'})"


def for_card(card: Card, old: Built, new: Built, facts: Facts) -> Iterator[Meaning]:
    """Yield what a card loses or gains of compiled code. See `coverage.code_for` for the rule and its source."""
    (was_known, was), (known, now) = _code(card, old, facts), _code(card, new, facts)
    lead = f"{between(old, new)}: {card.name}"
    if not known:
        yield Meaning(Kind.UNKNOWN, Severity.UNKNOWN, f"{lead}: the facts do not know what {new.name} was compiled for")
    elif now is None and (was is not None or not was_known):
        row = facts.build(new.torch, new.flavour, new.platform)
        severity = card.evidence.at_most(row.evidence.at_most(Severity.ERROR) if row else Severity.WARNING)
        lost = f" loses {_shown(was)}" if was else ""
        yield Meaning(Kind.LOST, severity, f"{lead}{lost}: {new.name} has no code for it{_still(card, new, facts)}")
    elif now is not None and was_known and was is None:
        yield Meaning(Kind.GAINED, Severity.INFO, f"{lead} gains {_shown(now)}")
    elif now is not None and was is not None and now != was:
        yield _other_code(lead, was, now)


def for_driver(old: Built, new: Built, facts: Facts, driver: str | None, by: str) -> Iterator[Meaning]:
    """Yield the oldest driver that runs each build where it differs; `driver` is what the place has (None: not known), `by` who brings it."""
    was, now = (facts.toolkits.get(cuda_of(built.flavour)) for built in (old, new))
    if now is None or old.flavour == new.flavour or (was is not None and _floor(was, old) == _floor(now, new)):
        return
    floor, before = _floor(now, new), _floor(was, old) if was else "none"
    raised = was is None or ordered(floor) > ordered(before)
    severity, has = Severity.WARNING if raised else Severity.INFO, ""
    if driver is not None:
        enough = at_least(driver, floor)
        severity = Severity.INFO if enough else now.evidence.at_most(Severity.ERROR) if enough is False else severity
        has = f"; there it is {driver} ({by})" + ("" if enough else ", which is too old" if enough is False else "")
    yield Meaning(Kind.DRIVER, severity, f"{between(old, new)}: the oldest driver is {floor}, {before} before{has}")


def for_pythons(old: Built, new: Built, facts: Facts) -> Iterator[Meaning]:
    """Yield the Pythons that torch has wheels for no more, or now."""
    was, now = facts.torch_release(old.torch), facts.torch_release(new.torch)
    if was is None or now is None:
        return
    before, after = was.pythons_on(old.platform), now.pythons_on(new.platform)
    gone, come = [python for python in before if python not in after], [python for python in after if python not in before]
    if gone or come:
        said = ([f"no wheels for Python {', '.join(gone)} any more"] if gone else []) + ([f"wheels for Python {', '.join(come)}"] if come else [])
        yield Meaning(Kind.PYTHONS, Severity.INFO, f"{between(old, new)}: {', '.join(said)}")


def for_python(old: str, new: str, facts: Facts) -> Iterator[Meaning]:
    """Yield until when the new Python gets security fixes."""
    row = next((row for row in facts.pythons if row.version == new), None)
    if row is not None and old != new:
        yield Meaning(Kind.PYTHON, Severity.INFO, f"Python {old} -> {new}: security fixes until {row.end_of_life}")


def for_others(named: frozenset[str], old: Built, new: Built, facts: Facts) -> Iterator[Meaning]:
    """Yield the cards, but for those `named`, that lose or gain code, or have PTX alone where they had machine code: a sentence of each kind."""
    cards: dict[Kind, dict[str, Severity]] = {}
    for card in facts.cards:
        if card.name not in named and card.host in ("", new.platform):
            for meaning in for_card(card, old, new, facts):
                cards.setdefault(meaning.kind, {})[card.name] = meaning.severity
    for kind, words in ((Kind.LOST, "no code any more for"), (Kind.GAINED, "code now for"), (Kind.PTX, "PTX only, where there was machine code, for")):
        if kind in cards:
            yield Meaning(kind, Severity.INFO, f"{between(old, new)} has {words} {', '.join(cards[kind])}")


def _code(card: Card, built: Built, facts: Facts) -> tuple[bool, Code | None]:
    """Return whether it is known what a build holds for a card, and the code that the card would run."""
    if built.flavour == "cpu":
        return True, None
    build = facts.build(built.torch, built.flavour, built.platform)
    return (False, None) if build is None else (True, facts.code_for(card, build))


def _other_code(lead: str, was: Code, now: Code) -> Meaning:
    match was.form, now.form:
        case Form.MACHINE, Form.PTX:
            return Meaning(
                Kind.PTX, Severity.WARNING, f"{lead} loses {_shown(was)} and has {_shown(now)}, which the driver compiles when a program first starts"
            )
        case Form.PTX, Form.MACHINE:
            return Meaning(Kind.MACHINE, Severity.INFO, f"{lead} gains {_shown(now)}, and had {_shown(was)} only")
        case _:
            return Meaning(Kind.OTHER, Severity.INFO, f"{lead} runs {_shown(now)}, {_shown(was)} before")


def _still(card: Card, new: Built, facts: Facts) -> str:
    flavours = [build.flavour for build in facts.covering(card, new.torch, new.platform)]
    return f"; of torch {new.release}, {' and '.join(flavours)} {'has' if len(flavours) == 1 else 'have'}" if flavours else ""


def _shown(code: Code) -> str:
    digits = code.cc.replace(".", "")
    return f"sm_{digits}" if code.form is Form.MACHINE else f"PTX compute_{digits}"


def _floor(toolkit: Toolkit, built: Built) -> str:
    return toolkit.floor_windows if built.platform.startswith("windows") else toolkit.floor_linux
