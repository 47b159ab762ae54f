"""The request to the agent's installer: packages by hash, and the indexes that have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provision.agent.core.files import zip_files
from provision.agent.core.own_wheels import OWN_INDEX, WHEELS
from provision.lock import LockedPackage
from provision.lock.target_view import DEFAULT_INDEX_URL, is_wheel
from provision.lock.wheels import wheel_runs_on
from provision.targets.context import TargetContext


def build_install_request(
    context: TargetContext,
    mode: str,
    *,
    mirrors: Mapping[str, str] | None = None,
    usable_files_only: bool = False,
) -> dict[str, Any]:
    """Return the installer's request.

    Args:
        context: the target with its lock.
        mode: "own" for an environment with nothing else in it, "shared" if other packages stay.
        mirrors: addresses that the device reaches, by index.
        usable_files_only: leave out the files of other platforms.
    """
    packages = sorted(
        context.lock.packages_in(context.environment), key=lambda package: package.name
    )
    used = {"pypi", *(package.index for package in packages if package.origin is None)}
    sources = context.sandbox_sources
    addresses = {
        name: _find_address(name, address, sources.indexes if sources else {}, mirrors or {})
        for name, address in {"pypi": DEFAULT_INDEX_URL, **context.lock.indexes}.items()
        if name in used
    }
    return {
        "schema": "provision.install/1",
        "mode": mode,
        "python_version": context.lock.python,
        "audit": "size",
        "packages": [
            {
                "name": package.name,
                "version": package.version,
                "index": package.index if package.origin is None else OWN_INDEX,
                "files": _list_files(package, context, usable_only=usable_files_only),
            }
            for package in packages
        ],
        "indexes": {name: address for name, address in addresses.items() if address},
        "links": list(sources.find_links) if sources else [],
    }


def with_own_wheels(request: Mapping[str, Any], context: TargetContext) -> dict[str, Any]:
    """Return a request with the hashes of the wheels of the project's own packages."""
    wheels = {source.name: source.wheel for source in context.sources}
    packages = []
    for row in request["packages"]:
        wheel = wheels.get(row["name"])
        packages.append(row if wheel is None else {**row, "files": {wheel.name: wheel.sha256}})
    return {**request, "packages": packages}


def pack_own_wheels(context: TargetContext) -> dict[str, bytes]:
    """Return the archive of the wheels of the project's own packages by its name; {} for none."""
    wheels = {source.wheel.name: source.wheel.content for source in context.sources if source.wheel}
    return {WHEELS: zip_files(wheels)} if wheels else {}


def _list_files(
    package: LockedPackage, context: TargetContext, *, usable_only: bool
) -> dict[str, str]:
    """Return the sha256 of a package's files by name.

    That of a wheel that is built here belongs to the request of a run, not to what is declared.
    """
    if package.origin is not None:
        return {}
    return {
        file.name: file.sha256
        for file in package.files
        if not usable_only
        or not is_wheel(file)
        or wheel_runs_on(file.name, context.lock.python, context.platform)
    }


def _find_address(
    name: str, address: str, substitutes: Mapping[str, str], mirrors: Mapping[str, str]
) -> str:
    """Return an index's address on the device.

    A mirror named pytorch is the folder that contains one index for each flavour.
    """
    if substitutes.get(name):
        return substitutes[name]
    if name in mirrors:
        return mirrors[name]
    if name.startswith("pytorch-") and "pytorch" in mirrors:
        return f"{mirrors['pytorch'].rstrip('/')}/{name.removeprefix('pytorch-')}"
    return address
