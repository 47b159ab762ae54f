"""The places that files can be checked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from provision.effects.system import Reader
from provision.errors import UsageError
from provision.facts import Facts
from provision.kinds import Registry, registry_in_use
from provision.kinds.places import Place
from provision.sanitize import escape_line
from provision.spelling import did_you_mean, nearest_words


def list_places(facts: Facts) -> tuple[Place, ...]:
    """Return the places of all kinds; this machine is the last, and is not measured."""
    places = registry_in_use.get().places(facts)
    return tuple(sorted(places, key=lambda place: place.is_this_machine))


def find_places(names: Sequence[str], places: Sequence[Place]) -> tuple[Place, ...]:
    """Return the places with these names, each once.

    Args:
        names: Names in any case; a name may also be a list of names with commas.
        places: The places that exist.

    Raises:
        UsageError: there is no place with a name.
    """
    by_name = {place.name: place for place in places}
    chosen: dict[str, Place] = {}
    for listed in names:
        for name in [word for word in map(str.strip, listed.split(",")) if word] or [listed]:
            place = by_name.get(name.lower())
            if place is None:
                raise _unknown_place(name, places)
            chosen[place.name] = place
    return tuple(chosen.values())


def measure_places(
    places: Sequence[Place], facts: Facts, reader: Reader
) -> tuple[tuple[Place, ...], Registry]:
    """Return the places and kinds with the properties of this machine, if it is one of them."""
    registry = registry_in_use.get()
    if any(place.is_this_machine for place in places):
        registry = registry.measured(reader.machine(Path.cwd()))
        measured = {place.name: place for place in registry.places(facts) if place.is_this_machine}
        places = [measured.get(place.name, place) for place in places]
    return tuple(places), registry


def _unknown_place(name: str, places: Sequence[Place]) -> UsageError:
    base, _, version = name.lower().partition("@")
    versions = [place.version for place in places if place.base == base and place.version]
    if version and versions:
        near = nearest_words(version, versions, 1)
        known = near or versions[:3]
        listed = " or ".join(f"{base}@{word}" for word in known)
        return UsageError(
            f"{escape_line(name)}: {base} has no runtime or image {escape_line(version)}",
            hint=f"use {base} or {listed}; for a list, run `provision facts list places`",
        )
    bases = dict.fromkeys(place.base for place in places)
    hint = did_you_mean(base, bases)
    if not hint and (words := nearest_words(base, bases, 3)):
        hint = f"did you mean {' or '.join(words)}?"
    return UsageError(
        f"unknown runtime, image or machine {escape_line(name)}",
        hint=f"{hint} for a list, run `provision facts list places`".strip(),
    )
