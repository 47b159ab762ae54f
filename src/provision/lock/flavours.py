"""The torch build of every target: declared by the spec, or chosen from card and driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from provision.errors import LockError
from provision.facts import Facts, TorchBuild, TorchRelease, cuda_of
from provision.facts.compatibility import CodeForm
from provision.facts.schema_platforms import ColabRuntime
from provision.facts.versions import require_version
from provision.kinds.base import TargetFacts
from provision.lock.cuda_ties import cuda_ties
from provision.lock.wheels import LINUX_PLATFORMS
from provision.spec import Spec
from provision.target_facts import collect_target_facts


class FlavourChoice(NamedTuple):
    """The torch build family of a target ("cpu", "cu128") and the reason in words."""

    flavour: str
    reason: str


class FlavourProposal(NamedTuple):
    """A choice for every target with one release of torch; `release` is None if any will do."""

    release: str | None
    choices: Mapping[str, FlavourChoice]

    @property
    def flavours(self) -> frozenset[str]:
        """The flavours of all targets."""
        return frozenset(choice.flavour for choice in self.choices.values())


def propose_flavours(
    spec: Spec, facts: Facts, kept: str | None = None
) -> Iterator[FlavourProposal]:
    """Yield the proposals to resolve, the best first.

    The order of releases: the kept one, that of a Colab runtime, then the newest. A spec that
    declares one flavour leaves the release to uv.

    Raises:
        LockError: no release has a build for every target.
    """
    targets = collect_target_facts(spec, facts)
    declared = {}
    for target in targets:
        choice = _declared_choice(target)
        if choice is not None:
            declared[target.name] = choice
    all_declared = len(declared) == len(targets)
    one_flavour = len({choice.flavour for choice in declared.values()}) == 1
    # The last torchaudio names no torch: uv cannot find the release that it was made for.
    if all_declared and one_flavour and spec.package("torchaudio") is None:
        yield FlavourProposal(None, declared)
        return
    releases = admitted_torch_releases(spec, facts)
    proposed = False
    for release in _sort_releases(releases, targets, kept):
        choices = _FlavourSelection(spec, facts, release, targets).choose(declared)
        if choices is not None:
            proposed = True
            yield FlavourProposal(release.release, choices)
    if proposed:
        return
    if not all_declared:
        raise _no_release_error(spec, facts, targets, declared, releases)
    yield FlavourProposal(None, declared)  # the indexes may have what the facts do not know


def admitted_torch_releases(spec: Spec, facts: Facts) -> tuple[TorchRelease, ...]:
    """Return the releases of torch, newest first, that the spec admits.

    Its own line for torch, its Python, its platforms and its `exclude_newer` decide.
    """
    line = spec.package("torch")
    specifiers = line.specifiers if line is not None else SpecifierSet()
    platforms: set[str] = set()
    for target in collect_target_facts(spec, facts):
        platforms.update(target.platforms)
    releases = []
    for row in reversed(facts.torch):
        day = row.released if len(row.released) == 10 else f"{row.released}-31"
        if (
            specifiers.contains(row.release, prereleases=True)
            and all(spec.python in row.pythons_on(platform) for platform in platforms)
            and (spec.exclude_newer is None or day <= spec.exclude_newer[:10])
        ):
            releases.append(row)
    return tuple(releases)


def flavour_on(flavour: str, platform: str) -> str:
    """Return a target's flavour on one of its platforms: on macOS, torch has one build."""
    return "cpu" if platform.startswith("macos") else flavour


def has_torch_index(platform: str, flavour: str) -> bool:
    """Return whether PyTorch's own index serves a platform: Linux, and Windows with a card."""
    return platform in LINUX_PLATFORMS or (platform.startswith("windows") and flavour != "cpu")


def _declared_choice(target: TargetFacts) -> FlavourChoice | None:
    settings = target.gpu_settings

    def author(route: tuple[str | int, ...]) -> str:
        return f"target {target.name} sets" if route[0] == "targets" else "the spec sets"

    if not settings.is_nvidia:
        return FlavourChoice("cpu", f"cpu: {author(settings.gpu_route)} gpu: {settings.gpu.type}")
    flavour = settings.flavour
    if flavour is None:
        return None
    return FlavourChoice(flavour, f"{flavour}: {author(settings.cuda_route)} cuda: {settings.cuda}")


