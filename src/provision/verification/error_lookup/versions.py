"""Comparison of the versions in an error's text with the facts, a lock and a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provision.facts import Facts
from provision.facts.schema_packages import TrainingArgument
from provision.facts.versions import parse_version, require_version
from provision.verification.error_lookup.known_environment import (
    FROM_ANOTHER_ENVIRONMENT,
    KnownEnvironment,
)
from provision.verification.error_lookup.missing_modules import (
    explain_missing_module,
    explain_removed_module,
    find_missing_package,
    find_owner,
    is_known_package,
)

_PATH_OF_PYTHON = re.compile(r"[/\\]python(3\.\d{1,2})[/\\]")


class VersionSources(NamedTuple):
    """The sources that a version is compared with."""

    facts: Facts
    environments: tuple[KnownEnvironment, ...]


def explain_matches(
    meanings: Sequence[str], groups: Sequence[str | None], sources: VersionSources
) -> tuple[str, ...]:
    """Return sentences about the values that a symptom's expression matched.

    Args:
        meanings: The meaning of each group: needs:PACKAGE (its least version), found:PACKAGE,
            requirement, lacks (a requirement that is missing), pin, driver-cuda (12020),
            capability ("70", "7.0"), glibc, module, gone (a module that its package lacks),
            owner (a module of a known package; others are not a match), argument (of
            TrainingArguments), as:WORDS (a label for the value).
        groups: The values of the groups, None for one that did not match.
        sources: The facts and the known environments.
    """
    sentences: dict[str, None] = {}
    for meaning, value in zip(meanings, groups, strict=False):
        if value:
            sentences |= dict.fromkeys(_explain_group(meaning, value.rstrip(".,"), sources))
    return tuple(sentences)


def find_confirmations(
    meanings: Sequence[str], groups: Sequence[str | None], sources: VersionSources
) -> tuple[str, ...]:
    """Return sentences about environments in which the error must occur by the facts."""
    sentences = []
    for meaning, value in zip(meanings, groups, strict=False):
        row = sources.facts.arguments.get(value) if meaning == "argument" and value else None
        for environment in _environments_without(row, sources) if row is not None else ():
            version = environment.packages["transformers"]
            sentences.append(f"{environment.source} has transformers {version} without {value}")
    return tuple(sentences)


def has_unknown_owner(meanings: Sequence[str], groups: Sequence[str | None], facts: Facts) -> bool:
    """Return whether a matched module may be the user's own: its package is unknown."""
    return any(
        meaning == "owner" and value and not find_owner(value, facts)
        for meaning, value in zip(meanings, groups, strict=False)
    )


def find_missing_packages(
    meanings: Sequence[str], groups: Sequence[str | None], facts: Facts
) -> tuple[tuple[str, str], ...]:
    """Return the known packages that a text calls missing or too old, each with a specifier."""
    missing: list[tuple[str, str]] = []
    for meaning, value in zip(meanings, groups, strict=False):
        if not value:
            continue
        kind, _, name = meaning.partition(":")
        version = value.rstrip(".,")
        if kind == "needs" and parse_version(version) is not None:
            missing.append((name, f">={version}"))
        elif kind == "module":
            missing.append((find_missing_package(value, facts), ""))
        elif kind == "lacks" and (requirement := _parse_requirement(value)) is not None:
            missing.append((str(canonicalize_name(requirement.name)), str(requirement.specifier)))
    return tuple(pair for pair in missing if is_known_package(pair[0], facts))


def explain_python_mismatch(text: str, environments: Iterable[KnownEnvironment]) -> str:
    """Return that a text's paths belong to another Python than an environment, or ""."""
    pythons = sorted(set(_PATH_OF_PYTHON.findall(text)), key=require_version)
    for environment in environments:
        minor = ".".join(environment.python.split(".")[:2])
        if pythons and minor and minor not in pythons:
            return (
                f"the paths in the text are from Python {', '.join(pythons)}, but "
                f"{environment.source} has Python {environment.python}: "
                f"{FROM_ANOTHER_ENVIRONMENT}"
            )
    return ""


