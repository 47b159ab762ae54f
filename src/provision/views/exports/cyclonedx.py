"""A locked environment as a bill of materials (CycloneDX 1.6, JSON): what is in it, from where, and
what needs what.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from provision.effects.conda import CondaRecord
from provision.lock.conda_names import to_index_name
from provision.lock.model import LockedPackage
from provision.lock.target_view import TargetView, ViewedPackage
from provision.views.exports import MADE_BY


def render_cyclonedx(
    portion: TargetView, name: str, direct: tuple[str, ...], of_conda: frozenset[str] = frozenset()
) -> str:
    """Return the document: the same bytes for the same lock.

    `name` is the spec's, `direct` are the canonical names of the packages that it lists,
    `of_conda` conda's names of what it asks of conda.
    """
    references = _references(portion)
    conda = {
        package.name: [_conda_purl(one) for one in portion.conda if one.name == package.name]
        for package in portion.conda
    }
    # What conda brings is the package of the index, wherever one of the index requires it.
    known = {**{to_index_name(package): found for package, found in conda.items()}, **references}
    root = f"provision:{name}"
    asked = (*_sorted(direct, references), *_sorted(tuple(of_conda), conda))
    needs = [{"ref": root, "dependsOn": sorted({*asked})}]
    needs += [
        {"ref": _conda_purl(one), "dependsOn": _sorted(_needed(one), conda)}
        for one in portion.conda
    ]
    needs += [
        {"ref": _purl(h.package, portion), "dependsOn": _sorted(h.package.requires, known)}
        for h in portion.packages
    ]
    keys = [environment.key for environment in portion.environments]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid5(NAMESPACE_URL, f"{name} {portion.digest} {' '.join(keys)}").urn,
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
                {"name": "provision:lock", "value": portion.digest},
                {"name": "provision:python", "value": portion.python},
                *({"name": "provision:environment", "value": key} for key in keys),
                *(
                    {"name": "provision:flavour", "value": flavour}
                    for flavour in sorted({e.flavour for e in portion.environments if e.flavour})
                ),
            ],
        },
        "components": [
            *map(_conda_component, portion.conda),
            *(_component(held, portion) for held in portion.packages),
        ],
        "dependencies": needs,
    }
    return json.dumps(document, indent=2) + "\n"


def _component(held: ViewedPackage, portion: TargetView) -> dict[str, Any]:
    package, purl = held.package, _purl(held.package, portion)
    properties = [{"name": "provision:index", "value": package.index}]
    if label := package.version.partition("+")[2]:
        properties.append({"name": "provision:flavour", "value": label})
    if held.marker:
        properties.append({"name": "provision:marker", "value": held.marker})
    if package.unconfirmed:
        properties.append({"name": "provision:origin", "value": "unconfirmed"})
    hashes = [("SHA-256", sha256) for sha256 in sorted({file.sha256 for file in package.files})]
    return _library(package.name, package.version, purl, hashes, properties)


def _conda_component(package: CondaRecord) -> dict[str, Any]:
    hashes = [
        (algorithm, digest)
        for algorithm, digest in (("MD5", package.md5), ("SHA-256", package.sha256))
        if digest
    ]
    return _library(
        package.name,
        package.version,
        _conda_purl(package),
        hashes,
        [{"name": "provision:channel", "value": package.channel}],
    )


def _library(
    name: str,
    version: str,
    purl: str,
    hashes: Sequence[tuple[str, str]],
    properties: Sequence[dict[str, str]],
) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": algorithm, "content": digest} for algorithm, digest in hashes],
        "properties": list(properties),
    }


def _conda_purl(package: CondaRecord) -> str:
    """Return the URL of one build; the qualifiers are those of the purl specification, in its
    order.
    """
    form = "tar.bz2" if package.file.endswith(".tar.bz2") else "conda"
    qualifiers = {
        "build": package.build,
        "channel": package.channel,
        "subdir": package.subdir,
        "type": form,
    }
    return f"pkg:conda/{quote(package.name)}@{quote(package.version, safe='')}?" + "&".join(
        f"{key}={quote(value)}" for key, value in qualifiers.items()
    )


def _needed(package: CondaRecord) -> tuple[str, ...]:
    """Return the names in conda's match specs: the first word of each, without its channel."""
    words = (spec.split(maxsplit=1)[0] for spec in package.depends if spec.strip())
    return tuple(re.split("[=<>!~\\[]", word.rpartition("::")[2])[0] for word in words)


def _purl(package: LockedPackage, portion: TargetView) -> str:
    """Return the package's URL; one of another index says so, since that index may give the name to
    other software than PyPI does.
    """
    index = (
        ""
        if package.index == "pypi"
        else f"?repository_url={quote(portion.indexes[package.index], safe=':/')}"
    )
    return f"pkg:pypi/{package.name}@{quote(package.version, safe='')}{index}"


def _references(portion: TargetView) -> dict[str, list[str]]:
    references: dict[str, list[str]] = {}
    for held in portion.packages:
        references.setdefault(held.package.name, []).append(_purl(held.package, portion))
    return references


def _sorted(names: tuple[str, ...], references: dict[str, list[str]]) -> list[str]:
    return sorted(reference for name in set(names) for reference in references.get(name, ()))
