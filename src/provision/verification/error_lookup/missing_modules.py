"""Missing modules: the package that each belongs to, and what a known environment has of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from packaging.utils import canonicalize_name

from provision.facts import Facts
from provision.verification.error_lookup.known_environment import (
    FROM_ANOTHER_ENVIRONMENT,
    KnownEnvironment,
)

NAMESPACE_PACKAGES = frozenset({"azure", "backports", "google", "jaraco", "nvidia", "ruamel"})
"""Names before a dot that many packages share: no package is named like one of them alone."""
_PACKAGE_OF_MODULE: Mapping[str, str] = {
    "google.protobuf": "protobuf",
    "google.rpc": "googleapis-common-protos",
    "google.api": "googleapis-common-protos",
}
"""Modules below a shared name whose package has another name."""


def find_missing_package(module: str, facts: Facts) -> str:
    """Return the package that a missing module belongs to, or "" if the facts know none.

    Python looks for the part before a dot first: missing the whole of "torch._six" means that
    torch is installed, except below a name that packages share.
    """
    top, *below = module.split(".")
    if top not in NAMESPACE_PACKAGES:
        package = _package_of(top, facts)
        return package if not below and is_known_package(package, facts) else ""
    for length in range(len(below), 0, -1):
        prefix = ".".join((top, *below[:length]))
        package = _PACKAGE_OF_MODULE.get(prefix) or str(canonicalize_name(prefix))
        if package != "google-colab" and is_known_package(package, facts):
            return package
    return ""


def is_known_package(name: str, facts: Facts) -> bool:
    """Return whether the facts know a package by its name."""
    return name in facts.popular or name in facts.seen or name in facts.runs


def explain_missing_module(
    module: str, facts: Facts, environments: Sequence[KnownEnvironment]
) -> Iterator[str]:
    """Yield the package of a missing module, and the release of it in each environment."""
    package, top = find_missing_package(module, facts), module.partition(".")[0]
    if not package:
        yield from _explain_unknown_module(module, environments)
        return
    renamed = package != canonicalize_name(top)
    lead = f"the module {module} is missing"
    if renamed:
        lead = f"the module {module} is of the package {package}"
    for environment in environments:
        version = environment.packages.get(package)
        if version is not None:
            found = f"{environment.source} has {package} {version}"
            yield f"{lead}, and {found}: {FROM_ANOTHER_ENVIRONMENT}"
        elif environment.is_complete:
            yield f"{lead}, and {environment.source} has none of that name"
    if renamed and not environments:
        yield lead


def explain_removed_module(
    module: str, facts: Facts, environments: Sequence[KnownEnvironment]
) -> Iterator[str]:
    """Yield the releases, in each environment, of the package that lacks a module."""
    top = module.partition(".")[0]
    package = _package_of(top, facts)
    releases = [
        f"{environment.source} has {package} {environment.packages[package]}"
        for environment in environments
        if environment.packages.get(package)
    ]
    if releases or is_known_package(package, facts) or top in sys.stdlib_module_names:
        yield "; ".join([f"Python has found {top}, and no {module} in it", *releases])
    else:
        yield (
            f"no package {top} is known: where it is code of your own, another {top} may be "
            "found first"
        )


def _package_of(top: str, facts: Facts) -> str:
    replaced = facts.replaced.get(top.lower())
    return str(canonicalize_name(replaced.instead if replaced is not None else top))


def _explain_unknown_module(module: str, environments: Sequence[KnownEnvironment]) -> Iterator[str]:
    top = module.partition(".")[0]
    if top in NAMESPACE_PACKAGES:
        yield f"many packages share the name {top}: which one lacks cannot be told from it"
        return
    if top in sys.stdlib_module_names:
        yield (
            f"{top} is of Python itself, and this build of it has none: another build, or the "
            "package of the system that holds it (python3-tk for tkinter)"
        )
        return
    name, installed = canonicalize_name(top), False
    for environment in environments:
        if version := environment.packages.get(name):
            installed = True
            found = f"{environment.source} has {top} {version}"
            yield f"the module {module} is missing, and {found}: {FROM_ANOTHER_ENVIRONMENT}"
    if not installed:
        yield (
            f"no package {module} is known: where it is code of your own, start in its folder, "
            "or name that folder in PYTHONPATH"
        )
