"""The specs near a spec: candidates of the search, their changes and their costs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise, product
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet

from provision.diagnostics import Route
from provision.facts import Facts, TorchRelease
from provision.facts.versions import has_version_in_range, parse_version, require_version
from provision.rules.package_lines import without_local
from provision.spec import Package, Precision, Spec
from provision.suggest.version_options import VersionOption, VersionOptions

PRECISION_CHANGE_COST, DROPPED_COST = 3.0, 2.5
"""Costs of another precision, which changes the training, and of a package without a line. Our
choice.
"""
_CORE = ("torch", "torchvision", "torchaudio", "transformers")
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


class Candidate(NamedTuple):
    """A point of the search.

    "" for torch or transformers that stay as they are written, or are not listed. `moved` are
    packages by canonical name with the specifiers to use instead, `dropped` are canonical names.
    """

    cuda: str
    torch: str
    transformers: str
    python: str
    precision: Precision
    moved: frozenset[tuple[str, str]] = frozenset()
    dropped: frozenset[str] = frozenset()


class CandidateSpace:
    """Everything that could change in a spec.

    Fields in `free` ("python", "cuda") were left open by the author and cost nothing.
    """

    def __init__(self, spec: Spec, facts: Facts, free: frozenset[str] = frozenset()) -> None:
        self.spec, self.facts, self.free = spec, facts, free
        self._options = VersionOptions(spec, facts, free)

    def initial_candidates(self) -> Iterator[tuple[float, Candidate]]:
        """Yield each build of torch with the cheapest other versions, and the cost, unordered.

        Packages that declare another torch or transformers move with them to the nearest release
        that accepts both.
        """
        precision = self.spec.training.precision
        for torch in self._options.torch():
            transformers = self._options.transformers(torch.value)[:1]
            pythons = self._options.pythons(torch.value)[:1]
            companions = self._options.companions_cost(torch.value)
            for cuda, other, python in product(
                self._options.cudas(torch.value), transformers, pythons
            ):
                cost = torch.cost + companions + cuda.cost + other.cost + python.cost
                values = cuda.value, torch.value, other.value, python.value
                moves = self._moves(torch.value, other.value)
                moved = frozenset((name, option.value) for name, option in moves.items())
                cost += sum(option.cost for option in moves.values())
                yield cost, Candidate(*values, precision, moved)

    def _moves(self, torch: str, transformers: str) -> dict[str, VersionOption]:
        """Return the nearest release of each pinned package that does not fit torch."""
        chosen = {"torch": torch, "transformers": transformers}
        chosen = {name: version for name, version in chosen.items() if version}
        moves = {}
        for package in self.spec.packages:
            pinned = package.key not in _CORE and package.version
            if pinned and not self._options.keeps_companion(package, chosen):
                options = self._options.companions(package, chosen)
                if options:
                    moves[package.key] = options[0]
        return moves

    def alternatives(
        self, candidate: Candidate, routes: Collection[Route]
    ) -> Iterator[tuple[float, Candidate]]:
        """Yield the next alternatives of what findings at `routes` point at, with their costs."""
        packages = tuple(self._lines(candidate))
        listed: dict[Route, Package] = {
            ("packages", i): package for i, package in enumerate(packages)
        }
        lines = (listed[route[:2]] for route in routes if route[:2] in listed)
        meant = {package.key: package for package in lines}
        if meant.keys() & set(_CORE):
            yield from (
                (cost, candidate._replace(transformers=value))
                for cost, value in _after(
                    candidate.transformers, self._options.transformers(candidate.torch)
                )
            )
        if any(route[0] in ("python", "targets") for route in routes if route):
            yield from (
                (cost, candidate._replace(python=value))
                for cost, value in _after(candidate.python, self._options.pythons(candidate.torch))
            )
        if ("training", "precision") in routes:
            yield from (
                (PRECISION_CHANGE_COST, candidate._replace(precision=lower))
                for lower in _LOWER.get(candidate.precision, ())
            )
        for package in meant.values():
            if package.key not in _CORE:
                yield from self._other_releases(candidate, package)

    def _other_releases(
        self, candidate: Candidate, package: Package
    ) -> Iterator[tuple[float, Candidate]]:
        """Yield a candidate with other releases of a package, and without the package."""
        written = self.spec.package(package.key)
        if written is not None and written.version:
            chosen = {
                other.key: pin
                for other in self._lines(candidate)
                if other.key != package.key and (pin := _pinned_version(other))
            }
            moved = {name: release for name, release in candidate.moved if name != package.key}
            for cost, release in self._options.companions(written, chosen):
                pins = frozenset({**moved, package.key: release}.items())
                if pins != candidate.moved:
                    yield cost, candidate._replace(moved=pins)
        if package.key not in candidate.dropped:
            yield DROPPED_COST, candidate._replace(dropped=candidate.dropped | {package.key})

    def to_spec(self, candidate: Candidate) -> Spec:
        """Return the spec that a candidate makes."""
        training = self.spec.training.model_copy(update={"precision": candidate.precision})
        targets = {
            name: target.model_copy(update={"cuda": self._own_cuda(target.cuda, candidate)})
            for name, target in self.spec.targets.items()
        }
        own: dict[str, Any] = {
            "python": candidate.python,
            "cuda": candidate.cuda,
            "training": training,
            "targets": targets,
        }
        is_other = candidate.cuda[:1].isdigit() and candidate.cuda != self.spec.cuda
        if self.spec.cuda_toolkit and is_other:
            own["cuda_toolkit"] = candidate.cuda
        return self.spec.model_copy(update={**own, "packages": list(self._lines(candidate))})

    def changes(self, candidate: Candidate) -> tuple[SpecChange, ...]:
        """Return what a candidate changes in the spec, in the spec's order."""
        return tuple(self._changes(candidate, self.to_spec(candidate)))

    def _changes(self, candidate: Candidate, spec: Spec) -> Iterator[SpecChange]:
        for field in ("cuda", "cuda_toolkit", "python"):
            was, now = str(getattr(self.spec, field)), str(getattr(spec, field))
            given = field in self.spec.model_fields_set and field not in self.free
            if was != now or (field in self.free and now not in ("auto", "none")):
                yield SpecChange(
                    (field,),
                    f'"{was}"' if given else "",
                    f'"{now}"',
                    _older(field, was, now) if given else "",
                )
        yield from self._package_changes(candidate)
        for name, target in self.spec.targets.items():
            if target.cuda != spec.targets[name].cuda:
                yield SpecChange(
                    ("targets", name, "cuda"), f'"{target.cuda}"', f'"{spec.targets[name].cuda}"'
                )
        if candidate.precision is not self.spec.training.precision:
            was = self.spec.training.precision.value
            yield SpecChange(
                ("training", "precision"), was, candidate.precision.value, f"training in {was}"
            )

    def _package_changes(self, candidate: Candidate) -> Iterator[SpecChange]:
        old = {package.key: (number, package) for number, package in enumerate(self.spec.packages)}
        new = {package.key: package for package in self._lines(candidate)}
        for key, (number, package) in old.items():
            now = new.get(key)
            if now is None or not _within(package, now):
                missed = ""
                if now is None:
                    missed = f"the package {key}"
                elif package.version and now.version != without_local(package.version):
                    missed = f"{key}{package.version}"
                yield SpecChange(
                    ("packages", number),
                    package.requirement,
                    now.requirement if now else "",
                    missed,
                )
        for key in new.keys() - old.keys():
            yield SpecChange(("packages",), "", new[key].requirement)

    def _lines(self, candidate: Candidate) -> Iterator[Package]:
        """Yield the packages of a candidate: pinned, moved, dropped or as written."""
        release = self.facts.torch_release(candidate.torch)
        for package in self.spec.packages:
            if package.key in candidate.dropped:
                continue
            yield self._line(package, candidate, release)
        floor = self.facts.accelerate_floor(candidate.transformers)
        if (
            floor is not None
            and self.spec.framework() == "hf-trainer"
            and not self._has_accelerate()
        ):
            yield Package(name="accelerate", version=self._from(floor.version, "accelerate"))

    def _has_accelerate(self) -> bool:
        names = {package.key for package in self.spec.packages}
        extras = {
            extra.lower()
            for package in self.spec.packages
            if package.key == "transformers"
            for extra in package.extras
        }
        return (
            "accelerate" in names
            or not extras.isdisjoint(self.facts.accelerate_extras)
            or not names.isdisjoint(self.facts.accelerate_packages)
        )

    def _line(
        self, package: Package, candidate: Candidate, release: TorchRelease | None
    ) -> Package:
        made: dict[str, tuple[str, ...]] = {
            "torch": (candidate.torch,),
            "transformers": (candidate.transformers,),
        }
        if release is not None:
            made |= {"torchvision": release.torchvision, "torchaudio": release.torchaudio}
        if any(made.get(package.key, ())):
            return package.model_copy(update={"version": f"=={made[package.key][-1]}"})
        floor = None
        if package.key == "accelerate" and candidate.transformers:
            floor = self.facts.accelerate_floor(candidate.transformers)
        if floor is not None and not has_version_in_range(
            SpecifierSet(without_local(package.version)), floor.version
        ):
            return package.model_copy(update={"version": self._from(floor.version, package.key)})
        moved = dict(candidate.moved)
        if package.key in moved:
            return package.model_copy(update={"version": moved[package.key]})
        return package

    def _from(self, floor: str, name: str) -> str:
        """Return specifiers from a floor to the end of the newest known major version."""
        runs = self.facts.runs.get(name, ())
        newest = require_version(runs[-1].last if runs else floor)
        return f">={floor},<{newest.major + 1}"

    def _own_cuda(self, own: str | None, candidate: Candidate) -> str | None:
        """Return the `cuda` of a target; one without a version keeps its own."""
        return candidate.cuda if own not in (None, "none", "auto") else own


def _pinned_version(package: Package) -> str:
    """Return the version that a line pins, or ""."""
    pin = without_local(package.version).removeprefix("==")
    is_exact = package.version.startswith("==") and parse_version(pin) is not None
    return pin if is_exact else ""


def _older(field: str, was: str, now: str) -> str:
    """Return what a changed field gives up: the newer version, or the CPU build."""
    if was == "none":
        return "the CPU build of torch"
    if was != "auto" and require_version(now) < require_version(was):
        return f"{field} {was}"
    return ""


def _after(value: str, options: list[VersionOption]) -> list[VersionOption]:
    """Return the option after a value, with the additional cost, or []."""
    return [
        VersionOption(max(0.0, following.cost - option.cost), following.value)
        for option, following in pairwise(options)
        if option.value == value
    ]


def _within(was: Package, now: Package) -> bool:
    """Return whether a line is unchanged, or pins a version that it admitted before."""
    pinned = now.version.removeprefix("==")
    return now.requirement == was.requirement or (
        "+" not in was.version
        and now.version.startswith("==")
        and was.specifiers.contains(pinned, prereleases=True)
    )
