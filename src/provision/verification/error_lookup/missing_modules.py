"""Which package a module is of that Python does not find, and what a missing module says of a
place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provision.facts import Facts

if TYPE_CHECKING:
    from provision.verification.error_lookup.versions import KnownEnvironment

NAMESPACE_PACKAGES = frozenset({"azure", "backports", "google", "jaraco", "nvidia", "ruamel"})
"""Names before a dot that many packages share: none of them is the package of that name."""
_PACKAGE_OF_MODULE: Mapping[str, str] = {
    "google.protobuf": "protobuf",
    "google.rpc": "googleapis-common-protos",
    "google.api": "googleapis-common-protos",
}
"""Modules below a shared name whose package is not called like them."""


def find_missing_package(module: str, facts: Facts) -> str:
    """Return the package whose absence a missing module tells of, or "" where it tells of none that
    the facts know.

    Python looks for the part before a dot first. That it misses the whole of "torch._six" says
    that torch is there, except below a name that packages share.
    """
    top, *below = module.split(".")
    if top in NAMESPACE_PACKAGES:
        prefixes = [".".join((top, *below[:number])) for number in range(len(below), 0, -1)]
        names = (
            _PACKAGE_OF_MODULE.get(prefix) or str(canonicalize_name(prefix)) for prefix in prefixes
        )
        return next(
            (name for name in names if name != "google-colab" and is_known_package(name, facts)), ""
        )
    if below:
        return ""
    row = facts.replaced.get(top.lower())
    name = str(canonicalize_name(row.instead if row is not None else top))
    return name if is_known_package(name, facts) else ""


def is_known_package(name: str, facts: Facts) -> bool:
    """Whether the facts know a package of that name."""
    return name in facts.popular or name in facts.seen or name in facts.runs


def explain_missing_module(
    module: str, facts: Facts, places: tuple[KnownEnvironment, ...], elsewhere: str
) -> Iterator[str]:
    """Say of a module that is missing whose it is, and what each place has of it."""
    top, package = module.partition(".")[0], find_missing_package(module, facts)
    if not package:
        yield from _explain_unknown_module(module, places, elsewhere)
        return
    lead = (
        f"the module {module} is of the package {package}"
        if package != canonicalize_name(top)
        else f"the module {module} is missing"
    )
    for place in places:
        have = place.packages.get(package)
        if have is not None:
            yield f"{lead}, and {place.source} has {package} {have}: {elsewhere}"
        elif place.is_complete:
            yield f"{lead}, and {place.source} has none of that name"
    if package != canonicalize_name(top) and not places:
        yield lead


def explain_removed_module(
    module: str, facts: Facts, places: tuple[KnownEnvironment, ...]
) -> Iterator[str]:
    """Say of a module that its package lacks which release of it each place has."""
    top = module.partition(".")[0]
    row = facts.replaced.get(top.lower())
    package = str(canonicalize_name(row.instead if row is not None else top))
    found = [
        f"{place.source} has {package} {have}"
        for place in places
        if (have := place.packages.get(package))
    ]
    if not found and not is_known_package(package, facts) and top not in sys.stdlib_module_names:
        (
            yield f"no package {top} is known: where it is code of your own, another {top} may be "
            "found first"
        )
    else:
        yield f"Python has found {top}, and no {module} in it" + "".join(
            f"; {one}" for one in found
        )


def _explain_unknown_module(
    module: str, places: tuple[KnownEnvironment, ...], elsewhere: str
) -> Iterator[str]:
    top = module.partition(".")[0]
    if top in NAMESPACE_PACKAGES:
        yield f"many packages share the name {top}: which one lacks cannot be told from it"
        return
    if top in sys.stdlib_module_names:
        (
            yield f"{top} is of Python itself, and this build of it has none: another build, or "
            "the "
            "package of the system that holds it (python3-tk for tkinter)"
        )
        return
    found = [
        (place.source, have)
        for place in places
        if (have := place.packages.get(canonicalize_name(top)))
    ]
    yield from (
        f"the module {module} is missing, and {teller} has {top} {have}: {elsewhere}"
        for teller, have in found
    )
    if not found:
        (
            yield f"no package {module} is known: where it is code of your own, start in its "
            "folder, "
            "or name that folder in PYTHONPATH"
        )
