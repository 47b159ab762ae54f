"""Requests to the conda solver: names on channels, requirements, and failures by the spec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from packaging.version import Version

from provision.effects.conda import CondaChannel, CondaMatchSpec, CondaSolveRequest
from provision.effects.packages import VersionPreference
from provision.errors import CondaUnsatisfiable, Unsatisfiable
from provision.facts import Facts
from provision.lock.model import Lock, LockedEnvironment
from provision.lock.wheels import marker_applies, marker_of
from provision.spec import Spec, canonical_name

DEFAULT_CHANNEL = "conda-forge"
"""The channel of Python, of packages with `source: conda`, and of all that names no other."""
_GLIBC = "2.28"
"""The oldest C library: PyTorch's own wheels for Linux need it (manylinux_2_28)."""
_MACOS = "11.0"
"""The oldest macOS that runs on Apple silicon."""


PYPI_TO_CONDA = {"torch": "pytorch"}
"""Names on conda-forge that differ from those on the package index (pytorch-cpu-feedstock)."""
_CONDA_TO_PYPI = {"pytorch": "torch"}


def with_index_names(spec: Spec) -> Spec:
    """Return the spec with its conda packages under their index names: `pytorch` is `torch`."""
    packages = list(spec.packages)
    for number, package in enumerate(packages):
        if package.source == "conda" and package.key in _CONDA_TO_PYPI:
            index_name = _CONDA_TO_PYPI[package.key]
            packages[number] = package.model_copy(update={"name": index_name})
    return spec.model_copy(update={"packages": packages})


def to_index_name(conda: str) -> str:
    """Return the index name of a conda package."""
    return _CONDA_TO_PYPI.get(conda, canonical_name(conda))


def conda_provided_versions(
    lock: Lock, environment: LockedEnvironment, spec: Spec
) -> dict[str, str]:
    """Return the versions of the Python packages that conda provides, by index name.

    Only the spec's own packages and torch: others may differ from their namesakes on the index.
    """
    own = {_CONDA_TO_PYPI.get(package.key, package.key) for package in spec.packages}
    own.update(PYPI_TO_CONDA)
    indexed = lock.versions(environment)
    versions = {}
    for record in lock.conda_records_in(environment):
        name = to_index_name(record.name)
        if record.name != "pip" and name in own and name not in indexed:
            versions[name] = record.version
    return versions


def requested_conda_names(spec: Spec) -> frozenset[str]:
    """Return the conda names of all that a spec requests of conda, with Python and pip."""
    names = {"python", "pip", *(package.name for package in spec.conda_packages)}
    for package in spec.packages:
        if package.source == "conda":
            names.add(PYPI_TO_CONDA.get(package.key, package.key))
    return frozenset(names)


def conda_preferences(keep: Lock) -> tuple[VersionPreference, ...]:
    """Return the versions that only conda provides, to keep them when the index resolves again."""
    indexed = {package.name for package in keep.packages}
    preferences = []
    for environment in keep.environments:
        flavour = environment.flavour
        for record in keep.conda_records_in(environment):
            name = to_index_name(record.name)
            if name in PYPI_TO_CONDA and name not in indexed and flavour is not None:
                version, index = f"{record.version}+{flavour}", f"pytorch-{flavour}"
                marker = marker_of(environment.platform)
                preferences.append(VersionPreference(name, version, index, (marker,)))
    return tuple(preferences)


class CondaEnvironment(NamedTuple):
    """An environment that conda makes of a locked one, with its own key.

    `cuda` is the CUDA version that the target runs, None without a card.
    """

    base: LockedEnvironment
    key: str
    cuda: str | None