def _explain_group(meaning: str, value: str, sources: VersionSources) -> Iterator[str]:
    kind, _, name = meaning.partition(":")
    match kind:
        case "needs":
            yield from _explain_minimum(name, value, sources)
        case "found":
            yield from _explain_found(name, value, sources)
        case "as":
            yield f"{name} {value}"
        case _:
            yield from _GROUP_EXPLAINERS[kind](value, sources)


def _explain_minimum(name: str, minimum: str, sources: VersionSources) -> Iterator[str]:
    if parse_version(minimum) is not None:
        text = f"{name}>={minimum}"
        yield from _explain_specifier(text, Requirement(text), sources)


def _explain_found(name: str, version: str, sources: VersionSources) -> Iterator[str]:
    if parse_version(version) is None:
        return
    yield from _compare_found_version(name, version, sources.environments)
    if name != "torch":
        return
    release = require_version(version.partition("+")[0])
    for run in sources.facts.transformers:
        if run.torch and require_version(run.torch) > release:
            yield f"transformers {run.first} and newer do not use torch {version}"
            return


def _compare_with_environments(
    lead: str,
    name: str,
    environments: Sequence[KnownEnvironment],
    describe: Callable[[str, str], str],
) -> Iterator[str]:
    """Compare a package with each environment; `describe` gets the source and its version."""
    for environment in environments:
        version = environment.packages.get(canonicalize_name(name))
        if version is not None:
            yield lead + describe(environment.source, version)
        elif environment.is_complete:
            yield f"{lead}, but {environment.source} does not have it"
        else:
            yield lead
    if not environments:
        yield lead


def _explain_specifier(
    text: str, requirement: Requirement, sources: VersionSources
) -> Iterator[str]:
    """Compare a requirement with the version in each environment."""

    def describe(source: str, version: str) -> str:
        if parse_version(version) is None:
            return ""
        known = f", and {source} has {version}"
        if requirement.specifier.contains(version, prereleases=True):
            return f"{known}, which satisfies it: {FROM_ANOTHER_ENVIRONMENT}"
        return known

    yield from _compare_with_environments(
        f"{text} is required", requirement.name, sources.environments, describe
    )


def _compare_found_version(
    name: str, reported: str, environments: Sequence[KnownEnvironment]
) -> Iterator[str]:
    """Compare a version that a text reports with the version in each environment."""

    def describe(source: str, version: str) -> str:
        if parse_version(version) is None or _is_same_release(reported, version):
            return f", as in {source}"
        return f", and {source} has {version}"

    lead = f"{name} {reported} was found"
    yield from _compare_with_environments(lead, name, environments, describe)


def _is_same_release(first: str, second: str) -> bool:
    """Return whether two versions are equal, with or without their local part."""
    public = [require_version(text.partition("+")[0]) for text in (first, second)]
    return require_version(first) == require_version(second) or public[0] == public[1]


def _explain_requirement(value: str, sources: VersionSources) -> Iterator[str]:
    if (requirement := _parse_requirement(value)) is not None:
        yield from _explain_specifier(value, requirement, sources)


def _parse_requirement(value: str) -> Requirement | None:
    try:
        return Requirement(value)
    except InvalidRequirement:
        return None


def _explain_pin(value: str, sources: VersionSources) -> Iterator[str]:
    name, _, version = value.partition("==")
    if parse_version(version) is not None:
        yield from _compare_found_version(name, version, sources.environments)


def _explain_owner(value: str, sources: VersionSources) -> Iterator[str]:
    """Name the package of a module, with its version in each environment."""
    package = find_owner(value, sources.facts)
    yield from _compare_with_environments(
        f"{value} belongs to the package {package}",
        package,
        sources.environments,
        lambda source, version: f"; {source} has {package} {version}",
    )


