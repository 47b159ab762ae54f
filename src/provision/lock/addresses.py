"""Where locked files can be fetched from: uv is asked, every sha256 is compared, and the answer is the same on any machine."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urldefrag, urlsplit

from packaging.utils import canonicalize_name

from provision.effects import Binding, Index, IndexSource, Project, Sources, Tell, World
from provision.errors import LockError, NetworkError, Refused
from provision.facts import Facts
from provision.lock.model import File, Package
from provision.lock.portion import Portion
from provision.safe import redact

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
    found = dict(_found(tomllib.loads(resolution.pylocks[""])["packages"]))
    wanted = [(held.package, file) for held in portion.held for file in held.package.files]
    _refuse_lost(wanted, found, resolution.sources, portion)
    public = {
        (package.name, file.name): _public(package, file, found[package.name, package.version, file.name].url, portion, resolution.sources, facts)
        for package, file in wanted
    }
    _refuse_private(wanted, public, resolution.sources, portion)
    return {key: url for key, url in public.items() if url}


def _project(portion: Portion) -> Project:
    """Return what uv is asked: exactly what is held, each package from its index."""
    requirements = tuple(f"{h.package.name}=={h.package.version}{f' ; {h.marker}' if h.marker else ''}" for h in portion.held)
    bound: dict[tuple[str, str], list[Package]] = {}
    for held in portion.held:
        if held.package.index != "pypi":
            bound.setdefault((held.package.name, held.package.index), []).append(held.package)
    return Project(
        python=portion.python,
        requires_python=f"=={portion.python}.*",
        requirements=requirements,
        indexes=tuple(_index(name, url, portion) for name, url in portion.indexes.items() if name != "pypi"),
        bindings=tuple(Binding(name, index, portion.marker_of(*packages)) for (name, index), packages in bound.items()),
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
            yield (canonicalize_name(row["name"]), str(row.get("version", "")), name), _Found(url, str(file.get("hashes", {}).get("sha256", "")))


def _public(package: Package, file: File, url: str, portion: Portion, sources: Sources, facts: Facts) -> str | None:
    """Return the address of a file that holds on every machine, or None when only this machine's is known."""
    address, index = urlsplit(urldefrag(url).url), portion.indexes[package.index]
    flavour = package.version.partition("+")[2]
    if urlsplit(index).hostname in facts.torch_hosts and flavour and index.rstrip("/").endswith(f"/{flavour}"):
        return f"{index.rstrip('/')}/{quote(file.name)}"  # PyTorch serves each build below the index of its flavour, from more than one host
    if address.query:
        return None  # signed for this machine, for a while
    given = address._replace(path=address.path.replace("+", "%2B")).geturl()  # some hosts read a bare + as a space
    if package.index == "pypi":
        return given if not sources.default.url and address.scheme == "https" else None
    source = _source(package.index, sources)
    return given if not source.wheels and source.url == index and _lies_there(address, index) else None


def _source(name: str, sources: Sources) -> IndexSource:
    return next((source for source in sources.named if source.name == name), sources.default)


def _lies_there(address: SplitResult, index: str) -> bool:
    """Tell a file that an index gave from one in another folder of this machine; an index on the web may keep its files on any host."""
    return address.scheme in ("http", "https") or unquote(address.path).startswith(unquote(urlsplit(index).path).rstrip("/") + "/")


def _refuse_lost(wanted: list[tuple[Package, File]], found: Mapping[tuple[str, str, str], _Found], sources: Sources, portion: Portion) -> None:
    gone, other = [], []
    for package, file in wanted:
        there, where = found.get((package.name, package.version, file.name)), _where(package.index, sources, portion)
        if there is None:
            gone.append(f"{file.name} is not on {where}")
        elif there.sha256 != file.sha256:
            has = f"has sha256 {there.sha256}" if there.sha256 else "has no sha256 there"
            other.append(f"{file.name} on {where} {has}, locked is {file.sha256}")
    if other:
        raise LockError("a file on an index is not the one that was locked", why=_listed([*other, *gone]), hint=_again("if the change is meant, "))
    if gone:
        raise LockError("an index no longer has all that is locked", why=_listed(gone), hint=_again())


def _refuse_private(wanted: list[tuple[Package, File]], public: Mapping[tuple[str, str], str | None], sources: Sources, portion: Portion) -> None:
    hidden = [(package, file) for package, file in wanted if public[package.name, file.name] is None]
    if not hidden:
        return
    name = hidden[0][0].index
    url, variable = portion.indexes[name], "PROVISION_INDEX_" + name.upper().replace("-", "_")
    itself = f"{variable}={url}" if url else f"leave out {variable} and pip's index-url"
    raise Refused(
        "no public address is known for some of the locked files",
        why=f"{_where(name, sources, portion)}: what this machine knows of these means nothing elsewhere\n{_listed([file.name for _, file in hidden])}",
        hint=f"ask the index itself: {itself}, and no folder of wheels in pip's find-links\n{_OTHERWISE}",
    )


def _where(name: str, sources: Sources, portion: Portion) -> str:
    """Return what a person calls an index, with what stands in for it on this machine."""
    source = _source(name, sources)
    if source.wheels:
        return f"index {name} (here: local wheels)"
    return f"index {name}" + (f" (here: {redact(source.url)})" if source.url not in ("", portion.indexes[name]) else "")


def _listed(lines: list[str]) -> str:
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join([*lines[:_SHOWN], *more])


def _again(before: str = "") -> str:
    return f"{before}lock again with `provision lock --upgrade`\n{_OTHERWISE}"