def _base_runtime(target: TargetFacts) -> ColabRuntime | None:
    return target.kind.base_runtime(target)


def _sort_releases(
    releases: Sequence[TorchRelease], targets: Sequence[TargetFacts], kept: str | None
) -> list[TorchRelease]:
    preferred = [kept]
    for target in targets:
        runtime = _base_runtime(target)
        if runtime is not None:
            preferred.append(runtime.torch)

    def rank(row: TorchRelease) -> int:
        return preferred.index(row.release) if row.release in preferred else len(preferred)

    return sorted(releases, key=rank)


class _FlavourSelection:
    """The choice of a build for every target with one release of torch."""

    def __init__(
        self, spec: Spec, facts: Facts, release: TorchRelease, targets: Sequence[TargetFacts]
    ) -> None:
        self.spec, self.facts, self.release, self.targets = spec, facts, release, targets
        self.ties = cuda_ties(spec, facts, release.release)

    def choose(self, declared: Mapping[str, FlavourChoice]) -> dict[str, FlavourChoice] | None:
        """Return the choice of every target, None if a target has no build.

        Targets share a flavour that runs at all of them: the one of a Colab runtime, else the one
        of another target, else the newest that all can have, preferably one that the facts are
        sure of.
        """
        if any(choice.flavour not in self.release.flavours for choice in declared.values()):
            return None
        open_targets = [target for target in self.targets if target.name not in declared]
        candidates = {target.name: self.candidates(target) for target in open_targets}
        if not all(candidates.values()):
            return None
        choices = dict(declared)
        for target in sorted(
            open_targets, key=lambda target: self._matching_runtime(target) is None
        ):
            choices[target.name] = self._choose_for(target, candidates, choices)
        return {target.name: choices[target.name] for target in self.targets}

    def candidates(self, target: TargetFacts) -> list[TorchBuild]:
        """Return the builds that run at a target on all its platforms, oldest CUDA first.

        For an unknown driver, those that need the oldest one.
        """
        card = target.card
        if card is None:
            return []
        facts, release = self.facts, self.release.release
        by_platform = [
            {build.flavour: build for build in facts.builds_for_card(card, release, platform)}
            for platform in target.platforms
            if not platform.startswith("macos")
        ]
        if not by_platform:
            return []
        builds = [
            build
            for build in by_platform[0].values()
            if self.release.builds.get(build.flavour) != "low"
            and all(build.flavour in others for others in by_platform)
        ]
        driver = _known_driver(self.spec, target)
        if driver is not None:
            runnable = [build for build in builds if facts.can_run(driver, build, card)]
            return self._tied(runnable)
        builds = self._tied(builds)
        floors = {}
        for build in builds:
            floor = facts.driver_floor(cuda_of(build.flavour))
            if floor is not None:
                floors[build.flavour] = floor
        if not floors:
            return []
        lowest = min(floors.values(), key=require_version)
        return [build for build in builds if floors.get(build.flavour) == lowest]

    def _tied(self, builds: list[TorchBuild]) -> list[TorchBuild]:
        """Return the builds of the CUDA major that listed packages are compiled for, if any."""
        for tie in self.ties:
            tied = [build for build in builds if _major(build.flavour) == tie.cuda_major]
            builds = tied or builds
        return builds

    def _matching_runtime(self, target: TargetFacts) -> ColabRuntime | None:
        """Return the runtime that an environment extends if it brings this release."""
        runtime = _base_runtime(target)
        if runtime is None or runtime.torch != self.release.release:
            return None
        return runtime

    def _choose_for(
        self,
        target: TargetFacts,
        candidates: Mapping[str, Sequence[TorchBuild]],
        choices: Mapping[str, FlavourChoice],
    ) -> FlavourChoice:
        builds = {build.flavour: build for build in candidates[target.name]}
        runtime = self._matching_runtime(target)
        release = f"torch {self.release.release}"
        if runtime is not None and runtime.flavour in builds:
            reason = f"the build of {release} in Colab runtime {runtime.runtime}; it supports"
            return self._explain_choice(target, builds[runtime.flavour], reason)
        for name, choice in choices.items():
            if choice.flavour in builds:
                reason = f"the same as target {name}; it supports"
                return self._explain_choice(target, builds[choice.flavour], reason)
        common = set.intersection(
            *({build.flavour for build in others} for others in candidates.values())
        )
        shared = [flavour for flavour in builds if flavour in common]
        build = builds[max(shared or builds, key=self._rank_flavour)]
        everywhere = " and runs on every target" if shared and len(candidates) > 1 else ""
        reason = f"the newest build of {release} that is known to exist{everywhere}; it supports"
        if _known_driver(self.spec, target) is None:
            reason = (
                f"the driver is unknown, and this build of {release} has the lowest "
                f"driver requirement{everywhere}; it supports"
            )
        return self._explain_choice(target, build, reason)

    def _rank_flavour(self, flavour: str) -> tuple[bool, object]:
        sure = self.release.builds.get(flavour) == "high"
        return sure, require_version(cuda_of(flavour))

    def _explain_choice(self, target: TargetFacts, build: TorchBuild, reason: str) -> FlavourChoice:
        card, code = target.card, ""
        form = self.facts.code_for(card, build) if card is not None else None
        if card is not None and form is not None:
            by_ptx = ", by PTX" if form.form is CodeForm.PTX else ""
            code = f" (sm_{card.cc.replace('.', '')}{by_ptx})"
        driver = f"driver {self.facts.driver_floor(cuda_of(build.flavour))} or newer"
        if target.driver is not None:
            driver = f"driver {target.driver.value} of {target.driver.provider}"
        gpu = target.gpu_settings.gpu.type
        reason = f"{build.flavour}: {reason} {gpu}{code} and runs with {driver}"
        for tie in self.ties:
            if tie.cuda_major == _major(build.flavour):
                reason += f"; {tie.package} {tie.version} is compiled for CUDA {tie.cuda_major}"
        return FlavourChoice(build.flavour, reason)


