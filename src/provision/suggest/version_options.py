"""The releases, CUDA versions and Pythons that a spec could have instead, with their costs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from provision.facts import Facts, cuda_of
from provision.facts.versions import (
    admitted_versions,
    has_version_in_range,
    is_satisfiable,
    named_versions,
    require_version,
)
from provision.kinds.base import TargetFacts
from provision.rules.package_lines import version_specifiers, without_local
from provision.rules.package_requirements import possible_releases, release_rows
from provision.rules.torch_builds import LINUX_PLATFORMS
from provision.spec import Package, Spec
from provision.target_facts import collect_target_facts

VERSION_CHANGE_COST = 1.0
"""Cost of another version or build. Our choice, as are all costs: see also candidates.py."""
PYTHON_CHANGE_COST = 1.5
"""Cost of another Python, which is changed less readily."""
DISTANCE_COST = 0.9
"""Cost of the distance through a whole table: less than that of a further change."""
UNCERTAIN_BUILD_COST = 0.3
"""Cost of a build that is not certain to be installable."""
MAX_PYTHONS, MAX_TRANSFORMERS, MAX_COMPANIONS = 4, 24, 6
"""Pythons, and releases of transformers and of each other package, to try with a build of torch,
one after the other.
"""


class VersionOption(NamedTuple):
    """A version and what it costs to have it instead of the requested one; "" keeps the line."""

    cost: float
    value: str


class VersionOptions:
    """The versions that could be chosen for a spec; fields in `free` cost nothing to choose."""

    def __init__(self, spec: Spec, facts: Facts, free: frozenset[str]) -> None:
        self.spec, self.facts, self.free = spec, facts, free
        self.targets = collect_target_facts(spec, facts)

    def torch(self) -> list[VersionOption]:
        """Return the releases of torch."""
        return self._releases("torch", tuple(row.release for row in self.facts.torch))

    def transformers(self, torch: str) -> list[VersionOption]:
        """Return the nearest releases of transformers that accept a release of torch."""
        if not torch:
            return self._transformers[:MAX_TRANSFORMERS]
        release, options = require_version(torch), []
        for option in self._transformers:
            floor = self.facts.torch_floor(option.value)
            if floor is None or release >= require_version(floor.version):
                options.append(option)
        return options[:MAX_TRANSFORMERS]

    def companions_cost(self, torch: str) -> float:
        """Return the cost of changing torchvision and torchaudio with a release of torch."""
        release = self.facts.torch_release(torch)
        if release is None:
            return 0.0
        cost = 0.0
        companions = {"torchvision": release.torchvision, "torchaudio": release.torchaudio}
        for name, versions in companions.items():
            package = self.spec.package(name)
            if package is None:
                continue
            if not admitted_versions(SpecifierSet(without_local(package.version)), versions):
                cost += VERSION_CHANGE_COST
        return cost

    def companions(self, package: Package, chosen: Mapping[str, str]) -> list[VersionOption]:
        """Return specifiers of a package that fit other chosen versions, the nearest first.

        They pin a known release. If no release is known, they are the bounds that the chosen
        releases of other packages declare.
        """
        specifiers = version_specifiers(package)
        bounds = self._bounds_on(package.key, chosen)
        if specifiers is None:
            return []
        rows = release_rows(self.facts, package.key)
        if not rows:
            known = [VersionOption(VERSION_CHANGE_COST, str(bounds))]
            return known if bounds and not is_satisfiable(str(bounds), str(specifiers)) else []
        declared = {end: row.declared for row in rows for end in (row.first, row.last)}
        releases = sorted(declared, key=require_version)
        named = max(named_versions(specifiers), default=require_version(releases[-1]))
        index = bisect_left(releases, named, key=require_version)
        options = []
        for number, release in reversed(tuple(enumerate(releases))):
            fits = _accepts(declared[release], chosen) and has_version_in_range(bounds, release)
            if fits and not specifiers.contains(release, prereleases=True):
                cost = VERSION_CHANGE_COST + DISTANCE_COST * abs(number - index) / len(releases)
                options.append(VersionOption(cost, f"=={release}"))
        return sorted(options, key=lambda option: option.cost)[:MAX_COMPANIONS]

    def keeps_companion(self, package: Package, chosen: Mapping[str, str]) -> bool:
        """Return whether the line of a package admits a release that fits other chosen versions.

        True if nothing is known about it.
        """
        specifiers = version_specifiers(package)
        if specifiers is None:
            return True
        admitted = [
            row
            for row in release_rows(self.facts, package.key)
            if specifiers.contains(row.first, prereleases=True)
            or specifiers.contains(row.last, prereleases=True)
        ]
        return not admitted or any(_accepts(row.declared, chosen) for row in admitted)

    def _bounds_on(self, name: str, chosen: Mapping[str, str]) -> SpecifierSet:
        """Return what the chosen releases of other packages declare about a package.

        Of several lower bounds the highest counts.
        """
        bounds = SpecifierSet()
        for other, version in chosen.items():
            possible = possible_releases(self.facts, other, f"=={version}")
            for row in possible.rows if possible else ():
                bounds &= SpecifierSet(row.declared.get(name, ""))
        floors = [one for one in bounds if one.operator == ">="]
        highest = max(floors, key=lambda one: require_version(one.version), default=None)
        return SpecifierSet(
            ",".join(str(one) for one in bounds if one.operator != ">=" or one == highest)
        )

    def cudas(self, torch: str) -> list[VersionOption]:
        """Return the CUDA versions of a release that run on every card with the known drivers."""
        requested = self._requested_cuda()
        if not torch or not any(target.gpu_settings.is_nvidia for target in self.targets):
            return [VersionOption(0.0, requested)]
        release = self.facts.torch_release(torch)
        options = []
        for flavour, confidence in (release.builds if release else {}).items():
            if not all(self._can_run(torch, flavour, target) for target in self.targets):
                continue
            cost = 0.0 if confidence == "high" else UNCERTAIN_BUILD_COST
            if requested not in (cuda_of(flavour), "auto"):
                cost += VERSION_CHANGE_COST
            options.append(VersionOption(cost, cuda_of(flavour)))
        return options

    def pythons(self, torch: str) -> list[VersionOption]:
        """Return the Pythons with wheels: the requested, the provided and the nearest ones."""
        versions = [row.version for row in self.facts.pythons]
        release = self.facts.torch_release(torch)
        is_free = "python" in self.free
        requested = self._usual_python if is_free else self.spec.python
        index = bisect_left(versions, require_version(requested), key=require_version)
        options = []
        for number, version in reversed(tuple(enumerate(versions))):
            if release is not None and version not in release.pythons:
                continue
            cost = 0.0
            if version != requested:
                cost = 0.0 if is_free else PYTHON_CHANGE_COST
                cost += DISTANCE_COST * abs(number - index) / len(versions)
            options.append(VersionOption(cost, version))
        options.sort(key=lambda option: option.cost)
        provided = {target.python.value for target in self.targets if target.python}
        further = [option for option in options[MAX_PYTHONS:] if option.value in provided]
        return options[:MAX_PYTHONS] + further

    @cached_property
    def _transformers(self) -> list[VersionOption]:
        known = set(self.facts.transformers_read)
        package = self.spec.package("transformers")
        if package:
            specifiers = version_specifiers(package) or SpecifierSet()
            named = (str(version) for version in named_versions(specifiers))
            known.update(name for name in named if self.facts.has_transformers_release(name))
        return self._releases("transformers", tuple(sorted(known, key=require_version)))

    def _releases(self, name: str, table: Sequence[str]) -> list[VersionOption]:
        """Return the releases of a package by cost, then age; an empty one if it is not listed."""
        package = self.spec.package(name)
        specifiers = version_specifiers(package) if package else None
        if specifiers is None:
            return [VersionOption(0.0, "")]
        admitted = frozenset(admitted_versions(specifiers, table))
        indexes = [index for index, version in enumerate(table) if version in admitted]
        options = []
        if not indexes:
            # Distance counts from where the newest named version would be.
            newest = max(named_versions(specifiers), default=require_version(table[-1]))
            indexes = [bisect_left(table, newest, key=require_version)]
            if has_version_in_range(specifiers, f"{table[-1]}.0.1"):
                # A version newer than the table stays as it is: nothing is known against it.
                options.append(VersionOption(0.0, ""))
        for index, version in reversed(tuple(enumerate(table))):
            distance = min(abs(index - other) for other in indexes)
            cost = VERSION_CHANGE_COST + DISTANCE_COST * distance / len(table)
            options.append(VersionOption(0.0 if version in admitted else cost, version))
        return sorted(options, key=lambda option: option.cost)

    @property
    def _usual_python(self) -> str:
        """The Python of Colab's newest named runtime, for which the ecosystem has wheels."""
        named = [row.minor for row in self.facts.runtimes.values() if row.runtime != "latest"]
        return named[-1] if named else self.spec.python

    def _requested_cuda(self) -> str:
        package = self.spec.package("torch")
        tag = re.search(r"\+cu(\d+)", package.version) if package else None
        return cuda_of(f"cu{tag[1]}") if tag and self.spec.cuda == "auto" else self.spec.cuda

    def _can_run(self, torch: str, flavour: str, target: TargetFacts) -> bool:
        platform = target.platforms[0]
        # The compiled code of builds for other platforms is unknown.
        if target.card is None or platform not in LINUX_PLATFORMS:
            return True
        build = self.facts.build(torch, flavour, platform)
        if build is None or not self.facts.has_code_for(target.card, build):
            return False
        if target.driver is None:
            return True
        return self.facts.can_run(target.driver.value, build, target.card) is not False


def _accepts(declared: Mapping[str, str], chosen: Mapping[str, str]) -> bool:
    """Return whether what a release declares admits the chosen versions."""
    return all(
        SpecifierSet(declared.get(name, "")).contains(version, prereleases=True)
        for name, version in chosen.items()
    )
