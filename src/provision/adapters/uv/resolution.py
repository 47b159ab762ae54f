"""Resolves projects with uv in scratch projects: their files, variables and options."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provision.adapters.uv.local_index import index_url
from provision.adapters.uv.sources import link_wheels
from provision.adapters.uv.toolchain import run_uv
from provision.agent.install.uv_inputs import (
    build_index_variables,
    index_lines,
    project_lines,
    remove_credentials,
)
from provision.effects.packages import (
    IndexBinding,
    PackageSources,
    PythonInstallation,
    Release,
    Resolution,
    SourceDistribution,
    UvProject,
    pylock_file_name,
)

_EXPORT = (
    "export",
    "--frozen",
    "--no-emit-project",
    "--format",
    "pylock.toml",
    "--no-header",
    "--quiet",
    "--output-file",
    "pylock.toml",
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

    For uv the package has no dependencies, so that uv neither downloads nor builds it.
    Raises as `resolve_project` does.
    """
    (requirement,) = project.requirements
    name = canonicalize_name(Requirement(requirement).name)
    with open_scratch_project(project, sources, interpreter, environment) as scratch:
        metadata = f"[[dependency-metadata]]\nname = {json.dumps(name)}\nrequires-dist = []\n"
        (scratch.folder / "given.toml").write_text(metadata, encoding="utf-8")
        scratch.lock("--config-file", "given.toml")
        packages = tomllib.loads(scratch.export("--config-file", "given.toml"))["packages"]
        package = next(package for package in packages if package["name"] == name)
        source = None
        if sdist := package.get("sdist"):
            url = sdist.get("url") or (scratch.folder / sdist["path"]).resolve().as_uri()
            sha256 = sdist.get("hashes", {}).get("sha256", "")
            source = SourceDistribution(pylock_file_name(sdist), url, sha256)
        wheels = tuple(pylock_file_name(wheel) for wheel in package.get("wheels", ()))
        return Release(name, package["version"], wheels, source)


def default_index_url(environment: Mapping[str, str]) -> str:
    """Return the address of uv's default index; needs no network."""
    options = ["--quiet", "--offline", "--no-header", "--emit-index-url"]
    return run_uv(["pip", "compile", *options, "-"], environment).split()[1]


class ScratchProject(NamedTuple):
    """A folder with pyproject.toml and, for the versions to keep, uv.lock."""

    folder: Path
    project: UvProject
    sources: PackageSources
    interpreter: PythonInstallation
    environment: Mapping[str, str]

    def lock(self, *options: str) -> str:
        """Run `uv lock` and return its lock."""
        arguments = ["lock", "--python", str(self.interpreter.path), "--quiet"]
        self._run([*arguments, *options, *_exclude_newer_options(self.project)])
        return (self.folder / "uv.lock").read_text(encoding="utf-8")

    def export(self, *options: str) -> str:
        """Run `uv export`, which needs no network, and return the PEP 751 lock."""
        self._run([*_EXPORT, *options])
        return (self.folder / "pylock.toml").read_text(encoding="utf-8")

    def _run(self, arguments: list[str]) -> None:
        run_uv(arguments, self.environment, self.folder, self.project, self.sources)


@contextmanager
def open_scratch_project(
    project: UvProject,
    sources: PackageSources,
    interpreter: PythonInstallation,
    environment: Mapping[str, str],
) -> Iterator[ScratchProject]:
    """Create a scratch project, and remove it at the end.

    An interpreter of another version than the project's is fine: markers then demand the
    project's version.
    """
    requires_python = f"=={project.python}.*"
    if interpreter.minor != project.python:
        requires_python, project = ">=3", _with_python_markers(project)
    with tempfile.TemporaryDirectory(prefix="provision-") as name:
        folder = Path(name)
        urls = {
            source.name: remove_credentials(index_url(source, environment))
            for source in sources.named
        }
        (folder / "pyproject.toml").write_text(
            _pyproject(project, requires_python, urls), encoding="utf-8"
        )
        if project.preferences:
            (folder / "uv.lock").write_text(
                _preferences_lock(project, requires_python, urls), encoding="utf-8"
            )
        variables = build_index_variables(
            sources.default.url,
            link_wheels(sources, folder),
            ((source.name, source.url) for source in sources.named),
        )
        yield ScratchProject(folder, project, sources, interpreter, {**environment, **variables})


def _exclude_newer_options(project: UvProject) -> list[str]:
    day = project.exclude_newer
    if not day:
        return []
    if len(day) == 10:  # uv takes a bare day in the time zone of this machine
        day = f"{date.fromisoformat(day) + timedelta(days=1)}T00:00:00Z"
    options = ["--exclude-newer", day]
    for name in project.undated:
        options += ["--exclude-newer-package", f"{name}=false"]
    return options


def _preferences_lock(project: UvProject, requires_python: str, urls: Mapping[str, str]) -> str:
    """Return a uv.lock with names and versions only: uv keeps these while they fit."""
    lines = ["version = 1", f"requires-python = {json.dumps(requires_python)}"]
    for preference in project.preferences:
        registry = json.dumps(urls.get(preference.index, "default"))
        lines += [
            "",
            "[[package]]",
            f"name = {json.dumps(preference.name)}",
            f"version = {json.dumps(preference.version)}",
            f"source = {{ registry = {registry} }}",
        ]
        if preference.markers:
            lines.append(f"resolution-markers = {json.dumps(list(preference.markers))}")
    return "\n".join(lines) + "\n"


def _with_python_markers(project: UvProject) -> UvProject:
    """Return the project with its Python version in markers, for another interpreter."""
    major, _, minor = project.python.partition(".")
    next_minor = f"{major}.{int(minor) + 1}"
    version = f"python_full_version >= '{project.python}' and python_full_version < '{next_minor}'"
    environments = tuple(f"{version} and {marker}" for marker in project.environments)
    return project._replace(environments=environments)


def _pyproject(project: UvProject, requires_python: str, urls: Mapping[str, str]) -> str:
    """Return the text of pyproject.toml. JSON strings and arrays of them are valid TOML."""
    lines = project_lines(requires_python, project.requirements)
    if project.variants:
        lines.append("[project.optional-dependencies]")
        for name, requirements in project.variants:
            lines.append(f"{json.dumps(name)} = {json.dumps(list(requirements))}")
    lines += index_lines((index.name, urls[index.name]) for index in project.indexes)
    lines += ["[tool.uv]", f"constraint-dependencies = {json.dumps(list(project.constraints))}"]
    if project.environments:
        markers = json.dumps(list(project.environments))
        lines += [f"environments = {markers}", f"required-environments = {markers}"]
    if project.variants:
        extras = ", ".join(f"{{ extra = {json.dumps(name)} }}" for name, _ in project.variants)
        lines.append(f"conflicts = [[{extras}]]")
    lines.append("[tool.uv.sources]")
    sources: dict[str, list[str]] = {}
    for binding in project.bindings:
        sources.setdefault(binding.package, []).append(_source_table(binding))
    lines += [f"{json.dumps(name)} = [{', '.join(tables)}]" for name, tables in sources.items()]
    return "\n".join(lines) + "\n"


def _source_table(binding: IndexBinding) -> str:
    fields = {"index": binding.index_name, "marker": binding.marker, "extra": binding.variant}
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in fields.items() if value)
    return f"{{ {table} }}"