def build_solve_request(
    environment: CondaEnvironment,
    locked: Mapping[str, str],
    spec: Spec,
    facts: Facts,
    keep: Lock | None,
) -> CondaSolveRequest:
    """Return the request for an environment; `locked` are the versions that all targets share."""
    base, cuda = environment.base, environment.cuda
    python_build = ""
    if Version(spec.python) >= Version("3.13"):
        # The build with the interpreter lock: others have the same name from 3.13 on.
        python_build = f"*_cp{spec.python.replace('.', '')}"
    match_specs = [
        CondaMatchSpec("python", f"{spec.python}.*", python_build, DEFAULT_CHANNEL),
        CondaMatchSpec("pip", "", "", DEFAULT_CHANNEL),
    ]
    for requested in spec.conda_packages:
        version = _to_match_version(requested.version)
        match_specs.append(CondaMatchSpec(requested.name, version, "", requested.channel))
    for package in spec.packages:
        name = package.key
        if (
            package.source == "conda"
            and name in locked
            and marker_applies(package.marker, base.platform, spec.python)
        ):
            build = ""
            if name in facts.flavoured:
                # Without it, a target whose CUDA or C library does not fit would get a CPU build.
                build = f"cuda{cuda.replace('.', '')}*" if cuda else "cpu*"
            version = f"=={public_version(locked[name])}"
            conda_name = PYPI_TO_CONDA.get(name, name)
            match_specs.append(CondaMatchSpec(conda_name, version, build, DEFAULT_CHANNEL))
    channels = tuple(
        CondaChannel(name, spec.indexes[name].url if name in spec.indexes else "")
        for name in dict.fromkeys(match.channel for match in match_specs)
    )
    kept = []
    if keep is not None:
        kept = [row.record for row in keep.conda if environment.key in row.environments]
    return CondaSolveRequest(
        base.platform,
        channels,
        tuple(dict.fromkeys(match_specs)),
        _virtual_packages(environment),
        (CondaMatchSpec("cuda-version", f"{cuda}.*"),) if cuda else (),
        spec.exclude_newer,
        tuple(kept),
    )


def public_version(version: str) -> str:
    """Return a version without its local label."""
    return Version(version).public


def explain_unsatisfiable(
    error: Unsatisfiable,
    request: CondaSolveRequest,
    environment: CondaEnvironment,
    conda_versions: Mapping[str, str],
) -> CondaUnsatisfiable:
    """Return an error that names the target's property in the way, and the fix.

    `conda_versions` are the versions that conda alone would choose, by name.
    """
    hint = _hint_for(error, environment)
    if not error.what.startswith("no set"):
        # A channel lacks a name, version or build: no virtual package is in the way.
        return CondaUnsatisfiable(error.what, why=error.why, hint=error.hint or hint)
    properties = ", ".join(
        f"{name} {version}"
        for name, version in request.virtual_packages
        if name not in ("__unix", "__linux", "__win", "__archspec")
    )
    without_cuda = "" if environment.cuda else "; no __cuda, because no GPU or no CUDA is requested"
    lines = [error.why] if error.why else []
    lines.append(f"this target has {properties or 'no virtual package'}{without_cuda}")
    lines += [
        f"{name} must have the same version on all targets, but conda alone would choose {version}"
        for name, version in conda_versions.items()
    ]
    if request.constraints and environment.cuda:
        lines.append(
            f"cuda-version must be {environment.cuda}, the CUDA version of this target's wheels"
        )
    return CondaUnsatisfiable(error.what, why="\n".join(lines), hint=hint or error.hint)


def _virtual_packages(environment: CondaEnvironment) -> tuple[tuple[str, str], ...]:
    """Return the properties of the target, never those of the machine that locks."""
    base = environment.base
    if base.platform.startswith("macos"):
        return (("__unix", "0"), ("__osx", _MACOS), ("__archspec", "1"))
    cuda = (("__cuda", environment.cuda),) if environment.cuda else ()
    if base.platform.startswith("windows"):
        return (("__win", "0"), ("__archspec", "1"), *cuda)
    glibc = max(base.glibc or _GLIBC, _GLIBC, key=Version)
    return (("__unix", "0"), ("__linux", "0"), ("__glibc", glibc), ("__archspec", "1"), *cuda)


def _to_match_version(version: str) -> str:
    """Return a version as a match; one without a comparison is any of it (`ffmpeg=7`)."""
    is_bare = re.fullmatch(r"[0-9][^*<>=!~,|]*", version)
    return f"{version}.*" if is_bare else version


def _hint_for(error: Unsatisfiable, environment: CondaEnvironment) -> str:
    text = f"{error.what}\n{error.why}"
    if "__cuda" in text and environment.cuda is None:
        return "the package is built for CUDA: set `gpu` and `cuda`, or use a package without CUDA"
    if "__cuda" in text or "cuda-version" in text or " build cuda" in text:
        return (
            "set `cuda` to the version that the package is built for, or remove the package's "
            f"version; the current CUDA version is {environment.cuda or 'none'}"
        )
    if "__glibc" in text:
        return (
            "use an older version of the package: this version needs a newer C library than "
            "the environment assumes"
        )
    return "" if error.hint else "relax the versions of these packages in `conda_packages`"
