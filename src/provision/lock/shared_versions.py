"""One version of each package for all targets: the constraints that bring versions together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from packaging.version import Version

from provision.errors import Unsatisfiable
from provision.lock.flavours import flavour_on
from provision.lock.uv_request import ResolveRequest, lock_platforms
from provision.lock.uv_result import ResolvedPackages
from provision.lock.wheels import oldest_glibc
from provision.target_facts import collect_target_facts

CUDA_PACKAGES = re.compile(
    r"^(nvidia-.+-cu\d+"
    r"|nvidia-(cublas|cudnn|nccl|cuda|cufft|curand|cusolver|cusparse|nvjitlink|nvtx|cufile"
    r"|cusparselt|nvshmem).*"
    r"|cuda-(bindings|toolkit|pathfinder)|(pytorch-)?triton)$"
)
"""Names of the packages that belong to a CUDA build of torch."""


class ExtraConstraints(NamedTuple):
    """Constraints to resolve again with, and the conflict that needs them, in words.

    `lines` say what each package gets without them.
    """

    constraints: Mapping[str, str]
    problem: str
    lines: tuple[str, ...]

    def to_error(self, why: str) -> Unsatisfiable:
        """Return the error for constraints that uv cannot satisfy; `why` is its message."""
        lines = ["each by itself gets:", *self.lines]
        if why:
            lines.append(why)
        hint = "loosen the bounds of these packages, or put the targets into specs of their own"
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
            uses = (f"{version} in {' and '.join(keys)}" for version, keys in by_version.items())
            lines.append(f"{name}: {', '.join(uses)}")
    if not constraints:
        return None
    problem = f"no one version of {', '.join(constraints)} serves every target and platform"
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
    problem = f"no version of {', '.join(constraints)} has a wheel that runs at every target"
    return ExtraConstraints(constraints, problem, tuple(dict.fromkeys(lines)))
