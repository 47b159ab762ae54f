"""Builds a lock from resolved packages that have one version for all targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from packaging.version import Version

from provision.errors import LockError, Unsatisfiable
from provision.facts import cuda_of
from provision.facts.compatibility import CUDA_PACKAGES
from provision.facts.versions import parse_version
from provision.kinds.base import TargetFacts
from provision.lock.flavours import flavour_on
from provision.lock.inputs import collect_lock_inputs
from provision.lock.model import (
    Lock,
    LockedEnvironment,
    LockedPackage,
    TargetChoice,
    environment_digest,
    with_digest,
)
from provision.lock.uv_project import ResolvedPackages, ResolveRequest, lock_platforms
from provision.lock.wheels import LINUX_PLATFORMS, oldest_glibc, with_platform_files
from provision.lock.window_bounds import WindowBound
from provision.target_facts import collect_target_facts


class ExtraConstraints(NamedTuple):
    """Constraints to resolve again with, and the conflict that needs them, in words.

    `lines` say what each package gets without them.
    """

    constraints: Mapping[str, str]
    problem: str
    lines: tuple[str, ...]

    def to_error(self, why: str) -> Unsatisfiable:
        """Return the error for constraints that uv cannot satisfy; `why` is its message."""
        lines = ["without further constraints, uv chooses:", *self.lines]
        if why:
            lines.append(why)
        hint = "relax the version bounds of these packages, or move the targets to separate specs"
        return Unsatisfiable(self.problem, why="\n".join(lines), hint=hint)


def unify_versions(resolved: ResolvedPackages) -> ExtraConstraints | None:
    """Return the constraints that bring packages of several versions to the oldest of each.

    Packages that belong to a CUDA build may differ.
    """
    versions: dict[str, dict[str, list[str]]] = {}
    for package in resolved.packages:
        if not CUDA_PACKAGES.match(package.name):
            keys = versions.setdefault(package.name, {})
            keys.setdefault(Version(package.version).public, []).extend(package.environments)
    constraints, lines = {}, []
    for name, by_version in sorted(versions.items()):
        if len(by_version) > 1:
            constraints[name] = f"=={min(by_version, key=Version)}"
            uses = (f"{version} for {' and '.join(keys)}" for version, keys in by_version.items())
            lines.append(f"{name}: {', '.join(uses)}")
    if not constraints:
        return None
    problem = f"no single version of {', '.join(constraints)} fits every target and platform"
    return ExtraConstraints(constraints, problem, tuple(lines))


def limit_to_glibc(resolved: ResolvedPackages, request: ResolveRequest) -> ExtraConstraints | None:
    """Return the constraints to wheels that run on the known C libraries of the targets."""
    constraints, lines = {}, []
    for target in collect_target_facts(request.spec, request.facts):
        glibc = target.glibc
        if glibc is None:
            continue
        major, _, minor = glibc.value.partition(".")
        choice = request.proposal.choices[target.name]
        for platform in lock_platforms(request.spec, target.name):
            key = resolved.environment_keys[flavour_on(choice.flavour, platform), platform]
            for package in resolved.packages:
                if key not in package.environments:
                    continue
                floor = oldest_glibc(package, request.spec.python, platform)
                if floor is not None and floor > (int(major), int(minor or 0)):
                    constraints[package.name] = f"<{Version(package.version).public}"
                    needs = ".".join(map(str, floor))
                    lines.append(
                        f"{package.name}: {package.version}, whose wheels need glibc "
                        f"{needs}; {glibc.provider} has {glibc.value}"
                    )
    if not constraints:
        return None
    problem = f"no version of {', '.join(constraints)} has a wheel that runs on every target"
    return ExtraConstraints(constraints, problem, tuple(dict.fromkeys(lines)))


def build_lock(
    request: ResolveRequest, resolved: ResolvedPackages, bounds: Iterable[WindowBound] = ()
) -> Lock:
    """Return the lock of resolved packages, with the bounds that were added for windows.

    Raises:
        LockError: an environment on Linux would get another torch than its flavour's.
    """
    environments = []
    for (flavour, platform), key in sorted(
        resolved.environment_keys.items(), key=lambda item: item[1]
    ):
        packages = [package for package in resolved.packages if key in package.environments]
        own_flavour = flavour if resolved.has_torch else None
        environments.append(_build_environment(key, platform, own_flavour, request, packages))
        if own_flavour is not None and platform in LINUX_PLATFORMS:
            _refuse_other_builds(environments[-1], packages, request)
    targets = {
        target.name: _target_choice(request, resolved, target)
        for target in collect_target_facts(request.spec, request.facts)
    }
    used = {package.index for package in resolved.packages}
    indexes = {index.name: index.url for index in resolved.project.indexes if index.name in used}
    return with_digest(
        Lock(
            collect_lock_inputs(request.spec),
            request.spec.python,
            tuple(environments),
            dict(sorted(targets.items())),
            indexes,
            resolved.packages,
            bounds=tuple(bounds),
        )
    )


def _target_choice(
    request: ResolveRequest, resolved: ResolvedPackages, target: TargetFacts
) -> TargetChoice:
    choice = request.proposal.choices[target.name]
    keys = tuple(
        resolved.environment_keys[flavour_on(choice.flavour, platform), platform]
        for platform in lock_platforms(request.spec, target.name)
    )
    reason = choice.reason if resolved.has_torch else "torch is not among the packages"
    preinstalled = target.kind.preinstalled(target)
    if preinstalled is None or target.runtime is None:
        return TargetChoice(keys, reason)
    kept, changed, added, restart = [], {}, [], []
    for package in resolved.packages:
        name = package.name
        if keys[0] not in package.environments:
            continue
        if name not in preinstalled:
            added.append(name)
        elif parse_version(preinstalled[name]) == Version(package.version):
            kept.append(name)
        else:
            changed[name] = preinstalled[name]
            protected = request.facts.protected.get(name)
            if protected is not None and protected.restart:
                restart.append(name)
    runtime = target.runtime.runtime
    return TargetChoice(keys, reason, runtime, tuple(kept), changed, tuple(added), tuple(restart))


def _build_environment(
    key: str,
    platform: str,
    flavour: str | None,
    request: ResolveRequest,
    packages: Iterable[LockedPackage],
) -> LockedEnvironment:
    python, floors, content = request.spec.python, [], []
    for package in packages:
        content.append(with_platform_files(package, python, platform))
        floor = oldest_glibc(package, python, platform)
        if floor is not None:
            floors.append(floor)
    glibc = ".".join(map(str, max(floors))) if floors else None
    driver = None
    if flavour not in (None, "cpu"):
        windows = platform.startswith("windows")
        driver = request.facts.driver_floor(cuda_of(flavour), windows=windows)
    digest = environment_digest(python, platform, flavour, tuple(content))
    return LockedEnvironment(key, platform, flavour, glibc, driver, digest)


def _refuse_other_builds(
    environment: LockedEnvironment, packages: list[LockedPackage], request: ResolveRequest
) -> None:
    """Refuse a torch of another flavour, and CUDA packages in a CPU environment."""
    direct = {package.key for package in request.spec.packages}
    for package in packages:
        name, local = package.name, Version(package.version).local
        is_torch, chain = name == "torch", [name]
        if environment.flavour == "cpu":
            is_for_cuda = is_torch and not package.version.endswith("+cpu")
            if CUDA_PACKAGES.match(name):
                chain = _requirement_chain(name, packages, direct)
                # xgboost brings NCCL on a CPU too.
                is_for_cuda = not name.startswith("nvidia-nccl") or "torch" in chain
            if is_for_cuda:
                raise LockError(
                    f"the spec is for CPU only, but {name} {package.version} is built for CUDA",
                    why=f"required by {' <- '.join(chain)}",
                    hint="remove the package that requires it, or set `gpu` and `cuda` to use "
                    "a GPU",
                )
        flavour = local
        if is_torch and local is None:  # a build of the public index has no label
            release = request.facts.torch_release(package.version)
            flavour = release.default_on(environment.platform) if release is not None else None
        is_labelled = name in request.facts.flavoured and local is not None
        if (is_torch or is_labelled) and environment.flavour != flavour:
            raise LockError(
                f"index {package.index} returned {name} {package.version} instead of a build for "
                f"{environment.flavour}",
                why="the local version label (such as +cu128) shows the CUDA version that a "
                "package was built for",
                hint=f"set the index {package.index} to a URL that provides builds for "
                f"{environment.flavour}",
            )


def _requirement_chain(name: str, packages: list[LockedPackage], direct: set[str]) -> list[str]:
    """Return the names from a package to the direct requirement that brings it in."""
    chain = [name]
    while chain[-1] not in direct:
        for package in packages:
            if chain[-1] in package.requires and package.name not in chain:
                chain.append(package.name)
                break
        else:
            break
    return chain
