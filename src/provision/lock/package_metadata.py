"""The static metadata of a package: pyproject.toml or a wheel's METADATA, read without its code."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from provision.errors import LockError
from provision.lock.model import digest_of

_DECIDING = ("version", "dependencies", "optional-dependencies", "requires-python")
_DEFAULT_BUILD = ("setuptools>=40.8.0",)
"""For a pyproject.toml without requires (PEP 518)."""


@dataclass(frozen=True, slots=True)
class PackageMetadata:
    """Name, version and requirements; `build_requires` are what its build backend needs."""

    name: str
    version: str
    requires_python: str
    requires: tuple[str, ...]
    extras: tuple[str, ...]
    build_requires: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The digest over all of it."""
        return digest_of(
            [
                self.name,
                self.version,
                self.requires_python,
                sorted(self.requires),
                sorted(self.extras),
                sorted(self.build_requires),
            ]
        )

    @property
    def text(self) -> str:
        """The METADATA of a wheel."""
        lines = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        if self.requires_python:
            lines.append(f"Requires-Python: {self.requires_python}")
        lines += [f"Provides-Extra: {extra}" for extra in self.extras]
        lines += [f"Requires-Dist: {line}" for line in self.requires]
        return "\n".join([*lines, ""])


class DynamicMetadataError(LockError):
    """The metadata is only known after the package's own code has run."""


def find_build_requires(text: str) -> tuple[str, ...]:
    """Return what a pyproject.toml requires for the build."""
    system = _parse_toml(text, "pyproject.toml").get("build-system", {})
    requires = system.get("requires", _DEFAULT_BUILD) if isinstance(system, Mapping) else ()
    return tuple(map(str, requires))


def parse_project_name(text: str) -> str:
    """Return the name in a pyproject.toml, "" if it has none. Raises LockError."""
    project = _parse_toml(text, "pyproject.toml").get("project")
    name = project.get("name") if isinstance(project, Mapping) else None
    return name if isinstance(name, str) else ""


def parse_pyproject(text: str, where: str) -> PackageMetadata:
    """Return the metadata in a pyproject.toml.

    Raises:
        DynamicMetadataError: it has no [project], or a field that decides is dynamic.
        LockError: it is not valid.
    """
    document = _parse_toml(text, where)
    project = document.get("project")
    if not isinstance(project, Mapping):
        raise _dynamic_error(where, "it has no [project] table")
    dynamic = [name for name in _DECIDING if name in project.get("dynamic", ())]
    if dynamic:
        raise _dynamic_error(where, f"dynamic fields: {', '.join(dynamic)}")
    try:
        optional = {
            canonicalize_name(extra): lines
            for extra, lines in project.get("optional-dependencies", {}).items()
        }
        requires = [str(Requirement(line)) for line in project.get("dependencies", ())]
        for extra, lines in sorted(optional.items()):
            requires += [_of_extra(Requirement(line), extra) for line in lines]
        return PackageMetadata(
            canonicalize_name(project["name"]),
            str(Version(project["version"])),
            str(SpecifierSet(project.get("requires-python", ""))),
            tuple(requires),
            tuple(sorted(optional)),
            find_build_requires(text),
        )
    except KeyError as error:
        raise LockError(f"{where} cannot be read", why=f"[project] has no {error}") from None
    except (
        InvalidRequirement,
        InvalidSpecifier,
        InvalidVersion,
        AttributeError,
        TypeError,
    ) as error:
        raise LockError(f"{where} cannot be read", why=str(error)) from None


def find_other_sources(text: str) -> frozenset[str]:
    """Return the requirements that uv would take from elsewhere, by [tool.uv.sources]."""
    tool = _parse_toml(text, "pyproject.toml").get("tool", {})
    uv = tool.get("uv", {}) if isinstance(tool, Mapping) else {}
    sources = uv.get("sources", {}) if isinstance(uv, Mapping) else {}
    return (
        frozenset(map(canonicalize_name, sources)) if isinstance(sources, Mapping) else frozenset()
    )


def parse_wheel_metadata(text: str, where: str) -> PackageMetadata:
    """Return the metadata in a wheel's METADATA; raise LockError if it is not valid."""
    fields, _ = parse_email(text)
    try:
        return PackageMetadata(
            canonicalize_name(fields.get("name", "")),
            str(Version(fields.get("version", ""))),
            str(SpecifierSet(fields.get("requires_python", ""))),
            tuple(str(Requirement(line)) for line in fields.get("requires_dist", ())),
            tuple(sorted(map(canonicalize_name, fields.get("provides_extra", ())))),
        )
    except (InvalidRequirement, InvalidSpecifier, InvalidVersion) as error:
        raise LockError(
            f"{where} cannot be read", why=f"error in its METADATA file: {error}"
        ) from None


def check_metadata(
    metadata: PackageMetadata, where: str, name: str, python: str, listed: frozenset[str]
) -> None:
    """Raise LockError for another name or Python, and for requirements at a URL.

    Args:
        metadata: The metadata.
        where: The file that it is from.
        name: The name in the spec.
        python: The spec's Python, as in 3.12.
        listed: The packages that the spec lists, which decides their source.
    """
    if metadata.name != name:
        raise LockError(
            f"the package in {where} is {metadata.name or 'without a name'}, not {name}",
            hint=f"use the name {metadata.name} in `packages`",
        )
    allowed = SpecifierSet(metadata.requires_python)
    if not any(allowed.contains(f"{python}.{patch}") for patch in (0, 99)):
        raise LockError(
            f"{name} requires Python {metadata.requires_python}, but the spec has {python}",
            why=f"this is the `requires-python` value in {where}",
            hint="change `python` in the spec, or `requires-python` in the package",
        )
    for requirement in map(Requirement, metadata.requires):
        if requirement.url and canonicalize_name(requirement.name) not in listed:
            raise LockError(
                f"{name} requires {requirement.name} from a URL",
                why=f"{where} has {requirement.name} @ ...",
                hint=f"also list {requirement.name} with its `path` or `git` under `packages`",
            )


def without_urls(metadata: PackageMetadata) -> Iterator[str]:
    """Yield the requirements; those at a URL by name, since the spec lists them."""
    for requirement in map(Requirement, metadata.requires):
        requirement.url = None
        yield str(requirement)


def _of_extra(requirement: Requirement, extra: str) -> str:
    own = str(requirement.marker or "")
    requirement.marker = None
    marker = f"({own}) and extra == '{extra}'" if own else f"extra == '{extra}'"
    return f"{requirement} ; {marker}"


def _parse_toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LockError(f"{where} is not valid TOML", why=str(error)) from None


def _dynamic_error(where: str, why: str) -> DynamicMetadataError:
    return DynamicMetadataError(
        f"the requirements of {where} cannot be determined without running its code",
        why=why,
        hint="declare them statically in [project] of pyproject.toml, or set `build: true` on "
        "the package, so that locking runs its build backend",
    )
