"""What is asked of uv and of indexes, and what they answer: interpreters, projects, pins, releases."""  # noqa: E501

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit


class PythonInstallation(NamedTuple):
    """A CPython found on this machine: full version such as "3.11.7" and absolute path."""

    version: str
    path: Path

    @property
    def minor(self) -> str:
        """Major and minor version, such as "3.11"."""
        return ".".join(self.version.split(".")[:2])


class PythonSearchResult(NamedTuple):
    """What was found for one Python version: the one to use, all that exist, and whether uv could
    fetch it, or why not.
    """

    requested: str
    selected: PythonInstallation | None
    installed: tuple[PythonInstallation, ...]
    is_downloadable: bool
    why_not: str = ""


class Index(NamedTuple):
    """A named index that a project binds packages to, at its canonical address.

    `flavour` is the local version label of its wheels ("cpu", "cu128"), None for an index of
    another kind. A local folder may stand in for such an index
    when it holds a wheel that fits every one of `packages` (requirements) in that flavour for
    every one of `platforms`.
    """

    name: str
    url: str
    flavour: str | None = None
    packages: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)  # a named tuple has a method called index
class VersionPreference:
    """A version to keep: canonical name, exact version, index name, and the environments (PEP 508
    markers) that it is for; none means all.
    """

    name: str
    version: str
    index: str
    markers: tuple[str, ...] = ()


class IndexBinding(NamedTuple):
    """A package that comes from a named index only, where the marker holds ("": everywhere) and in
    one variant of the project ("": in all).
    """

    package: str
    index_name: str
    marker: str = ""
    variant: str = ""


class UvProject(NamedTuple):
    """What uv is asked to resolve or install: requirements, the indexes they are bound to, and the
    environments that count.

    `environments` are PEP 508 markers, one a platform; `preferences` are versions to keep where
    they still fit, `constraints` versions that nothing may
    leave. `variants` (name to requirements) exclude each other, such as builds of torch; where
    there are some, `requirements` is empty.
    `undated` are packages whose index tells no day of upload, so that `exclude_newer` cannot
    hold for them.
    """

    python: str
    requires_python: str
    requirements: tuple[str, ...]
    indexes: tuple[Index, ...] = ()
    bindings: tuple[IndexBinding, ...] = ()
    environments: tuple[str, ...] = ()
    exclude_newer: str | None = None
    preferences: tuple[VersionPreference, ...] = ()
    constraints: tuple[str, ...] = ()
    variants: tuple[tuple[str, tuple[str, ...]], ...] = ()
    undated: tuple[str, ...] = ()


class IndexSource(NamedTuple):
    """Where an index is on this machine: its address ("" for uv's own default), and the wheels that
    stand in for it, if any do.
    """

    name: str
    url: str
    wheels: tuple[Path, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether what it serves lies on this machine, so that no index has confirmed it."""
        parts = urlsplit(self.url)
        return (
            bool(self.wheels)
            or parts.scheme == "file"
            or parts.hostname in ("localhost", "::1")
            or (parts.hostname or "").startswith("127.")
        )


class PackageSources(NamedTuple):
    """Where packages come from on this machine: the default index, the named ones, further wheels,
    and what a person should know about that.
    """

    default: IndexSource
    named: tuple[IndexSource, ...] = ()
    wheels: tuple[Path, ...] = ()
    find_links: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class IndexAddresses(NamedTuple):
    """Where an installer on this machine finds indexes, by name, and further places of wheels."""

    indexes: Mapping[str, str]
    find_links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)  # a named tuple has a method called index
class Pin:
    """One locked package as an installer needs it: canonical name, exact version, the index it is
    bound to (None: the default one), sha256 of every file.

    `build`: one of these files is a source distribution, and may be built.
    """

    name: str
    version: str
    index: str | None
    hashes: tuple[str, ...]
    from_source: bool = False
    """Whether its files are source, so that it is built as it is installed."""


class Resolution(NamedTuple):
    """What uv answered: its lock (TOML) with the dependency graph, and for every variant ("" where
    there is one) the PEP 751 export with files and hashes.
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
    """One release of a package as an index lists it: the names of its wheels, and its source
    distribution if it has one.
    """

    package: str
    version: str
    wheels: tuple[str, ...]
    source: SourceDistribution | None


class ListedFile(NamedTuple):
    """A file of a package as an index lists it: sha256 (hexadecimal, "" when the index has none),
    and why it was yanked (None: it was not).
    """

    name: str
    sha256: str
    yanked: str | None = None
