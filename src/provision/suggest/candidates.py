"""The versions and settings that a spec could have instead, with their costs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet

from provision.diagnostics import Route
from provision.facts import Facts, TorchRelease, cuda_of
from provision.facts.versions import admitted_versions, has_version_in_range, require_version
from provision.facts.versions import named_versions as names
from provision.rules.package_lines import version_specifiers, without_local
from provision.rules.torch_builds import LINUX_PLATFORMS
from provision.spec import Package, Precision, Spec
from provision.target_facts import TargetFacts, collect_target_facts

VERSION_CHANGE_COST, PYTHON_CHANGE_COST, PRECISION_CHANGE_COST, LOOSENED_COST, DROPPED_COST = (
    1.0,
    1.5,
    3.0,
    1.1,
    2.5,
)
"""What a change weighs, our choice: a version or build is changed readily, a Python less so, a
package is missed, and a precision changes the training.
"""
_FURTHER = 0.9
"""What the way through a whole table of releases adds: nearer is better, and never outweighs one
change more.
"""
_DOUBT = 0.3
"""What it adds that a build is not known for certain to be installable."""
_NEAREST, _MOST = 4, 24
"""How many Pythons, and releases of transformers, are tried with a build of torch: each is put
before the rules only where the one before had an error.
"""
_CORE = ("torch", "torchvision", "torchaudio", "transformers", "accelerate")
_LOWER = {
    Precision.FP8: (Precision.BF16, Precision.FP16),
    Precision.BF16: (Precision.FP16, Precision.FP32),
    Precision.TF32: (Precision.FP32,),
}


class SpecChange(NamedTuple):
    """A changed line of a spec ("" if it is new or removed) and what the change gives up."""

    route: Route
    was: str
    now: str
    gives_up: str = ""


class ScoredOption(NamedTuple):
    """A value of one dimension and what it costs to have it instead of what was requested."""

    cost: float
    value: str


class Candidate(NamedTuple):
    """A point of the search.

    "" for torch or transformers that stay as they are written, or are not listed; `loosened` and
    `dropped` are packages by canonical name.
    """

    cuda: str
    torch: str
    transformers: str
    python: str
    precision: Precision
    loosened: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()


class CandidateSpace:
    """Everything that could change in a spec.

    Fields in `free` ("python", "cuda") were left open by the author and cost nothing.
    """

    def __init__(self, spec: Spec, facts: Facts, free: frozenset[str] = frozenset()) -> None:
        self.spec, self.facts, self.free = spec, facts, free
        self.targets = collect_target_facts(spec, facts)
        known = set(facts.transformers_read)
        listed = spec.package("transformers")
        if listed:
            named = (
                str(version) for version in names(version_specifiers(listed) or SpecifierSet())
            )
            known.update(version for version in named if facts.has_transformers_release(version))
        self._all_transformers = self._releases(
            "transformers", tuple(sorted(known, key=require_version))
        )
        # The Python of Colab's newest pinned runtime: what the ecosystem has wheels for.
        self._usual = next(
            (
                row.minor
                for row in reversed(tuple(facts.runtimes.values()))
                if row.runtime != "latest"
            ),
            spec.python,
        )

    def initial_candidates(self) -> Iterator[tuple[float, Candidate]]:
        """Yield each build of torch with the cheapest other versions, and the cost, unordered."""
        for torch in self._releases("torch", tuple(row.release for row in self.facts.torch)):
            for cuda in self._cudas(torch.value):
                transformers, pythons = self._transformers(torch.value), self._pythons(torch.value)
                if transformers and pythons:
                    cost = (
                        torch.cost
                        + self._companions(torch.value)
                        + cuda.cost
                        + transformers[0].cost
                        + pythons[0].cost
                    )
                    yield (
                        cost,
                        Candidate(
                            cuda.value,
                            torch.value,
                            transformers[0].value,
                            pythons[0].value,
                            self.spec.training.precision,
                        ),
                    )

    def alternatives(
        self, choice: Candidate, routes: Collection[Route]
    ) -> Iterator[tuple[float, Candidate]]:
        """Yield the next alternatives of what findings at `routes` point at, with their costs."""
        listed: dict[Route, Package] = {
            ("packages", number): package for number, package in enumerate(self._lines(choice))
        }
        meant = {
            listed[route[:2]].key: listed[route[:2]] for route in routes if route[:2] in listed
        }
        if meant.keys() & set(_CORE):
            yield from (
                (cost, choice._replace(transformers=value))
                for cost, value in _after(choice.transformers, self._transformers(choice.torch))
            )
        if any(route[0] in ("python", "targets") for route in routes if route):
            yield from (
                (cost, choice._replace(python=value))
                for cost, value in _after(choice.python, self._pythons(choice.torch))
            )
        if ("training", "precision") in routes:
            yield from (
                (PRECISION_CHANGE_COST, choice._replace(precision=lower))
                for lower in _LOWER.get(choice.precision, ())
            )
        for package in meant.values():
            if package.key in _CORE:
                continue
            if package.version and package.key not in choice.loosened:
                yield LOOSENED_COST, choice._replace(loosened=choice.loosened | {package.key})
            elif package.key not in choice.dropped:
                yield DROPPED_COST, choice._replace(dropped=choice.dropped | {package.key})

    def to_spec(self, choice: Candidate) -> Spec:
        """Return the spec that a choice makes."""
        training = self.spec.training.model_copy(update={"precision": choice.precision})
        targets = {
            name: target.model_copy(update={"cuda": self._own_cuda(target.cuda, choice)})
            for name, target in self.spec.targets.items()
        }
        own: dict[str, Any] = {
            "python": choice.python,
            "cuda": choice.cuda,
            "training": training,
            "targets": targets,
        }
        return self.spec.model_copy(update={**own, "packages": list(self._lines(choice))})

    def changes(self, choice: Candidate) -> tuple[SpecChange, ...]:
        """Return what a choice changes in the spec, in the spec's order."""
        return tuple(self._changes(choice, self.to_spec(choice)))

    def _changes(self, choice: Candidate, spec: Spec) -> Iterator[SpecChange]:
        for field in ("cuda", "python"):
            was, now = str(getattr(self.spec, field)), str(getattr(spec, field))
            given = field in self.spec.model_fields_set and field not in self.free
            if was != now or (field in self.free and now not in ("auto", "none")):
                yield SpecChange(
                    (field,),
                    f'"{was}"' if given else "",
                    f'"{now}"',
                    _older(field, was, now) if given else "",
                )
        yield from self._package_changes(choice)
        for name, target in self.spec.targets.items():
            if target.cuda != spec.targets[name].cuda:
                yield SpecChange(
                    ("targets", name, "cuda"), f'"{target.cuda}"', f'"{spec.targets[name].cuda}"'
                )
        if choice.precision is not self.spec.training.precision:
            was = self.spec.training.precision.value
            yield SpecChange(
                ("training", "precision"), was, choice.precision.value, f"training in {was}"
            )

    def _package_changes(self, choice: Candidate) -> Iterator[SpecChange]:
        old = {package.key: (number, package) for number, package in enumerate(self.spec.packages)}
        new = {package.key: package for package in self._lines(choice)}
        for key, (number, package) in old.items():
            now = new.get(key)
            if now is None or not _within(package, now):
                same = now is not None and now.version == without_local(package.version)
                if now is None:
                    missed = f"the package {key}"
                elif package.version and not same:
                    missed = f"{key}{package.version}"
                else:
                    missed = ""
                yield SpecChange(
                    ("packages", number),
                    package.requirement,
                    now.requirement if now else "",
                    missed,
                )
        for key in new.keys() - old.keys():
            yield SpecChange(("packages",), "", new[key].requirement)

    def _lines(self, choice: Candidate) -> Iterator[Package]:
        """Yield the packages of a candidate: pinned, loosened, dropped or as written."""
        release = self.facts.torch_release(choice.torch) if choice.torch else None
        for package in self.spec.packages:
            if package.key in choice.dropped:
                continue
            yield self._line(package, choice, release)
        floor = self.facts.accelerate_floor(choice.transformers) if choice.transformers else None
        extras = {
            extra.lower()
            for package in self.spec.packages
            if package.key == "transformers"
            for extra in package.extras
        }
        brought = extras & self.facts.accelerate_extras or self.facts.accelerate_packages & {
            package.key for package in self.spec.packages
        }
        if (
            floor is not None
            and not brought
            and self.spec.framework() == "hf-trainer"
            and self.spec.package("accelerate") is None
        ):
            yield Package(name="accelerate", version=f">={floor.version}")

    def _line(self, package: Package, choice: Candidate, release: TorchRelease | None) -> Package:
        made: dict[str, tuple[str, ...]] = {
            "torch": (choice.torch,),
            "transformers": (choice.transformers,),
        }
        if release is not None:
            made |= {"torchvision": release.torchvision, "torchaudio": release.torchaudio}
        if any(made.get(package.key, ())):
            return package.model_copy(update={"version": f"=={made[package.key][-1]}"})
        floor = None
        if package.key == "accelerate" and choice.transformers:
            floor = self.facts.accelerate_floor(choice.transformers)
        if floor is not None and not has_version_in_range(
            SpecifierSet(without_local(package.version)), floor.version
        ):
            return package.model_copy(update={"version": f">={floor.version}"})
        if package.key in choice.loosened:
            return package.model_copy(update={"version": self._newest(package.key)})
        return package

    def _newest(self, name: str) -> str:
        """Return specifiers for the newest known releases of a package, or ""."""
        runs = self.facts.runs.get(name, ())
        return f">={runs[-1].first}" if runs else ""

    def _own_cuda(self, own: str | None, choice: Candidate) -> str | None:
        """Return the `cuda` of a target: its own stays where it has none or goes without CUDA."""
        return choice.cuda if own not in (None, "none", "auto") else own

    def _releases(self, name: str, table: Sequence[str]) -> list[ScoredOption]:
        """Return the releases of a package by cost, then age; an empty one if it is not listed."""
        package = self.spec.package(name)
        if package is None:
            return [ScoredOption(0.0, "")]
        specifiers = version_specifiers(package)
        if specifiers is None:
            return [ScoredOption(0.0, "")]
        wanted = admitted_versions(specifiers, table)
        # Where nothing is admitted, nearness counts from where the newest version that is named
        # would stand.
        asked = [table.index(version) for version in wanted] or [
            bisect_left(
                table,
                max(names(specifiers), default=require_version(table[-1])),
                key=require_version,
            )
        ]
        costs = {
            version: VERSION_CHANGE_COST
            + _FURTHER * min(abs(index - other) for other in asked) / len(table)
            for index, version in enumerate(table)
        }
        options = [
            ScoredOption(0.0 if version in wanted else costs[version], version)
            for version in reversed(table)
        ]
        # What is newer than the table stays as it is written: nothing is known against it.
        if wanted or not has_version_in_range(specifiers, f"{table[-1]}.0.1"):
            beyond = []
        else:
            beyond = [ScoredOption(0.0, "")]
        return sorted(beyond + options, key=lambda option: option.cost)

    def _transformers(self, torch: str) -> list[ScoredOption]:
        """Return the nearest releases of transformers that take a release of torch."""
        options = self._all_transformers
        if torch:
            floors = {option.value: self.facts.torch_floor(option.value) for option in options}
        else:
            floors = {}
        fit = [
            one
            for one in options
            if (floor := floors.get(one.value)) is None
            or require_version(torch) >= require_version(floor.version)
        ]
        return fit[:_MOST]

    def _companions(self, torch: str) -> float:
        """Return the cost of changing torchvision and torchaudio with a release of torch."""
        release = self.facts.torch_release(torch) if torch else None
        if release:
            made = {"torchvision": release.torchvision, "torchaudio": release.torchaudio}
        else:
            made = {}
        listed = {name: package for name in made if (package := self.spec.package(name))}
        return VERSION_CHANGE_COST * sum(
            not admitted_versions(SpecifierSet(without_local(package.version)), made[name])
            for name, package in listed.items()
        )

    def _cudas(self, torch: str) -> list[ScoredOption]:
        """Return the CUDA versions of a release that run on every card with the known drivers."""
        tagged = None
        if package := self.spec.package("torch"):
            tagged = re.search(r"\+cu(\d+)", package.version)
        asked = cuda_of(f"cu{tagged[1]}") if tagged and self.spec.cuda == "auto" else self.spec.cuda
        if not any(site.gpu_settings.is_nvidia for site in self.targets) or not torch:
            return [ScoredOption(0.0, asked)]
        release = self.facts.torch_release(torch)
        builds = release.builds if release else {}
        runs = [
            flavour
            for flavour in builds
            if all(self._runs(torch, flavour, site) for site in self.targets)
        ]
        doubts = {flavour: 0.0 if builds[flavour] == "high" else _DOUBT for flavour in runs}
        return [
            ScoredOption(
                doubts[flavour]
                + (0.0 if asked in (cuda_of(flavour), "auto") else VERSION_CHANGE_COST),
                cuda_of(flavour),
            )
            for flavour in runs
        ]

    def _runs(self, torch: str, flavour: str, site: TargetFacts) -> bool:
        if site.card is None:
            return True
        if (
            site.platforms[0] not in LINUX_PLATFORMS
        ):  # nothing is known of what those builds were compiled for
            return True
        build = self.facts.build(torch, flavour, site.platforms[0])
        if build is None or not self.facts.has_code_for(site.card, build):
            return False
        return (
            site.driver is None
            or self.facts.can_run(site.driver.value, build, site.card) is not False
        )

    def _pythons(self, torch: str) -> list[ScoredOption]:
        """Return the Pythons with wheels: the requested, the provided and the nearest ones."""
        versions = [row.version for row in self.facts.pythons]
        release = self.facts.torch_release(torch) if torch else None
        made = [version for version in versions if release is None or version in release.pythons]
        free = "python" in self.free
        near = self._usual if free else self.spec.python
        asked = versions.index(near) if near in versions else len(versions)
        costs = {
            version: (0.0 if free else PYTHON_CHANGE_COST)
            + _FURTHER * abs(versions.index(version) - asked) / len(versions)
            for version in made
        }
        best = sorted(
            (
                ScoredOption(0.0 if version == near else costs[version], version)
                for version in reversed(made)
            ),
            key=lambda option: option.cost,
        )
        brought = {site.python.value for site in self.targets if site.python}
        return [
            option
            for index, option in enumerate(best)
            if index < _NEAREST or option.value in brought
        ]


def _older(field: str, was: str, now: str) -> str:
    """Return what a changed field gives up: the newer version, or the CPU build."""
    if was == "none":
        return "the CPU build of torch"
    if was != "auto" and require_version(now) < require_version(was):
        return f"{field} {was}"
    return ""


def _after(value: str, options: list[ScoredOption]) -> list[ScoredOption]:
    """Return the option that comes after the one at hand, with what it costs more."""
    places = [index for index, option in enumerate(options[:-1]) if option.value == value]
    return [
        ScoredOption(
            max(0.0, options[index + 1].cost - options[index].cost), options[index + 1].value
        )
        for index in places
    ]


def _within(was: Package, now: Package) -> bool:
    """Return whether a line is unchanged, or pins a version that it admitted before."""
    pinned = now.version.removeprefix("==")
    return now.requirement == was.requirement or (
        "+" not in was.version
        and now.version.startswith("==")
        and was.specifiers.contains(pinned, prereleases=True)
    )
