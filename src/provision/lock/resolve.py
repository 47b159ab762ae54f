"""From a spec to a lock: uv resolves once over all platforms, and every file is named by index and
hash.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from packaging.version import Version

from provision.effects import ProgressCallback, System, VersionPreference
from provision.errors import LockError, Unsatisfiable
from provision.facts import Facts, cuda_of
from provision.facts.versions import parse_version
from provision.kinds import kind_of
from provision.lock.conda import conda_preferences as preferences_of_conda
from provision.lock.conda import with_conda_packages, with_index_names
from provision.lock.flavours import admitted_torch_releases, flavour_on, propose_flavours
from provision.lock.inputs import collect_lock_inputs
from provision.lock.model import (
    Lock,
    LockedEnvironment,
    LockedPackage,
    TargetChoice,
    environment_digest,
    with_digest,
)
from provision.lock.source_builds import find_source_builds, with_source_hints
from provision.lock.uv_request import ResolveRequest, lock_platforms, to_uv_project
from provision.lock.uv_result import ResolvedPackages, parse_resolution
from provision.lock.wheels import LINUX_PLATFORMS, marker_of, oldest_glibc, with_platform_files
from provision.spec import Spec
from provision.target_facts import collect_target_facts

_CUDA_ONLY = re.compile(
    r"^(nvidia-.+-cu\d+|nvidia-(cublas|cudnn|nccl|cuda|cufft|curand|cusolver|cusparse|nvjitlink|nvtx|cufile|cusparselt|nvshmem).*|cuda-(bindings|toolkit|pathfinder)|(pytorch-)?triton)$"
)
_MAX_ROUNDS = 4
"""Times that uv is asked to bring targets together before we give up. Our choice."""


def resolve_spec(
    spec: Spec, facts: Facts, world: System, tell: ProgressCallback, *, keep: Lock | None = None
) -> Lock:
    """Return the lock of a spec: one version of each package for all targets, torch in the build
    that each target can run.

    Versions of `keep` stay where they still fit, and those of a Colab runtime that packages go
    on top of. Torch and its family are bound to the index of
    their flavour, also where only another package brings them in. Raises LockError when no set
    of versions serves every target, or when a CPU target would
    get CUDA packages; NetworkError when an index is out of reach.
    """
    spec, written = with_index_names(spec), spec
    kept = (*_preferences(keep), *preferences_of_conda(keep)) if keep is not None else ()
    torch = next(
        (Version(preference.version).public for preference in kept if preference.name == "torch"),
        None,
    )
    preferences = (
        *kept,
        *_runtime_preferences(spec, facts, {preference.name for preference in kept}),
    )
    proposed = list(propose_flavours(spec, facts, torch))
    direct = frozenset(package.key for package in spec.packages)
    sources = find_source_builds(spec, facts, preferences, world, tell)
    questions = [
        ResolveRequest(
            spec,
            facts,
            proposal,
            preferences,
            _torch_constraints(proposal.release, facts),
            direct,
            sources,
        )
        for proposal in proposed
    ]
    lock = with_conda_packages(_resolved(questions, world, tell), spec, facts, world, tell, keep)
    return (
        lock if spec is written else with_digest(replace(lock, inputs=collect_lock_inputs(written)))
    )


def _resolved(questions: list[ResolveRequest], world: System, tell: ProgressCallback) -> Lock:
    if questions[0].proposal.release is None:
        return _resolve_until_shared(_limit_torch_to_date(questions[0]), world, tell)
    try:
        return _resolve_until_shared(questions[0], world, tell)
    except LockError as error:
        return _resolve_with_older_torch(questions, error, world, tell)


def _torch_constraints(release: str | None, facts: Facts) -> dict[str, str]:
    """Return what holds torch to a release, and those of its companions to it whose own metadata
    may not name it.
    """
    row = facts.torch_release(release) if release is not None else None
    if release is None or row is None:
        return {}
    companions = {
        name: of
        for name, of in (("torchvision", row.torchvision), ("torchaudio", row.torchaudio))
        if of
    }
    return {
        "torch": f"=={release}",
        **{
            name: f">={min(of, key=Version)},<={max(of, key=Version)}"
            for name, of in companions.items()
        },
    }


def _limit_torch_to_date(question: ResolveRequest) -> ResolveRequest:
    """Return the question with torch held to releases of `exclude_newer`: PyTorch's indexes tell no
    day of upload, the facts do.
    """
    if question.spec.exclude_newer is None or not (
        releases := admitted_torch_releases(question.spec, question.facts)
    ):
        return question
    return question._replace(constraints={"torch": f"<={releases[0].release}"})


def _resolve_with_older_torch(
    questions: list[ResolveRequest], error: LockError, world: System, tell: ProgressCallback
) -> Lock:
    """Let uv say which torch goes with the rest in each set of builds, and try the newest release
    that is no newer; raises LockError when none will do.
    """
    by_builds: dict[tuple[str, ...], ResolveRequest] = {}
    for question in questions:
        by_builds.setdefault(
            tuple(choice.flavour for choice in question.proposal.choices.values()), question
        )
    said: LockError | None = None
    for first in list(by_builds.values())[:_MAX_ROUNDS]:
        try:
            found = _resolve_with_uv(first._replace(constraints={}), world, tell)
        except LockError as free:
            said = said or free  # what does not resolve with any torch, in uv's own words
            continue
        oldest = min(
            (Version(package.version) for package in found.packages if package.name == "torch"),
            default=None,
        )
        for question in questions[1:]:
            if oldest is not None and Version(question.proposal.release or "0") <= Version(
                oldest.public
            ):
                return _resolve_until_shared(question, world, tell)
    raise said or error


class _ExtraConstraints(NamedTuple):
    """What has to be asked for besides, and why, in words: what no set of versions did, and what
    each package by itself would be.
    """

    constraints: Mapping[str, str]
    what: str
    lines: tuple[str, ...]

    def failed(self, said: str) -> Unsatisfiable:
        """Return the error for a narrowing that uv cannot follow; `said` are its words."""
        hint = "loosen the bounds of these packages, or put the targets into specs of their own"
        return Unsatisfiable(
            self.what,
            why="\n".join(["each by itself gets:", *self.lines, *([said] if said else [])]),
            hint=hint,
        )


def _resolve_until_shared(question: ResolveRequest, world: System, tell: ProgressCallback) -> Lock:
    """Resolve until every package has one version that runs at every target: where some do not,
    older ones are asked for.
    """
    narrowing: _ExtraConstraints | None = None
    for _ in range(_MAX_ROUNDS):
        try:
            found = _resolve_with_uv(question, world, tell)
        except LockError as error:
            if narrowing is not None:
                raise narrowing.failed(error.why) from error
            raise
        narrowing = _unify_versions(found) or _limit_to_glibc(found, question)
        if narrowing is None:
            for extra in found.unused_extras:
                tell(
                    f"warning: {extra} brings nothing: there is no such extra, or it has "
                    "nothing for these platforms"
                )
            return _lock(question, found)
        question = question._replace(constraints={**question.constraints, **narrowing.constraints})
    raise narrowing.failed("") if narrowing is not None else AssertionError


def _unify_versions(found: ResolvedPackages) -> _ExtraConstraints | None:
    """Return what brings packages of several versions together: the oldest of each. What belongs to
    a CUDA build may differ.
    """
    versions: dict[str, dict[str, list[str]]] = {}
    for package in found.packages:
        if not _CUDA_ONLY.match(package.name):
            versions.setdefault(package.name, {}).setdefault(
                Version(package.version).public, []
            ).extend(package.environments)
    several = {name: held for name, held in sorted(versions.items()) if len(held) > 1}
    if not several:
        return None
    lines = [
        f"{name}: "
        + ", ".join(f"{version} in {' and '.join(keys)}" for version, keys in held.items())
        for name, held in several.items()
    ]
    oldest = {name: f"=={min(held, key=Version)}" for name, held in several.items()}
    return _ExtraConstraints(
        oldest,
        f"no one version of {', '.join(several)} serves every target and platform",
        tuple(lines),
    )


def _limit_to_glibc(found: ResolvedPackages, question: ResolveRequest) -> _ExtraConstraints | None:
    """Return what keeps packages to wheels that run on the C library of a Colab runtime or an
    image, as far as the facts know it.
    """
    older, lines = {}, []
    for site in collect_target_facts(question.spec, question.facts):
        choice = question.proposal.choices[site.name]
        for platform in lock_platforms(question.spec, site.name) if site.glibc is not None else ():
            key = found.environment_keys[flavour_on(choice.flavour, platform), platform]
            for package in (
                package
                for package in found.packages
                if key in package.environments and site.glibc is not None
            ):
                floor = oldest_glibc(package, question.spec.python, platform)
                if floor is not None and site.glibc is not None and floor > _pair(site.glibc.value):
                    older[package.name] = f"<{Version(package.version).public}"
                    needs = ".".join(str(part) for part in floor)
                    lines.append(
                        f"{package.name}: {package.version}, whose wheels need glibc "
                        f"{needs}; {site.glibc.provider} has {site.glibc.value}"
                    )
    return (
        _ExtraConstraints(
            older,
            f"no version of {', '.join(older)} has a wheel that runs at every target",
            tuple(dict.fromkeys(lines)),
        )
        if older
        else None
    )


def _pair(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor or 0)


def _preferences(lock: Lock) -> tuple[VersionPreference, ...]:
    markers = {
        environment.key: marker_of(environment.platform) for environment in lock.environments
    }
    everywhere = tuple(markers)
    return tuple(
        VersionPreference(
            p.name,
            p.version,
            p.index,
            ()
            if p.environments == everywhere
            else tuple(dict.fromkeys(markers[key] for key in p.environments)),
        )
        for p in lock.packages
    )


def _runtime_preferences(
    spec: Spec, facts: Facts, known: set[str]
) -> tuple[VersionPreference, ...]:
    found: dict[str, VersionPreference] = {}
    for site in collect_target_facts(spec, facts):
        for name, version in (kind_of(site.target).preinstalled(site) or {}).items():
            if name not in known and parse_version(version) is not None:
                local = Version(version).local if name in facts.flavoured else None
                found.setdefault(
                    name, VersionPreference(name, version, f"pytorch-{local}" if local else "pypi")
                )
    return tuple(found.values())


def _resolve_with_uv(
    question: ResolveRequest, world: System, tell: ProgressCallback
) -> ResolvedPackages:
    """Ask uv. It binds direct requirements only, so what of torch's family comes in unasked is
    asked for by name, and resolved again.
    """
    while True:
        project = to_uv_project(question)
        try:
            resolution = world.resolve(project, tell)
        except Unsatisfiable as error:
            raise with_source_hints(error, question.source_builds) from error
        found = {
            variant: tomllib.loads(text)["packages"] for variant, text in resolution.pylocks.items()
        }
        hidden = (
            {row["name"] for rows in found.values() for row in rows} & question.facts.flavoured
        ) - question.direct
        if not hidden:
            return parse_resolution(question, project, resolution, found)
        question = question._replace(direct=question.direct | hidden)


def _lock(question: ResolveRequest, found: ResolvedPackages) -> Lock:
    spec = question.spec
    pairs = {
        key: (flavour if found.has_torch else None, platform)
        for (flavour, platform), key in sorted(
            found.environment_keys.items(), key=lambda item: item[1]
        )
    }
    environments = tuple(
        _environment(key, platform, flavour, question, found.packages)
        for key, (flavour, platform) in pairs.items()
    )
    for environment in environments:
        if environment.flavour is not None:
            _refuse_other_builds(environment, found.packages, question)
    targets = {name: _target_choice(question, found, name) for name in sorted(spec.targets)}
    used = {package.index for package in found.packages}
    indexes = {index.name: index.url for index in found.project.indexes if index.name in used}
    return with_digest(
        Lock(collect_lock_inputs(spec), spec.python, environments, targets, indexes, found.packages)
    )


def _target_choice(question: ResolveRequest, found: ResolvedPackages, target: str) -> TargetChoice:
    choice = question.proposal.choices[target]
    keys = tuple(
        found.environment_keys[flavour_on(choice.flavour, platform), platform]
        for platform in lock_platforms(question.spec, target)
    )
    because = choice.reason if found.has_torch else "no torch among the packages"
    site = next(
        site for site in collect_target_facts(question.spec, question.facts) if site.name == target
    )
    held = kind_of(site.target).preinstalled(site)
    if held is None or site.runtime is None:
        return TargetChoice(keys, because)
    here = {
        package.name: package.version
        for package in found.packages
        if keys[0] in package.environments
    }
    changed = {
        name: held[name]
        for name, version in here.items()
        if name in held and not _same(version, held[name])
    }
    return TargetChoice(
        keys,
        because,
        site.runtime.runtime,
        kept=tuple(name for name in here if name in held and name not in changed),
        changed=changed,
        added=tuple(name for name in here if name not in held),
        restart=tuple(
            name
            for name in changed
            if name in question.facts.protected and question.facts.protected[name].restart
        ),
    )


def _same(version: str, held: str) -> bool:
    return parse_version(held) == Version(version)


def _environment(
    key: str,
    platform: str,
    flavour: str | None,
    question: ResolveRequest,
    packages: tuple[LockedPackage, ...],
) -> LockedEnvironment:
    python = question.spec.python
    held = tuple(package for package in packages if key in package.environments)
    floors = [floor for package in held if (floor := oldest_glibc(package, python, platform))]
    glibc = ".".join(str(part) for part in max(floors)) if floors else None
    driver = (
        question.facts.driver_floor(cuda_of(flavour), windows=platform.startswith("windows"))
        if flavour not in (None, "cpu")
        else None
    )
    digest = environment_digest(
        python,
        platform,
        flavour,
        tuple(with_platform_files(package, python, platform) for package in held),
    )
    return LockedEnvironment(key, platform, flavour, glibc, driver, digest)


def _refuse_other_builds(
    environment: LockedEnvironment, packages: tuple[LockedPackage, ...], question: ResolveRequest
) -> None:
    """Raise LockError when an environment on Linux holds a torch of another flavour than its own,
    or CUDA packages in a CPU one.
    """
    if environment.platform not in LINUX_PLATFORMS:
        return
    direct = {p.key for p in question.spec.packages}
    for package in (package for package in packages if environment.key in package.environments):
        path = (
            tuple(_requirement_chain(package.name, packages, direct))
            if _CUDA_ONLY.match(package.name)
            else (package.name,)
        )
        for_cuda = _CUDA_ONLY.match(package.name) and not (
            package.name.startswith("nvidia-nccl") and "torch" not in path
        )  # xgboost brings it on a CPU too
        if environment.flavour == "cpu" and (
            for_cuda or (package.name == "torch" and not package.version.endswith("+cpu"))
        ):
            raise LockError(
                f"a CPU spec would install {package.name} {package.version}, which is for CUDA",
                why=f"brought in by {' <- '.join(path)}",
                hint="drop the package that needs it, or set `gpu:` and `cuda:` to what the "
                "work needs",
            )
        labelled = (
            package.name in question.facts.flavoured and Version(package.version).local is not None
        )
        if (package.name == "torch" or labelled) and environment.flavour not in _flavours_of(
            package, environment.platform, question.facts
        ):
            raise LockError(
                f"index {package.index} gave {package.name} {package.version}, and "
                f"{environment.flavour} was asked for",
                why="the local label of a version (+cu128) names the CUDA that it was built for",
                hint=f"let the index {package.index} serve builds of {environment.flavour}",
            )


def _flavours_of(package: LockedPackage, platform: str, facts: Facts) -> tuple[str, ...]:
    """Return the flavours that a torch may be: that of its label, or without one that which the
    public index serves.
    """
    if local := Version(package.version).local:
        return (local,)
    release = facts.torch_release(package.version)
    return (release.default_on(platform),) if release is not None else ()


def _requirement_chain(
    name: str, packages: tuple[LockedPackage, ...], direct: set[str]
) -> Iterator[str]:
    seen = set()
    while name not in seen:
        yield name
        seen.add(name)
        if name in direct:
            return
        name = next(
            (
                package.name
                for package in packages
                if name in package.requires and package.name not in seen
            ),
            name,
        )
