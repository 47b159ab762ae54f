"""The versions that an error's text tells, held against what the facts, a lock and a report know."""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provision.facts import Facts
from provision.facts.versions import parse_version, require_version
from provision.verification.error_lookup.missing_modules import (
    explain_missing_module,
    explain_removed_module,
    find_missing_package,
    is_known_package,
)

_PATH_OF_PYTHON = re.compile(r"[/\\]python(3\.\d{1,2})[/\\]")
_FROM_ANOTHER_ENVIRONMENT = (
    "the error came from another environment, or from before this one was made"
)


class KnownEnvironment(NamedTuple):
    """What is known of the place that an error is held against, and who says so, as in "the
    report".
    """

    source: str
    packages: Mapping[str, str]
    python: str
    readings: Mapping[str, Any]
    is_complete: bool = False
    """Whether a package that is not among `packages` is not there."""


class VersionSources(NamedTuple):
    """What a version is held against."""

    facts: Facts
    environments: tuple[KnownEnvironment, ...]


def explain_matches(
    tells: Sequence[str], said: Sequence[str | None], known: VersionSources
) -> tuple[str, ...]:
    """Return a sentence for what each group of a symptom's text says; `tells` names the groups,
    `said` holds what they matched.

    A group tells one of: needs:PACKAGE (its least version), found:PACKAGE, requirement, lacks (a
    requirement of which nothing is there), pin,
    driver-cuda (12020), capability ("70", "7.0"), glibc, module, gone (a module that its package
    lacks), argument (of TrainingArguments),
    as:WORDS (which say what it is).
    """
    sentences = (
        sentence
        for tell, value in zip(tells, said, strict=False)
        if value
        for sentence in _explain_group(tell, value, known)
    )
    return tuple(dict.fromkeys(sentences))


def find_missing_packages(
    tells: Sequence[str], said: Sequence[str | None], facts: Facts
) -> tuple[tuple[str, str], ...]:
    """Return the packages that a text says are missing or too old, each with a specifier; only
    those whose name the facts know.
    """
    found: list[tuple[str, str]] = []
    for tell, value in zip(tells, said, strict=False):
        kind, _, name = tell.partition(":")
        if kind == "needs" and value and parse_version(value.rstrip(".,")) is not None:
            found.append((name, f">={value.rstrip('.,')}"))
        elif kind == "module" and value:
            found.append((find_missing_package(value, facts), ""))
        elif kind == "lacks" and value and (asked := _parsed(value)) is not None:
            found.append((str(canonicalize_name(asked.name)), str(asked.specifier)))
    return tuple((name, specifier) for name, specifier in found if is_known_package(name, facts))


def explain_python_mismatch(text: str, places: Iterable[KnownEnvironment]) -> str:
    """Return that the paths in a text are of another Python than the place it is held against, or
    "".
    """
    found = sorted(set(_PATH_OF_PYTHON.findall(text)), key=require_version)
    for place in places:
        if found and place.python and ".".join(place.python.split(".")[:2]) not in found:
            return (
                f"the paths in it are of Python {', '.join(found)}, {place.source} is of "
                f"{place.python}: {_FROM_ANOTHER_ENVIRONMENT}"
            )
    return ""


def _explain_group(tell: str, value: str, known: VersionSources) -> Iterator[str]:
    kind, _, name = tell.partition(":")
    value = value.rstrip(".,")
    if kind in ("needs", "found"):
        yield from (_needs if kind == "needs" else _found)(name, value, known)
    elif kind == "as":
        yield f"{name} {value}"
    else:
        yield from _GROUP_EXPLAINERS[kind](value, known)


def _needs(name: str, floor: str, known: VersionSources) -> Iterator[str]:
    if parse_version(floor) is None:
        return
    yield from _compare_with_environments(
        f"{name}>={floor} is asked for",
        name,
        known.environments,
        lambda have: require_version(have) >= require_version(floor),
    )


def _found(name: str, version: str, known: VersionSources) -> Iterator[str]:
    if parse_version(version) is None:
        return
    yield from _compare_with_environments(
        f"{name} {version} was found", name, known.environments, None, version
    )
    refusing = [
        run
        for run in known.facts.transformers
        if run.torch and require_version(run.torch) > require_version(version.partition("+")[0])
    ]
    if name == "torch" and refusing:
        yield f"transformers {refusing[0].first} and newer do not use torch {version}, by the facts"


