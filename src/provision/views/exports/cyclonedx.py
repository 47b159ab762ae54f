"""A locked environment as a bill of materials (CycloneDX 1.6, JSON)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from provision.effects.conda import CondaRecord
from provision.lock.conda_request import to_index_name
from provision.lock.model import LockedPackage
from provision.lock.target_view import TargetView, ViewedPackage
from provision.views.exports import MADE_BY
from provision.views.exports.requirements import sorted_hashes


def render_cyclonedx(
    view: TargetView, name: str, direct: tuple[str, ...], from_conda: frozenset[str] = frozenset()
) -> str:
    """Return the document, with the same bytes for the same lock.

    Args:
        view: The locked environment.
        name: The spec's name.
        direct: The canonical names of the packages that the spec lists.
        from_conda: Conda's names of the packages that the spec lists for conda.
    """
    keys = [environment.key for environment in view.environments]
    flavours = sorted({one.flavour for one in view.environments if one.flavour})
    root = f"provision:{name}"
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid5(NAMESPACE_URL, f"{name} {view.digest} {' '.join(keys)}").urn,
        "version": 1,
        "metadata": {
            "tools": {
                "components": [
                    {
                        "type": "application",
                        "name": "provision",
                        "description": f"{MADE_BY} --format cyclonedx`",
                    }
                ]
            },
            "component": {"type": "application", "bom-ref": root, "name": name},
            "properties": [
                _property("lock", view.digest),
                _property("python", view.python),
                *(_property("environment", key) for key in keys),
                *(_property("flavour", flavour) for flavour in flavours),
            ],
        },
        "components": [
            *map(_conda_component, view.conda),
            *(_component(viewed, view) for viewed in view.packages),
        ],
        "dependencies": _dependencies(view, root, direct, from_conda),
    }
    return json.dumps(document, indent=2) + "\n"


def _dependencies(
    view: TargetView, root: str, direct: Iterable[str], from_conda: Iterable[str]
) -> list[dict[str, Any]]:
    """Return the references that each component depends on, the root first."""
    references: dict[str, list[str]] = {}
    for viewed in view.packages:
        references.setdefault(viewed.package.name, []).append(_reference(viewed.package, view))
    conda: dict[str, list[str]] = {}
    for record in view.conda:
        conda.setdefault(record.name, []).append(_conda_purl(record))
    # A package of conda is that of the index, wherever one of the index requires it.
    known = {**{to_index_name(name): purls for name, purls in conda.items()}, **references}
    declared = {*_sorted(direct, references), *_sorted(from_conda, conda)}
    edges = [(root, sorted(declared))]
    edges += [(_conda_purl(one), _sorted(_requirements(one), conda)) for one in view.conda]
    locked = [viewed.package for viewed in view.packages]
    edges += [(_reference(one, view), _sorted(one.requires, known)) for one in locked]
    return [{"ref": reference, "dependsOn": required} for reference, required in edges]


def _property(name: str, value: str) -> dict[str, str]:
    return {"name": f"provision:{name}", "value": value}


def _component(viewed: ViewedPackage, view: TargetView) -> dict[str, Any]:
    package = viewed.package
    properties = {
        "index": package.index,
        "source": package.origin.description if package.origin is not None else "",
        "flavour": package.version.partition("+")[2],
        "marker": viewed.marker,
        "origin": "unconfirmed" if package.unconfirmed else "",
    }
    purl = _purl(package, view)
    hashes = [("SHA-256", sha256) for sha256 in sorted_hashes(package)]
    component = _library(package, _reference(package, view), hashes, properties)
    return component if purl is None else {**component, "purl": purl}


def _conda_component(record: CondaRecord) -> dict[str, Any]:
    hashes = [("MD5", record.md5), ("SHA-256", record.sha256)]
    purl = _conda_purl(record)
    return {**_library(record, purl, hashes, {"channel": record.channel}), "purl": purl}


def _library(
    package: LockedPackage | CondaRecord,
    reference: str,
    hashes: Iterable[tuple[str, str | None]],
    properties: Mapping[str, str | None],
) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": reference,
        "name": package.name,
        "version": package.version,
        "hashes": [{"alg": algorithm, "content": digest} for algorithm, digest in hashes if digest],
        "properties": [_property(name, value) for name, value in properties.items() if value],
    }


def _conda_purl(record: CondaRecord) -> str:
    """Return the URL of a build; its qualifiers are in the purl specification's order."""
    qualifiers = {
        "build": record.build,
        "channel": record.channel,
        "subdir": record.subdir,
        "type": "tar.bz2" if record.file.endswith(".tar.bz2") else "conda",
    }
    query = "&".join(f"{key}={quote(value)}" for key, value in qualifiers.items())
    return f"pkg:conda/{quote(record.name)}@{quote(record.version, safe='')}?{query}"


def _requirements(record: CondaRecord) -> tuple[str, ...]:
    """Return the names in conda's match specs: the first word of each, without its channel."""
    words = (spec.split(maxsplit=1)[0] for spec in record.depends if spec.strip())
    return tuple(re.split("[=<>!~\\[]", word.rpartition("::")[2])[0] for word in words)


def _reference(package: LockedPackage, view: TargetView) -> str:
    """Return what identifies a component in the document."""
    return _purl(package, view) or f"{package.name}=={package.version}"


def _purl(package: LockedPackage, view: TargetView) -> str | None:
    """Return the package's URL; None for a folder or a wheel file.

    It names another index than PyPI, which may give the name to other software. For a local package
    cyclonedx-py gives none either (`environment.py`: "no purl for locals and unpublished packages",
    https://github.com/CycloneDX/cyclonedx-python): PyPI may have other software of its name.
    """
    purl = f"pkg:pypi/{package.name}@{quote(package.version, safe='')}"
    if package.origin is not None and package.origin.git:
        address = quote(f"git+{package.origin.git}@{package.origin.commit}", safe="/")
        return f"{purl}?vcs_url={address}"
    if package.origin is not None:
        return None
    if package.index == "pypi":
        return purl
    return f"{purl}?repository_url={quote(view.indexes[package.index], safe=':/')}"


def _sorted(names: Iterable[str], references: dict[str, list[str]]) -> list[str]:
    return sorted(reference for name in set(names) for reference in references.get(name, ()))
