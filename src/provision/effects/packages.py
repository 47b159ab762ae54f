"""Requests to uv and to package indexes, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit


class PythonInstallation(NamedTuple):
    """A CPython on this machine: full version such as "3.11.7" and absolute path.

    `is_found_by_uv` is False if uv finds it only by this path.
    """

    version: str
    path: Path
    is_found_by_uv: bool = True

    @property
    def minor(self) -> str:
        """The major and minor version, such as "3.11"."""
        return ".".join(self.version.split(".")[:2])


class PythonSearchResult(NamedTuple):
    """The interpreters for a version: the selected one, all installed, and uv's download."""

    requested: str
    selected: PythonInstallation | None
    installed: tuple[PythonInstallation, ...]
    is_downloadable: bool
    why_not: str = ""


class NamedIndex(NamedTuple):
    """A named index that packages are bound to, at its public address.

    `flavour` is the local version label of its wheels ("cpu", "cu128"), None for another kind of
    index. A local folder replaces such an index if it has a wheel of this flavour for each of
    `packages` (requirements) on each of `platforms`.
    """

    name: str
    url: str
    flavour: str | None = None
    packages: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)  # a named tuple has a method called index
class VersionPreference:
    """A version to keep while it fits: package, exact version and index name.

    `markers` are the environments (PEP 508) that it is for; () means all.
    """

    name: str
    version: str
    index: str
    markers: tuple[str, ...] = ()


class IndexBinding(NamedTuple):
    """A package that comes from a named index only.

    It applies if `marker` is true ("": always), in one variant of the project ("": in all).
    """

    package: str
    index_name: str
    marker: str = ""
    variant: str = ""


class UvProject(NamedTuple):
    """A project for uv to resolve or install.

    `environments` are PEP 508 markers, one for each platform; `preferences` are versions to keep
    while they fit, `constraints` versions that nothing may leave. `variants` (name, requirements)
    exclude each other, such as builds of torch; with variants, `requirements` is empty. `undated`
    are packages whose index has no upload dates, so that `exclude_newer` cannot apply to them.
    """

    python: str
    requirements: tuple[str, ...]
    indexes: tuple[NamedIndex, ...] = ()
    bindings: tuple[IndexBinding, ...] = ()
    environments: tuple[str, ...] = ()
    exclude_newer: str | None = None
    preferences: tuple[VersionPreference, ...] = ()
    constraints: tuple[str, ...] = ()
    variants: tuple[tuple[str, tuple[str, ...]], ...] = ()
    undated: tuple[str, ...] = ()


class IndexSource(NamedTuple):
    """The place of an index on this machine.

    The address is "" for uv's own default; `wheels` are local wheels that replace the index.
    """

    name: str
    url: str
    wheels: tuple[Path, ...] = ()

    @property
    def is_local(self) -> bool:
        """True if its files are on this machine, so that no index has confirmed them."""
        parts = urlsplit(self.url)
        return (
            bool(self.wheels)
            or parts.scheme == "file"
            or parts.hostname in ("localhost", "::1")
            or (parts.hostname or "").startswith("127.")
        )


class PackageSources(NamedTuple):
    """The package sources of this machine: default index, named indexes, further wheels.

    `notes` are for people.
    """

    default: IndexSource
    named: tuple[IndexSource, ...] = ()
    wheels: tuple[Path, ...] = ()
    find_links: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class IndexAddresses(NamedTuple):
    """The addresses of indexes by name for an installer, and further places of wheels."""

    indexes: Mapping[str, str]
    find_links: tuple[str, ...] = ()


class Resolution(NamedTuple):
    """The result of uv: its lock (TOML) with the dependency graph, and PEP 751 locks.

    `pylocks` has one lock for every variant, "" without variants.
    """

    graph: str
    pylocks: Mapping[str, str]
    sources: PackageSources


class SourceDistribution(NamedTuple):
    """A source distribution on an index: file name, address, sha256 (hexadecimal)."""

    name: str
    url: str
    sha256: str


class Release(NamedTuple):
    """A release of a package on an index: its wheel names and its source distribution, if any."""

    package: str
    version: str
    wheels: tuple[str, ...]
    source: SourceDistribution | None


class ListedFile(NamedTuple):
    """A file that an index lists: name and sha256 (hexadecimal, "" if the index has none).

    `yanked` is the reason, None for a file that is not yanked; `url` is its address, "" for a local
    wheel.
    """

    name: str
    sha256: str
    yanked: str | None = None
    url: str = ""


def pylock_file_name(file: Mapping[str, Any]) -> str:
    """Return the name of a file in a PEP 751 lock, which may have just its address or path."""
    address = file.get("url", file.get("path", ""))
    return str(file.get("name") or unquote(urlsplit(address).path).rpartition("/")[2])