def _compare_with_environments(
    lead: str,
    name: str,
    places: tuple[KnownEnvironment, ...],
    fits: Callable[[str], bool] | None,
    found: str = "",
) -> Iterator[str]:
    for place in places:
        have = place.packages.get(canonicalize_name(name))
        if have is None:
            yield f"{lead}, and {place.source} has none" if place.is_complete else lead
        elif parse_version(have) is None or (fits is None and _alike(found, have)):
            yield f"{lead}, as {place.source} has it" if found else lead
        elif fits is None:
            yield f"{lead}, and {place.source} has {have}"
        else:
            yield f"{lead}, and {place.source} has {have}" + (
                f", which will do: {_FROM_ANOTHER_ENVIRONMENT}" if fits(have) else ""
            )
    if not places:
        yield lead


def _alike(one: str, other: str) -> bool:
    return require_version(one) == require_version(other) or require_version(
        one.partition("+")[0]
    ) == require_version(other.partition("+")[0])


def _requirement(value: str, known: VersionSources) -> Iterator[str]:
    if (wanted := _parsed(value)) is not None:
        yield from _compare_with_environments(
            f"{value} is asked for",
            wanted.name,
            known.environments,
            lambda have: wanted.specifier.contains(have, prereleases=True),
        )


def _parsed(value: str) -> Requirement | None:
    try:
        return Requirement(value)
    except InvalidRequirement:
        return None


def _pin(value: str, known: VersionSources) -> Iterator[str]:
    name, _, version = value.partition("==")
    if parse_version(version) is not None:
        yield from _compare_with_environments(
            f"{name} {version} was found", name, known.environments, None, version
        )


def _driver_cuda(value: str, known: VersionSources) -> Iterator[str]:
    cuda = f"{int(value) // 1000}.{int(value) % 1000 // 10}"
    toolkit = known.facts.toolkits.get(cuda)
    words = f"{value} means CUDA {cuda}"
    if toolkit is not None and toolkit.driver_first is not None:
        first = toolkit.driver_first
        lacking = [
            row
            for row in known.facts.toolkits.values()
            if require_version(row.floor_linux) > require_version(first)
        ]
        words += f", a driver from {first.split('.')[0]} on"
        words += (
            f"; builds for CUDA {lacking[0].cuda.split('.')[0]} need driver "
            f"{lacking[0].floor_linux}, those for an older CUDA run"
            if lacking
            else ""
        )
    yield words
    for place in known.environments:
        driver, torch = place.readings.get("driver.version"), place.packages.get("torch", "")
        if driver:
            yield f"{place.source} has driver {driver}" + (f" and torch {torch}" if torch else "")


def _capability(value: str, known: VersionSources) -> Iterator[str]:
    if len(value) < 2:
        return
    cc = value if "." in value else f"{value[:-1]}.{value[-1]}"
    cards = [card for card in known.facts.cards if card.cc == cc]
    if not cards:
        yield f"compute capability {cc}"
        return
    newest = next(
        (
            (release, found)
            for release in reversed(known.facts.torch)
            if (found := known.facts.builds_for_card(cards[0], release.release))
        ),
        None,
    )
    names = ", ".join(card.name for card in cards[:3])
    builds = (
        f"; the newest torch with code for it is {newest[0].release}, built for "
        f"{', '.join(build.flavour for build in newest[1])}"
        if newest
        else ""
    )
    yield f"compute capability {cc} ({names}){builds}"


def _glibc(value: str, known: VersionSources) -> Iterator[str]:
    wanted = value.rpartition("_")[2]
    for place in known.environments:
        have = place.readings.get("host.glibc")
        if (
            isinstance(have, str)
            and parse_version(have) is not None
            and parse_version(wanted) is not None
        ):
            fits = (
                f": {_FROM_ANOTHER_ENVIRONMENT}"
                if require_version(have) >= require_version(wanted)
                else ""
            )
            yield f"glibc {wanted} is asked for, and {place.source} has {have}{fits}"


def _module(value: str, known: VersionSources) -> Iterator[str]:
    yield from explain_missing_module(
        value, known.facts, known.environments, _FROM_ANOTHER_ENVIRONMENT
    )


def _gone(value: str, known: VersionSources) -> Iterator[str]:
    yield from explain_removed_module(value, known.facts, known.environments)


def _argument(value: str, known: VersionSources) -> Iterator[str]:
    row = known.facts.arguments.get(value)
    if row is None:
        return
    since = [f"from transformers {row.first} on"] if row.first else []
    until = [f"up to transformers {row.last}"] if row.last else []
    if since or until:
        instead = (
            f"; instead: {row.replaced_by or row.instead}" if row.replaced_by or row.instead else ""
        )
        yield f"TrainingArguments has {value} {' and '.join((*since, *until))}{instead}"
    yield from (
        f"{place.source} has transformers {have}"
        for place in known.environments
        if (have := place.packages.get("transformers"))
    )


_GROUP_EXPLAINERS: Mapping[str, Callable[[str, VersionSources], Iterator[str]]] = {
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
GROUP_KINDS = frozenset({"needs", "found", "as", *_GROUP_EXPLAINERS})
