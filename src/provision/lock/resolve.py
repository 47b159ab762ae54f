"""Resolves a spec into a lock: uv resolves once over all platforms and torch flavours."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from packaging.version import Version

from provision.effects.packages import VersionPreference
from provision.effects.system import Notice, ProgressCallback, System
from provision.errors import LockError, Unsatisfiable
from provision.facts import Facts
from provision.facts.versions import parse_version
from provision.lock import conda, conda_request
from provision.lock.assembly import ExtraConstraints, build_lock, limit_to_glibc, unify_versions
from provision.lock.flavours import admitted_torch_releases, propose_flavours
from provision.lock.inputs import collect_lock_inputs
from provision.lock.model import Lock, with_digest
from provision.lock.source_builds import (
    SourceBuild,
    find_source_builds,
    refuse_unused_builds,
    with_source_hints,
)
from provision.lock.uv_project import (
    ResolvedPackages,
    ResolveRequest,
    parse_resolution,
    to_uv_project,
)
from provision.lock.wheels import marker_of
from provision.lock.window_bounds import WindowBound, propose_bounds
from provision.spec import Spec
from provision.target_facts import collect_target_facts

_MAX_ROUNDS = 4
"""Attempts to bring the versions of all targets together; ours."""
_MAX_BOUNDS = 20
"""Resolutions that try to close windows between packages; ours."""


def resolve_spec(
    spec: Spec,
    facts: Facts,
    system: System,
    progress: ProgressCallback,
    *,
    keep: Lock | None = None,
    origins: Mapping[str, SourceBuild] = MappingProxyType({}),
) -> Lock:
    """Return the lock of a spec: one version of each package, torch in the build of each target.

    Versions of `keep` stay if they still fit, and those of a Colab runtime that packages go on
    top of. Torch and its family come from the index of their flavour, also if only another package
    needs them. `origins` are the packages from paths and repositories.

    Raises:
        LockError: no set of versions serves every target, or a CPU target would get CUDA packages.
        NetworkError: an index cannot be reached.
    """
    declared = spec
    kind_of = spec.registry.kind_of
    uses_conda = any(kind_of(target).uses_conda(target) for target in spec.targets.values())
    if uses_conda:
        spec = conda_request.with_index_names(spec)
    kept: tuple[VersionPreference, ...] = ()
    if keep is not None:
        kept = _locked_preferences(keep)
        if keep.conda:
            kept += conda_request.conda_preferences(keep)
    versions = {preference.name: preference.version for preference in reversed(kept)}
    torch = Version(versions["torch"]).public if "torch" in versions else None
    preferences = (*kept, *_runtime_preferences(spec, facts, versions.keys()))
    proposals = list(propose_flavours(spec, facts, torch))
    direct = frozenset(package.key for package in spec.packages)
    sources: Mapping[str, SourceBuild] = origins
    if any(package.build for package in spec.packages):
        sources = {**find_source_builds(spec, facts, preferences, system, progress), **origins}
        direct |= sources.keys()  # uv binds only direct requirements to an index
    requests = [
        ResolveRequest(
            spec,
            facts,
            proposal,
            preferences,
            _torch_constraints(proposal.release, facts),
            direct,
            sources,
        )
        for proposal in proposals
    ]
    lock = _resolve_best(requests, system, progress)
    refuse_unused_builds(lock, spec)
    if not uses_conda:
        return lock
    lock = conda.with_conda_packages(lock, spec, facts, system, progress, keep)
    return with_digest(replace(lock, inputs=collect_lock_inputs(declared)))


def _resolve_best(
    requests: list[ResolveRequest], system: System, progress: ProgressCallback
) -> Lock:
    best = requests[0]
    if best.proposal.release is not None:
        try:
            return _resolve_within_windows(best, system, progress)
        except LockError as error:
            return _resolve_with_older_torch(requests, error, system, progress)
    if best.spec.exclude_newer is not None:
        # PyTorch's indexes name no day of upload; the facts do.
        releases = admitted_torch_releases(best.spec, best.facts)
        if releases:
            best = best._replace(constraints={"torch": f"<={releases[0].release}"})
    return _resolve_within_windows(best, system, progress)


def _torch_constraints(release: str | None, facts: Facts) -> dict[str, str]:
    """Return the constraints to a release of torch and to the companions made for it.

    The metadata of a companion may not name its torch.
    """
    row = facts.torch_release(release) if release is not None else None
    if row is None:
        return {}
    constraints = {"torch": f"=={release}"}
    for name, versions in (("torchvision", row.torchvision), ("torchaudio", row.torchaudio)):
        if versions:
            oldest, newest = min(versions, key=Version), max(versions, key=Version)
            constraints[name] = f">={oldest},<={newest}"
    return constraints


def _resolve_with_older_torch(
    requests: list[ResolveRequest],
    error: LockError,
    system: System,
    progress: ProgressCallback,
) -> Lock:
    """Resolve with the newest proposed torch that uv itself would choose, for each set of builds.

    Raises:
        LockError: no proposal resolves.
    """
    by_builds: dict[tuple[str, ...], ResolveRequest] = {}
    for request in requests:
        flavours = tuple(choice.flavour for choice in request.proposal.choices.values())
        by_builds.setdefault(flavours, request)
    own_error: LockError | None = None
    for first in list(by_builds.values())[:_MAX_ROUNDS]:
        try:
            resolved = _resolve_with_uv(first._replace(constraints={}), system, progress)
        except LockError as unconstrained:  # does not resolve with any torch
            own_error = own_error or unconstrained
            continue
        torches = [Version(row.version) for row in resolved.packages if row.name == "torch"]
        if not torches:
            continue
        oldest = Version(min(torches).public)
        for request in requests[1:]:
            if Version(request.proposal.release or "0") <= oldest:
                return _resolve_within_windows(request, system, progress)
    raise own_error or error


def _resolve_within_windows(
    request: ResolveRequest, system: System, progress: ProgressCallback
) -> Lock:
    """Resolve, add a bound for each known incompatibility in the result, and resolve again.

    A bound with which nothing resolves is left out; the rules report the incompatibility.
    """
    request, resolved = _resolve_until_shared(request, system, progress)
    bounds: list[WindowBound] = []
    tried: set[WindowBound] = set()
    while len(tried) < _MAX_BOUNDS:
        versions = {row.name: Version(row.version).public for row in resolved.packages}
        proposed = propose_bounds(request.spec, request.facts, versions)
        bound = next((bound for bound in proposed if bound not in tried), None)
        if bound is None:
            break
        tried.add(bound)
        try:
            request, resolved = _resolve_until_shared(
                request._replace(bounds=(*request.bounds, bound.requirement)), system, progress
            )
        except Unsatisfiable:
            continue
        bounds.append(bound)
        progress(
            Notice(
                f"added the bound {bound.requirement}, because of the known incompatibility "
                f"{bound.window}"
            )
        )
    for extra in resolved.unused_extras:
        progress(
            Notice(
                f"warning: {extra} has no effect: the extra does not exist, or adds nothing on "
                "these platforms"
            )
        )
    return build_lock(request, resolved, sorted(bounds))


def _resolve_until_shared(
    request: ResolveRequest, system: System, progress: ProgressCallback
) -> tuple[ResolveRequest, ResolvedPackages]:
    """Resolve with more constraints until one version of each package runs at every target."""
    narrowing: ExtraConstraints | None = None
    for _ in range(_MAX_ROUNDS):
        try:
            resolved = _resolve_with_uv(request, system, progress)
        except LockError as error:
            if narrowing is not None:
                raise narrowing.to_error(error.why) from error
            raise
        narrowing = unify_versions(resolved) or limit_to_glibc(resolved, request)
        if narrowing is None:
            return request, resolved
        request = request._replace(constraints={**request.constraints, **narrowing.constraints})
    assert narrowing is not None  # noqa: S101
    raise narrowing.to_error("")


def _locked_preferences(lock: Lock) -> tuple[VersionPreference, ...]:
    markers = {
        environment.key: marker_of(environment.platform) for environment in lock.environments
    }
    preferences = []
    for package in lock.packages:
        if package.origin is not None:
            continue
        limits: tuple[str, ...] = ()
        if package.environments != tuple(markers):
            limits = tuple(dict.fromkeys(markers[key] for key in package.environments))
        preferences.append(VersionPreference(package.name, package.version, package.index, limits))
    return tuple(preferences)


def _runtime_preferences(
    spec: Spec, facts: Facts, known: Collection[str]
) -> tuple[VersionPreference, ...]:
    preferences: dict[str, VersionPreference] = {}
    for target in collect_target_facts(spec, facts):
        preinstalled = target.kind.preinstalled(target) or {}
        for name, text in preinstalled.items():
            version = parse_version(text)
            if name in known or name in preferences or version is None:
                continue
            flavour = version.local if name in facts.flavoured else None
            index = f"pytorch-{flavour}" if flavour else "pypi"
            preferences[name] = VersionPreference(name, text, index)
    return tuple(preferences.values())


def _resolve_with_uv(
    request: ResolveRequest, system: System, progress: ProgressCallback
) -> ResolvedPackages:
    """Resolve with uv until every member of torch's family is a direct requirement.

    uv binds only direct requirements to an index.
    """
    while True:
        project = to_uv_project(request)
        try:
            resolution = system.resolve(project, progress)
        except Unsatisfiable as error:
            raise with_source_hints(error, request.source_builds) from error
        packages = {
            variant: tomllib.loads(text)["packages"] for variant, text in resolution.pylocks.items()
        }
        names = {row["name"] for rows in packages.values() for row in rows}
        indirect = (names & request.facts.flavoured) - request.direct
        if not indirect:
            return parse_resolution(request, project, resolution, packages)
        request = request._replace(direct=request.direct | indirect)
