"""Where locked files can be fetched from: uv is asked, every sha256 is compared, and the answer is the same on any machine."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urlsplit

from packaging.utils import canonicalize_name

from provision.effects import Index, IndexSource, Project, Sources, Tell, World
from provision.errors import LockError, NetworkError, Refused
from provision.facts import Facts
from provision.lock.model import File, Package
from provision.lock.portion import Portion
from provision.safe import redact

_PYPI_FILES = "files.pythonhosted.org"
# PyPI stores a file by its BLAKE2b-256 digest, and mirrors of PyPI keep that part of the path.
_STORED = re.compile(r"/packages/(?P<stored>[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{60}/[^/]+)$")
_OTHERWISE = "the formats requirements, cyclonedx and pyproject need no addresses"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _Found:
    """A file as uv found it on an index of this machine."""

    url: str
    sha256: str


def addresses(portion: Portion, facts: Facts, world: World, tell: Tell) -> Mapping[tuple[str, str], str]:
    """Return the public address of every file of a portion, by (package name, file name).

    Raises LockError when an index no longer has a file, or has another one under its name, NetworkError when an index cannot be reached, and Refused when
    this machine knows a file only at an address that means nothing elsewhere.
    """
    project = _project(portion)
    try:
        resolution = world.resolve(project, tell)
    except NetworkError as error:
        raise NetworkError(error.what, why=error.why, hint=f"{error.hint}\n{_OTHERWISE}") from error
    except LockError as error:
        raise LockError("an index no longer has all that is locked", why=error.why, hint=_again()) from error
    found = dict(_found(tomllib.loads(resolution.pylock)["packages"]))
    wanted = [(held.package, file) for held in portion.held for file in held.package.files]
    _refuse_lost(wanted, found)
    public = {
        (package.name, file.name): _public(package, file, found[package.name, package.version, file.name].url, portion, resolution.sources, facts)
        for package, file in wanted
    }
    _refuse_private(wanted, public, resolution.sources, portion)
    return {key: url for key, url in public.items() if url}


def _project(portion: Portion) -> Project:
    """Return what uv is asked: exactly what is held, each package from its index."""
    requirements, bindings = [], []
    for held in portion.held:
        marker = f" ; {held.marker}" if held.marker else ""
        requirements.append(f"{held.package.name}=={held.package.version}{marker}")
        if held.package.index != "pypi":
            bindings.append((held.package.name, held.package.index, held.marker))
    return Project(
        python=portion.python,
        requires_python=f"=={portion.python}.*",
        requirements=tuple(requirements),
        indexes=tuple(_index(name, url, portion) for name, url in portion.indexes.items() if name != "pypi"),
        bindings=tuple(bindings),
        environments=portion.markers,
    )


def _index(name: str, url: str, portion: Portion) -> Index:
    of = [held.package for held in portion.held if held.package.index == name]
    keys = {key for package in of for key in package.environments}
    on = [environment for environment in portion.environments if environment.key in keys]
    flavour = next((e.flavour for e in on if name == f"pytorch-{e.flavour}"), None)
    return Index(name, url, flavour, tuple(f"{package.name}=={package.version}" for package in of), tuple(environment.platform for environment in on))


def _found(rows: list[dict[str, Any]]) -> Iterator[tuple[tuple[str, str, str], _Found]]:
    for row in rows:
        for file in (*row.get("wheels", ()), *([row["sdist"]] if "sdist" in row else ())):
            url = str(file.get("url", file.get("path", "")))
            name = str(file.get("name") or unquote(urlsplit(url).path).rsplit("/", 1)[-1])
            yield (canonicalize_name(row["name"]), str(row.get("version", "")), name), _Found(url, str(file["hashes"].get("sha256", "")))


def _public(package: Package, file: File, url: str, portion: Portion, sources: Sources, facts: Facts) -> str | None:
    """Return the address of a file that holds on every machine, or None when only this machine's is known."""
    url, index = urldefrag(url).url, portion.indexes[package.index]
    flavour = package.version.partition("+")[2]
    if urlsplit(index).hostname in facts.torch_hosts and flavour and index.rstrip("/").endswith(f"/{flavour}"):
        return f"{index.rstrip('/')}/{quote(file.name)}"  # PyTorch serves each build below the index of its flavour, from more than one host
    if package.index == "pypi":
        stored = _STORED.search(urlsplit(url).path)
        return url if urlsplit(url).hostname == _PYPI_FILES else f"https://{_PYPI_FILES}{stored.group()}" if stored else None
    source = _source(package.index, sources)
    return url if not source.wheels and source.url == index and not _aside(file, sources) else None


def _source(name: str, sources: Sources) -> IndexSource:
    return next((source for source in sources.named if source.name == name), sources.default)


def _aside(file: File, sources: Sources) -> bool:
    return any(wheel.name == file.name for wheel in sources.wheels)


def _refuse_lost(wanted: list[tuple[Package, File]], found: Mapping[tuple[str, str, str], _Found]) -> None:
    gone, other = [], []
    for package, file in wanted:
        there = found.get((package.name, package.version, file.name))
        if there is None:
            gone.append(f"{file.name} is not on index {package.index}")
        elif there.sha256 != file.sha256:
            other.append(f"{file.name} on index {package.index} has sha256 {there.sha256 or 'unstated'}, locked is {file.sha256}")
    if other:
        raise LockError("a file on an index is not the one that was locked", why=_listed([*other, *gone]), hint=_again("if the change is meant, "))
    if gone:
        raise LockError("an index no longer has all that is locked", why=_listed(gone), hint=_again())


def _refuse_private(wanted: list[tuple[Package, File]], public: Mapping[tuple[str, str], str | None], sources: Sources, portion: Portion) -> None:
    hidden = [(package, file) for package, file in wanted if public[package.name, file.name] is None]
    if not hidden:
        return
    first, _ = hidden[0]
    source = _source(first.index, sources)
    here = "wheels of this machine" if source.wheels or any(_aside(file, sources) for _, file in hidden) else redact(source.url) or "another source"
    variable = "PROVISION_INDEX_" + first.index.upper().replace("-", "_")
    raise Refused(
        "no public address is known for some of the locked files",
        why=f"{here} stood in for index {first.index} ({portion.indexes[first.index]}) here:\n{_listed([file.name for _, file in hidden])}",
        hint=f"ask the index itself: {variable}={portion.indexes[first.index]}, and no folder of wheels in pip's find-links\n{_OTHERWISE}",
    )


def _listed(lines: list[str]) -> str:
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join([*lines[:_SHOWN], *more])


def _again(before: str = "") -> str:
    return f"{before}lock again with `provision lock --upgrade`\n{_OTHERWISE}"