def _major(flavour: str) -> str:
    return cuda_of(flavour).partition(".")[0]


def _known_driver(spec: Spec, target: TargetFacts) -> str | None:
    """Return the driver of a target, else the oldest that the spec requires or newest it admits."""
    if target.driver is not None:
        return target.driver.value
    lower, upper = [], []
    for clause in SpecifierSet(spec.for_target(target.name).requires.driver or ""):
        if clause.operator in (">=", "==", "~=", ">"):
            lower.append(clause.version.removesuffix(".*"))
        elif clause.operator == "<=":
            upper.append(clause.version)
        elif clause.operator == "<":
            upper.append(f"{require_version(clause.version).major - 1}.999")
    if lower:
        return max(lower, key=require_version)
    return min(upper, key=require_version, default=None)


def _no_release_error(
    spec: Spec,
    facts: Facts,
    targets: Sequence[TargetFacts],
    declared: Mapping[str, FlavourChoice],
    releases: Sequence[TorchRelease],
) -> LockError:
    line = spec.package("torch")
    requirement = line.requirement if line is not None else "torch"
    hint = 'set `cuda`, as in `cuda: "12.8"`, or run `provision suggest`'
    if not releases:
        newest = facts.torch[-1].release
        why = (
            f"the facts list torch up to {newest}; no release in them matches {requirement} and "
            f"has a wheel for Python {spec.python}"
        )
        return LockError("no torch build can be chosen for `cuda: auto`", why=why, hint=hint)
    for target in targets:
        if target.card is None and target.name not in declared:
            what = (
                f"no torch build can be chosen for target {target.name}: the facts have no GPU "
                f"named {target.gpu_settings.gpu.type}"
            )
            hint = f"choose a GPU from `provision facts list gpus`, or {hint}"
            return LockError(what, hint=hint)
    selection = _FlavourSelection(spec, facts, releases[0], targets)
    lines = [
        f"builds of torch {releases[0].release}, the newest release that matches {requirement}:"
    ]
    for target in targets:
        if target.name in declared:
            builds = [declared[target.name].flavour]
        else:
            builds = [build.flavour for build in selection.candidates(target)]
        known = _known_driver(spec, target)
        driver = f", driver {known}" if known else ""
        listed = ", ".join(builds) or "no known build runs on it"
        lines.append(f"  target {target.name} ({target.gpu_settings.gpu}{driver}): {listed}")
    return LockError(
        "no single release of torch has a build for every target", why="\n".join(lines), hint=hint
    )
