"""Resolves projects with uv."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provision.adapters.uv.program import run_uv
from provision.adapters.uv.scratch_project import open_scratch_project
from provision.effects.packages import (
    PackageSources,
    PythonInstallation,
    Release,
    Resolution,
    SourceDistribution,
    UvProject,
)


def resolve_project(
    project: UvProject,
    sources: PackageSources,
    interpreter: PythonInstallation,
    environment: Mapping[str, str],
) -> Resolution:
    """Resolve a project to one set of versions over all its environments.

    Raises:
        LockError: with uv's derivation, if no set of versions fits.
        NetworkError: an index cannot be reached.
        ExternalError: uv failed for another reason.
    """
    with open_scratch_project(project, sources, interpreter, environment) as scratch:
        graph = scratch.lock("--no-build")
        if project.variants:
            pylocks = {name: scratch.export("--extra", name) for name, _ in project.variants}
        else:
            pylocks = {"": scratch.export()}
        return Resolution(graph, pylocks, sources)


def newest_release(
    project: UvProject,
    sources: PackageSources,
    interpreter: PythonInstallation,
    environment: Mapping[str, str],
) -> Release:
    """Return the newest release that a project's only requirement admits, wheels or source.

    uv is told that the package has no dependencies, so that it neither downloads nor builds it.
    Raises as `resolve_project` does.
    """
    (requirement,) = project.requirements
    name = canonicalize_name(Requirement(requirement).name)
    with open_scratch_project(project, sources, interpreter, environment) as scratch:
        (scratch.folder / "given.toml").write_text(
            f"[[dependency-metadata]]\nname = {json.dumps(name)}\nrequires-dist = []\n",
            encoding="utf-8",
        )
        scratch.lock("--config-file", "given.toml")
        packages = tomllib.loads(scratch.export("--config-file", "given.toml"))["packages"]
        package = next(package for package in packages if package["name"] == name)
        source = None
        if sdist := package.get("sdist"):
            sha256 = sdist.get("hashes", {}).get("sha256", "")
            source = SourceDistribution(_file_name(sdist), _file_url(sdist, scratch.folder), sha256)
        wheels = tuple(_file_name(wheel) for wheel in package.get("wheels", ()))
        return Release(name, package["version"], wheels, source)


def default_index_url(environment: Mapping[str, str]) -> str:
    """Return the address of uv's default index; needs no network."""
    options = ["--quiet", "--offline", "--no-header", "--emit-index-url"]
    return run_uv(["pip", "compile", *options, "-"], environment).split()[1]


def _file_name(file: Mapping[str, Any]) -> str:
    if "name" in file:
        return str(file["name"])
    return unquote(urlsplit(file.get("url", file.get("path", ""))).path).rsplit("/", 1)[-1]


def _file_url(file: Mapping[str, Any], folder: Path) -> str:
    return str(file["url"]) if "url" in file else (folder / file["path"]).resolve().as_uri()
