"""Names and versions of packages that exist both on the package index and on conda channels."""

from __future__ import annotations

from provision.effects.packages import VersionPreference
from provision.lock.model import Lock, LockedEnvironment
from provision.lock.wheels import marker_of
from provision.spec import Package, Spec, canonical_name

PYPI_TO_CONDA = {"torch": "pytorch"}
"""Names on conda-forge that differ from those on the package index (pytorch-cpu-feedstock)."""
_CONDA_TO_PYPI = {conda: name for name, conda in PYPI_TO_CONDA.items()}


def with_index_names(spec: Spec) -> Spec:
    """Return the spec with its conda packages under their index names: `pytorch` is `torch`."""

    def renamed(package: Package) -> Package:
        if package.source != "conda" or package.key not in _CONDA_TO_PYPI:
            return package
        return package.model_copy(update={"name": _CONDA_TO_PYPI[package.key]})

    packages = [renamed(package) for package in spec.packages]
    if packages == spec.packages:
        return spec
    return spec.model_copy(update={"packages": packages})


def to_index_name(conda: str) -> str:
    """Return the index name of a conda package."""
    return _CONDA_TO_PYPI.get(conda, canonical_name(conda))


def conda_provided_versions(
    lock: Lock, environment: LockedEnvironment, spec: Spec
) -> dict[str, str]:
    """Return the versions of the Python packages that conda provides, by index name.

    Only the spec's own packages and torch: others may differ from the index's of that name.
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
