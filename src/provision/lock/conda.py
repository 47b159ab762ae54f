"""What conda brings at the targets that ask for it: solved for each one's own virtual packages, in
the versions that all targets share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from packaging.version import Version

from provision.effects import (
    CondaChannel,
    CondaMatchSpec,
    CondaRecord,
    CondaSolveRequest,
    ProgressCallback,
    System,
    VersionPreference,
)
from provision.errors import CondaUnsatisfiable, Unsatisfiable
from provision.facts import Facts, cuda_of
from provision.facts.versions import parse_version
from provision.kinds import kind_of
from provision.lock.model import (
    Lock,
    LockedCondaPackage,
    LockedEnvironment,
    LockedPackage,
    TargetChoice,
    environment_digest,
    with_digest,
)
from provision.lock.wheels import marker_applies, marker_of, with_platform_files
from provision.spec import Spec, canonical_name
from provision.target_facts import TargetFacts, collect_target_facts

DEFAULT_CHANNEL = "conda-forge"
"""The channel of Python, of packages with `source: conda`, and of all that names no other."""
_PYPI_TO_CONDA = {"torch": "pytorch"}
"""What conda-forge calls packages that have another name on the package index (the feedstock
pytorch-cpu-feedstock).
"""
_CONDA_TO_PYPI = {conda: name for name, conda in _PYPI_TO_CONDA.items()}
_GLIBC = "2.28"
"""The oldest C library that is planned for: PyTorch's own wheels for Linux ask for it
(manylinux_2_28).
"""
_MACOS = "11.0"
"""The oldest macOS that runs on Apple silicon."""
_MAX_ROUNDS = 4
_FLOOR = re.compile(r"^__glibc >=(\d+)\.(\d+)")


class _CondaEnvironment(NamedTuple):
    """An environment that conda makes: the one that it is made of, its own key, and the CUDA that
    its target is asked to run (None: no card).
    """

    base: LockedEnvironment
    key: str
    cuda: str | None


class _CondaSolution(NamedTuple):
    """What conda brings into a seat, and the names of the lock's packages that it brings in the
    place of the package index.
    """

    records: tuple[CondaRecord, ...]
    provided: frozenset[str]


def with_index_names(spec: Spec) -> Spec:
    """Return the spec with packages that conda calls otherwise under the name that the package
    index has for them: `pytorch` is `torch` there.
    """
    if not any(
        package.source == "conda" and package.key in _CONDA_TO_PYPI for package in spec.packages
    ):
        return spec
    packages = [
        p.model_copy(update={"name": _CONDA_TO_PYPI[p.key]})
        if p.source == "conda" and p.key in _CONDA_TO_PYPI
        else p
        for p in spec.packages
    ]
    return spec.model_copy(update={"packages": packages})


def to_index_name(conda: str) -> str:
    """Return what the package index calls a package of conda."""
    return _CONDA_TO_PYPI.get(conda, canonical_name(conda))


def conda_provided_versions(
    lock: Lock, environment: LockedEnvironment, spec: Spec
) -> dict[str, str]:
    """Return index name and version of the Python packages that conda brings and that can be asked
    for by that name: the spec's own, and torch.
    """
    brought = {
        to_index_name(package.name): package.version
        for package in lock.conda_records_in(environment)
        if package.name != "pip"
    }
    asked = {
        *(_CONDA_TO_PYPI.get(package.key, package.key) for package in spec.packages),
        *_PYPI_TO_CONDA,
    }
    return {
        name: version
        for name, version in brought.items()
        if name in asked and name not in lock.versions(environment)
    }


def requested_conda_names(spec: Spec) -> frozenset[str]:
    """Return the names, as conda has them, of what a spec asks of conda: Python and pip among them."""  # noqa: E501
    named = (
        _PYPI_TO_CONDA.get(package.key, package.key)
        for package in spec.packages
        if package.source == "conda"
    )
    return frozenset(("python", "pip", *named, *(package.name for package in spec.conda_packages)))


def conda_preferences(keep: Lock) -> tuple[VersionPreference, ...]:
    """Return the versions that only conda brings, so that they stay when the index is asked again."""  # noqa: E501
    known = {package.name for package in keep.packages}
    found = {}
    for environment in keep.environments:
        for package in keep.conda_records_in(environment):
            name = to_index_name(package.name)
            if name in _PYPI_TO_CONDA and name not in known and environment.flavour is not None:
                version = f"{package.version}+{environment.flavour}"
                found[name, environment.key] = VersionPreference(
                    name,
                    version,
                    f"pytorch-{environment.flavour}",
                    (marker_of(environment.platform),),
                )
    return tuple(found.values())


def with_conda_packages(
    lock: Lock,
    spec: Spec,
    facts: Facts,
    world: System,
    tell: ProgressCallback,
    keep: Lock | None = None,
) -> Lock:
    """Return a lock with what conda brings at the targets that say `manager: conda`; the same lock
    where there are none.

    Each such target gets environments of its own, with `-conda` in their keys. A package of the
    index that conda brings too, in the same version, is left
    out there, and so is what only such a package needs. Raises NoCondaSet when no set of conda
    packages goes with the locked versions, NetworkError when
    a channel cannot be reached, WorldError without the extra `conda`.
    """
    wanted = {
        site.name: _conda_environments(lock, site)
        for site in collect_target_facts(spec, facts)
        if kind_of(site.target).uses_conda(site.target)
    }
    if not wanted:
        return lock
    brought: dict[str, tuple[_CondaEnvironment, _CondaSolution]] = {}
    for seat in (seat for seats in wanted.values() for seat in seats):
        if seat.key not in brought:
            brought[seat.key] = seat, _solve(seat, lock, spec, facts, world, tell, keep)
    return with_digest(_with_conda_environments(lock, spec, wanted, brought))


def _conda_environments(lock: Lock, site: TargetFacts) -> tuple[_CondaEnvironment, ...]:
    found = []
    for platform in site.platforms:
        base = lock.environment(site.name, platform)
        if base is not None:
            flavour = base.flavour or site.gpu_settings.flavour
            cuda = cuda_of(flavour) if flavour not in (None, "cpu") else None
            of_its_own = f"-cu{cuda.replace('.', '')}" if cuda and base.flavour is None else ""
            found.append(_CondaEnvironment(base, f"{base.key}{of_its_own}-conda", cuda))
    return tuple(found)


def _solve(
    seat: _CondaEnvironment,
    lock: Lock,
    spec: Spec,
    facts: Facts,
    world: System,
    tell: ProgressCallback,
    keep: Lock | None,
) -> _CondaSolution:
    """Ask until no Python package comes in another version than the locked one."""
    indexed = lock.versions(seat.base)
    ask = _solve_request(seat, indexed, spec, facts, keep)
    apart: dict[str, str] = {}
    for _ in range(_MAX_ROUNDS):
        try:
            records = world.solve_conda(ask, tell)
        except Unsatisfiable as error:
            raise _explain_unsatisfiable(error, ask, seat, apart) from error
        here = {
            to_index_name(record.name): record
            for record in records
            if _is_python_package(record) and to_index_name(record.name) in indexed
        }
        other = {
            name: record
            for name, record in here.items()
            if not _same(record.version, indexed[name])
        }
        if not other:
            return _CondaSolution(records, frozenset(here))
        apart |= {name: record.version for name, record in other.items()}
        ask = ask._replace(
            constraints=(
                *ask.constraints,
                *(
                    CondaMatchSpec(record.name, f"=={_public(indexed[name])}")
                    for name, record in other.items()
                ),
            )
        )
    raise _explain_unsatisfiable(
        Unsatisfiable(f"no set of conda packages fits on {seat.base.platform}"), ask, seat, apart
    )


def _solve_request(
    seat: _CondaEnvironment, indexed: Mapping[str, str], spec: Spec, facts: Facts, keep: Lock | None
) -> CondaSolveRequest:
    python = CondaMatchSpec(
        "python", f"{spec.python}.*", _build_of_python(spec.python), DEFAULT_CHANNEL
    )
    asked = [
        CondaMatchSpec(package.name, _version(package.version), "", package.channel)
        for package in spec.conda_packages
    ]
    taken = [
        p.key
        for p in spec.packages
        if p.source == "conda"
        and p.key in indexed
        and marker_applies(p.marker, seat.base.platform, spec.python)
    ]
    of_packages = [
        CondaMatchSpec(
            _PYPI_TO_CONDA.get(name, name),
            f"=={_public(indexed[name])}",
            _build(name, seat, facts),
            DEFAULT_CHANNEL,
        )
        for name in taken
    ]
    wishes = (python, CondaMatchSpec("pip", "", "", DEFAULT_CHANNEL), *asked, *of_packages)
    named = dict.fromkeys(wish.channel for wish in wishes)
    channels = tuple(
        CondaChannel(name, spec.indexes[name].url if name in spec.indexes else "") for name in named
    )
    bounds = (CondaMatchSpec("cuda-version", f"{seat.cuda}.*"),) if seat.cuda else ()
    kept = (
        tuple(p.record for p in keep.conda if seat.key in p.environments)
        if keep is not None
        else ()
    )
    return CondaSolveRequest(
        seat.base.platform,
        channels,
        tuple(dict.fromkeys(wishes)),
        _virtual(seat),
        bounds,
        spec.exclude_newer,
        kept,
    )


def _virtual(seat: _CondaEnvironment) -> tuple[tuple[str, str], ...]:
    """Return the virtual packages of the target: what the lock holds it to, never what the machine
    that locks has.
    """
    if seat.base.platform.startswith("macos"):
        return (("__unix", "0"), ("__osx", _MACOS), ("__archspec", "1"))
    cuda = (("__cuda", seat.cuda),) if seat.cuda else ()
    if seat.base.platform.startswith("windows"):
        return (("__win", "0"), ("__archspec", "1"), *cuda)
    glibc = max(seat.base.glibc or _GLIBC, _GLIBC, key=Version)
    return (("__unix", "0"), ("__linux", "0"), ("__glibc", glibc), ("__archspec", "1"), *cuda)


def _build(name: str, seat: _CondaEnvironment, facts: Facts) -> str:
    """Return the build to ask for by name: without it, a target whose CUDA or C library does not
    fit would get one for CPU in silence.
    """
    if name not in facts.flavoured:
        return ""
    return f"cuda{seat.cuda.replace('.', '')}*" if seat.cuda else "cpu*"


def _build_of_python(minor: str) -> str:
    """Return the build with the interpreter lock: from 3.13 on there are builds without it under
    the same name.
    """
    return f"*_cp{minor.replace('.', '')}" if Version(minor) >= Version("3.13") else ""


def _version(written: str) -> str:
    """Return a version as a spec writes it, one without a comparison being any release of it
    (conda's `ffmpeg=7`).
    """
    bare = re.fullmatch(r"[0-9][^*<>=!~,|]*", written)
    return f"{written}.*" if bare else written


def _with_conda_environments(
    lock: Lock,
    spec: Spec,
    wanted: Mapping[str, tuple[_CondaEnvironment, ...]],
    brought: Mapping[str, tuple[_CondaEnvironment, _CondaSolution]],
) -> Lock:
    """Return the lock with an environment for each seat, and without those that no target uses any
    more.
    """
    targets = {
        name: _with_environments(chosen, wanted.get(name)) for name, chosen in lock.targets.items()
    }
    used = {key for chosen in targets.values() for key in chosen.environments}
    holding: dict[str, frozenset[str]] = {
        key: _packages_from_index(lock, seat, found, spec) for key, (seat, found) in brought.items()
    }
    order = sorted(
        [key for key in {e.key for e in lock.environments} | holding.keys() if key in used]
    )
    bases = {key: seat.base.key for key, (seat, _) in brought.items()}
    packages = []
    for package in lock.packages:
        keys = tuple(
            key
            for key in order
            if bases.get(key, key) in package.environments
            and package.name in holding.get(key, (package.name,))
        )
        if keys:
            packages.append(replace(package, environments=keys))
    conda = tuple(_conda(brought))
    known = {environment.key: environment for environment in lock.environments}
    made = {
        key: _environment(key, seat, lock, tuple(packages), conda)
        for key, (seat, _) in brought.items()
    }
    indexes = {
        name: url
        for name, url in lock.indexes.items()
        if any(package.index == name for package in packages)
    }
    channels = {package.record.channel for package in conda}
    indexes |= {name: index.url for name, index in spec.indexes.items() if name in channels}
    environments = tuple(made.get(key) or known[key] for key in order)
    return replace(
        lock,
        environments=environments,
        targets=targets,
        indexes=indexes,
        packages=tuple(packages),
        conda=conda,
    )


def _with_environments(
    chosen: TargetChoice, seats: tuple[_CondaEnvironment, ...] | None
) -> TargetChoice:
    return (
        chosen if seats is None else replace(chosen, environments=tuple(seat.key for seat in seats))
    )


def _packages_from_index(
    lock: Lock, seat: _CondaEnvironment, found: _CondaSolution, spec: Spec
) -> frozenset[str]:
    """Return the packages that still come from the index: what the spec asks for, and what those
    need, but for what conda brings.
    """
    needs = {package.name: package.requires for package in lock.packages_in(seat.base)}
    left: set[str] = set()
    waiting = [package.key for package in spec.packages if package.key in needs]
    while waiting:
        name = waiting.pop()
        if name not in left and name not in found.provided and name in needs:
            left.add(name)
            waiting += needs[name]
    return frozenset(left)


def _conda(
    brought: Mapping[str, tuple[_CondaEnvironment, _CondaSolution]],
) -> Iterator[LockedCondaPackage]:
    holders: dict[CondaRecord, list[str]] = {}
    for key, (_, found) in sorted(brought.items()):
        for record in found.records:
            holders.setdefault(record, []).append(key)
    for record, keys in sorted(holders.items()):
        yield LockedCondaPackage(record, tuple(keys))


def _environment(
    key: str,
    seat: _CondaEnvironment,
    lock: Lock,
    packages: tuple[LockedPackage, ...],
    conda: tuple[LockedCondaPackage, ...],
) -> LockedEnvironment:
    base = seat.base
    held = tuple(
        with_platform_files(package, lock.python, base.platform)
        for package in packages
        if key in package.environments
    )
    here = tuple(package.record for package in conda if key in package.environments)
    floors = [
        found.groups()
        for package in here
        for need in package.depends
        if (found := _FLOOR.match(need))
    ]
    texts = [f"{major}.{minor}" for major, minor in floors] + ([base.glibc] if base.glibc else [])
    digest = environment_digest(lock.python, base.platform, base.flavour, held, here)
    return replace(base, key=key, glibc=max(texts, key=Version) if texts else None, digest=digest)


def _is_python_package(record: CondaRecord) -> bool:
    """Tell a package of Python from a program that has a name of the package index: conda's
    graphviz is not the one there.
    """
    return record.name != "pip" and (
        record.noarch == "python"
        or any(need.split()[0] in ("python", "python_abi") for need in record.depends)
    )


def _public(version: str) -> str:
    return Version(version).public


def _same(conda: str, indexed: str) -> bool:
    version = parse_version(conda)
    return version is not None and version.public == _public(indexed)


def _explain_unsatisfiable(
    error: Unsatisfiable, ask: CondaSolveRequest, seat: _CondaEnvironment, apart: Mapping[str, str]
) -> CondaUnsatisfiable:
    """Return an error that says which of the target's properties stands in the way, and the way
    out.
    """
    if not error.what.startswith(
        "no set"
    ):  # a name, version or build that the channel lacks: no virtual package stands in the way
        return CondaUnsatisfiable(
            error.what, why=error.why, hint=error.hint or _hint_for(error, seat)
        )
    has = (
        ", ".join(
            f"{name} {version}"
            for name, version in ask.virtual_packages
            if name not in ("__unix", "__linux", "__win", "__archspec")
        )
        or "no virtual package"
    )
    lines = [error.why] if error.why else []
    lines.append(
        f"this target has {has}"
        + ("" if seat.cuda else "; no __cuda, as no card or no CUDA is asked for")
    )
    lines += [
        f"{name} is held to the version that all targets share; conda alone would take {version}"
        for name, version in apart.items()
    ]
    if ask.constraints and seat.cuda:
        lines.append(
            f"cuda-version is held to {seat.cuda}, the CUDA that this target's wheels are built for"
        )
    return CondaUnsatisfiable(
        error.what, why="\n".join(lines), hint=_hint_for(error, seat) or error.hint
    )


def _hint_for(error: Unsatisfiable, seat: _CondaEnvironment) -> str:
    said = f"{error.what}\n{error.why}"
    if "__cuda" in said and seat.cuda is None:
        return (
            "the package is built for CUDA: name the card in `gpu:` and its CUDA in `cuda:`, "
            "or take a package without CUDA"
        )
    if "__cuda" in said or "cuda-version" in said or " build cuda" in said:
        return (
            "set `cuda:` to the version that the package is built for, or drop its version; "
            f"now it is {seat.cuda or 'none'}"
        )
    if "__glibc" in said:
        return (
            "take an older version of the package: it needs a newer C library than this "
            "environment is planned for"
        )
    return "" if error.hint else "loosen the versions of these packages in `conda_packages`"