def _explain_driver_cuda(value: str, sources: VersionSources) -> Iterator[str]:
    cuda = f"{int(value) // 1000}.{int(value) % 1000 // 10}"
    toolkits, sentence = sources.facts.toolkits, f"{value} means CUDA {cuda}"
    oldest_driver = toolkits[cuda].driver_first if cuda in toolkits else None
    if oldest_driver is not None:
        sentence += f", which needs driver {oldest_driver.split('.')[0]} or newer"
        for row in toolkits.values():
            if require_version(row.floor_linux) > require_version(oldest_driver):
                sentence += (
                    f"; builds for CUDA {row.cuda.split('.')[0]} need driver {row.floor_linux}, "
                    "builds for an older CUDA run on it"
                )
                break
    yield sentence
    for environment in sources.environments:
        if driver := environment.readings.get("driver.version"):
            torch = environment.packages.get("torch", "")
            suffix = f" and torch {torch}" if torch else ""
            yield f"{environment.source} has driver {driver}{suffix}"


def _explain_capability(value: str, sources: VersionSources) -> Iterator[str]:
    if len(value) < 2:
        return
    capability = value if "." in value else f"{value[:-1]}.{value[-1]}"
    cards = [card for card in sources.facts.cards if card.cc == capability]
    if not cards:
        yield f"compute capability {capability}"
        return
    sentence = f"compute capability {capability} ({', '.join(card.name for card in cards[:3])})"
    for release in reversed(sources.facts.torch):
        if builds := sources.facts.builds_for_card(cards[0], release.release):
            flavours = ", ".join(build.flavour for build in builds)
            sentence += (
                f"; the newest torch that supports it is {release.release}, built for {flavours}"
            )
            break
    yield sentence


def _explain_glibc(value: str, sources: VersionSources) -> Iterator[str]:
    minimum = value.rpartition("_")[2]
    for environment in sources.environments:
        version = environment.readings.get("host.glibc")
        if not isinstance(version, str) or None in map(parse_version, (version, minimum)):
            continue
        sentence = f"glibc {minimum} is required, and {environment.source} has {version}"
        if require_version(version) >= require_version(minimum):
            sentence += f": {FROM_ANOTHER_ENVIRONMENT}"
        yield sentence


def _explain_argument(value: str, sources: VersionSources) -> Iterator[str]:
    row = sources.facts.arguments.get(value)
    if row is None:
        return
    limits = []
    if row.first:
        limits.append(f"since transformers {row.first}")
    if row.last:
        limits.append(f"up to transformers {row.last}")
    if limits:
        replacement = row.replaced_by or row.instead
        suffix = f"; use {replacement} instead" if replacement else ""
        yield f"TrainingArguments has {value} {' and '.join(limits)}{suffix}"
    confirmed = {one.source for one in _environments_without(row, sources)}
    for environment in sources.environments:
        version = environment.packages.get("transformers")
        if version and environment.source not in confirmed:
            yield f"{environment.source} has transformers {version}"


def _environments_without(row: TrainingArgument, sources: VersionSources) -> list[KnownEnvironment]:
    """Return the environments whose transformers is known not to have an argument."""
    without = []
    for environment in sources.environments:
        version = parse_version(environment.packages.get("transformers", ""))
        if version is None:
            continue
        is_older = bool(row.first) and version < require_version(row.first)
        is_newer = bool(row.last) and version > require_version(row.last)
        if is_older or is_newer:
            without.append(environment)
    return without


_GROUP_EXPLAINERS: Mapping[str, Callable[[str, VersionSources], Iterator[str]]] = {
    "requirement": _explain_requirement,
    "lacks": _explain_requirement,
    "pin": _explain_pin,
    "driver-cuda": _explain_driver_cuda,
    "capability": _explain_capability,
    "glibc": _explain_glibc,
    "module": lambda value, sources: explain_missing_module(value, *sources),
    "gone": lambda value, sources: explain_removed_module(value, *sources),
    "owner": _explain_owner,
    "argument": _explain_argument,
}
"""Meanings of a group, in addition to needs:, found: and as:."""
GROUP_KINDS = frozenset({"needs", "found", "as", *_GROUP_EXPLAINERS})
