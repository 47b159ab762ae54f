"""The versions that an error's text tells, held against what the facts, a lock and a report know."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provision.facts import Facts
from provision.facts.versions import ordered, parsed
from provision.verification.modules import is_known, of_gone, of_missing, package_of

_PATH_OF_PYTHON = re.compile(r"[/\\]python(3\.\d{1,2})[/\\]")
_ELSEWHERE = "the error came from another environment, or from before this one was made"


class Place(NamedTuple):
    """What is known of the place that an error is held against, and who says so, as in "the report"."""

    teller: str
    packages: Mapping[str, str]
    python: str
    readings: Mapping[str, Any]
    whole: bool = False
    """Whether a package that is not among `packages` is not there."""


class Known(NamedTuple):
    """What a version is held against."""

    facts: Facts
    places: tuple[Place, ...]


def remarks(tells: Sequence[str], said: Sequence[str | None], known: Known) -> tuple[str, ...]:
    """Return a sentence for what each group of a symptom's text says; `tells` names the groups, `said` holds what they matched.

    A group tells one of: needs:PACKAGE (its least version), found:PACKAGE, requirement, lacks (a requirement of which nothing is there), pin,
    driver-cuda (12020), capability ("70", "7.0"), glibc, module, gone (a module that its package lacks), argument (of TrainingArguments),
    as:WORDS (which say what it is).
    """
    sentences = (sentence for tell, value in zip(tells, said, strict=False) if value for sentence in _of(tell, value, known))
    return tuple(dict.fromkeys(sentences))


def wanted(tells: Sequence[str], said: Sequence[str | None], facts: Facts) -> tuple[tuple[str, str], ...]:
    """Return the packages that a text says are missing or too old, each with a specifier; only those whose name the facts know."""
    found: list[tuple[str, str]] = []
    for tell, value in zip(tells, said, strict=False):
        kind, _, name = tell.partition(":")
        if kind == "needs" and value and parsed(value.rstrip(".,")) is not None:
            found.append((name, f">={value.rstrip('.,')}"))
        elif kind == "module" and value:
            found.append((package_of(value, facts), ""))
        elif kind == "lacks" and value and (asked := _parsed(value)) is not None:
            found.append((str(canonicalize_name(asked.name)), str(asked.specifier)))
    return tuple((name, specifier) for name, specifier in found if is_known(name, facts))


def other_python(text: str, places: Iterable[Place]) -> str:
    """Return that the paths in a text are of another Python than the place it is held against, or ""."""
    found = sorted(set(_PATH_OF_PYTHON.findall(text)), key=ordered)
    for place in places:
        if found and place.python and ".".join(place.python.split(".")[:2]) not in found:
            return f"the paths in it are of Python {', '.join(found)}, {place.teller} is of {place.python}: {_ELSEWHERE}"
    return ""


def _of(tell: str, value: str, known: Known) -> Iterator[str]:
    kind, _, name = tell.partition(":")
    value = value.rstrip(".,")
    if kind in ("needs", "found"):
        yield from (_needs if kind == "needs" else _found)(name, value, known)
    elif kind == "as":
        yield f"{name} {value}"
    else:
        yield from _KINDS[kind](value, known)


def _needs(name: str, floor: str, known: Known) -> Iterator[str]:
    if parsed(floor) is None:
        return
    yield from _held(f"{name}>={floor} is asked for", name, known.places, lambda have: ordered(have) >= ordered(floor))


def _found(name: str, version: str, known: Known) -> Iterator[str]:
    if parsed(version) is None:
        return
    yield from _held(f"{name} {version} was found", name, known.places, None, version)
    refusing = [run for run in known.facts.transformers if run.torch and ordered(run.torch) > ordered(version.partition("+")[0])]
    if name == "torch" and refusing:
        yield f"transformers {refusing[0].first} and newer do not use torch {version}, by the facts"


def _held(lead: str, name: str, places: tuple[Place, ...], fits: Callable[[str], bool] | None, found: str = "") -> Iterator[str]:
    for place in places:
        have = place.packages.get(canonicalize_name(name))
        if have is None:
            yield f"{lead}, and {place.teller} has none" if place.whole else lead
        elif parsed(have) is None or (fits is None and _alike(found, have)):
            yield f"{lead}, as {place.teller} has it" if found else lead
        elif fits is None:
            yield f"{lead}, and {place.teller} has {have}"
        else:
            yield f"{lead}, and {place.teller} has {have}" + (f", which will do: {_ELSEWHERE}" if fits(have) else "")
    if not places:
        yield lead


def _alike(one: str, other: str) -> bool:
    return ordered(one) == ordered(other) or ordered(one.partition("+")[0]) == ordered(other.partition("+")[0])


def _requirement(value: str, known: Known) -> Iterator[str]:
    if (wanted := _parsed(value)) is not None:
        yield from _held(f"{value} is asked for", wanted.name, known.places, lambda have: wanted.specifier.contains(have, prereleases=True))


def _parsed(value: str) -> Requirement | None:
    try:
        return Requirement(value)
    except InvalidRequirement:
        return None


def _pin(value: str, known: Known) -> Iterator[str]:
    name, _, version = value.partition("==")
    if parsed(version) is not None:
        yield from _held(f"{name} {version} was found", name, known.places, None, version)


def _driver_cuda(value: str, known: Known) -> Iterator[str]:
    cuda = f"{int(value) // 1000}.{int(value) % 1000 // 10}"
    toolkit = known.facts.toolkits.get(cuda)
    words = f"{value} means CUDA {cuda}"
    if toolkit is not None and toolkit.driver_first is not None:
        first = toolkit.driver_first
        lacking = [row for row in known.facts.toolkits.values() if ordered(row.floor_linux) > ordered(first)]
        words += f", a driver from {first.split('.')[0]} on"
        words += f"; builds for CUDA {lacking[0].cuda.split('.')[0]} need driver {lacking[0].floor_linux}, those for an older CUDA run" if lacking else ""
    yield words
    for place in known.places:
        driver, torch = place.readings.get("driver.version"), place.packages.get("torch", "")
        if driver:
            yield f"{place.teller} has driver {driver}" + (f" and torch {torch}" if torch else "")


def _capability(value: str, known: Known) -> Iterator[str]:
    if len(value) < 2:
        return
    cc = value if "." in value else f"{value[:-1]}.{value[-1]}"
    cards = [card for card in known.facts.cards if card.cc == cc]
    if not cards:
        yield f"compute capability {cc}"
        return
    newest = next(((release, found) for release in reversed(known.facts.torch) if (found := known.facts.covering(cards[0], release.release))), None)
    names = ", ".join(card.name for card in cards[:3])
    builds = f"; the newest torch with code for it is {newest[0].release}, built for {', '.join(build.flavour for build in newest[1])}" if newest else ""
    yield f"compute capability {cc} ({names}){builds}"


def _glibc(value: str, known: Known) -> Iterator[str]:
    wanted = value.rpartition("_")[2]
    for place in known.places:
        have = place.readings.get("host.glibc")
        if isinstance(have, str) and parsed(have) is not None and parsed(wanted) is not None:
            fits = f": {_ELSEWHERE}" if ordered(have) >= ordered(wanted) else ""
            yield f"glibc {wanted} is asked for, and {place.teller} has {have}{fits}"


def _module(value: str, known: Known) -> Iterator[str]:
    yield from of_missing(value, known.facts, known.places, _ELSEWHERE)


def _gone(value: str, known: Known) -> Iterator[str]:
    yield from of_gone(value, known.facts, known.places)


def _argument(value: str, known: Known) -> Iterator[str]:
    row = known.facts.arguments.get(value)
    if row is None:
        return
    since = [f"from transformers {row.first} on"] if row.first else []
    until = [f"up to transformers {row.last}"] if row.last else []
    if since or until:
        instead = f"; instead: {row.replaced_by or row.instead}" if row.replaced_by or row.instead else ""
        yield f"TrainingArguments has {value} {' and '.join((*since, *until))}{instead}"
    yield from (f"{place.teller} has transformers {have}" for place in known.places if (have := place.packages.get("transformers")))


_KINDS: Mapping[str, Callable[[str, Known], Iterator[str]]] = {
    "requirement": _requirement,
    "lacks": _requirement,
    "pin": _pin,
    "driver-cuda": _driver_cuda,
    "capability": _capability,
    "glibc": _glibc,
    "module": _module,
    "gone": _gone,
    "argument": _argument,
}
"""What a group of a symptom's expression may tell, besides needs:, found: and as:."""
KINDS = frozenset({"needs", "found", "as", *_KINDS})
