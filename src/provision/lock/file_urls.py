"""Where locked files can be fetched from: uv is asked, every sha256 is compared, and the answer is
the same on any machine.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urldefrag, urlsplit

from packaging.utils import canonicalize_name

from provision.effects.packages import Index, IndexBinding, IndexSource, PackageSources, UvProject
from provision.effects.system import ProgressCallback, System
from provision.errors import LockError, NetworkError, Refused
from provision.facts import Facts
from provision.lock.model import LockedFile, LockedPackage
from provision.lock.target_view import TargetView
from provision.sanitize import redact

_OTHER_FORMATS_HINT = "the formats requirements, cyclonedx and pyproject need no addresses"
_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _IndexedFile:
    """A file as uv found it on an index of this machine."""

    url: str
    sha256: str


def resolve_file_urls(
    portion: TargetView, facts: Facts, world: System, tell: ProgressCallback
) -> Mapping[tuple[str, str], str]:
    """Return the public address of every file of a portion, by (package name, file name).

    Raises LockError when an index no longer has a file, or has another one under its name,
    NetworkError when an index cannot be reached, and Refused when
    this machine knows a file only at an address that means nothing elsewhere.
    """
    project = _project(portion)
    try:
        resolution = world.resolve(project, tell)
    except NetworkError as error:
        raise NetworkError(
            error.what, why=error.why, hint=f"{error.hint}\n{_OTHER_FORMATS_HINT}"
        ) from error
    except LockError as error:
        raise LockError(
            "an index no longer has all that is locked", why=error.why, hint=_relock_hint()
        ) from error
    found = dict(_indexed_files(tomllib.loads(resolution.pylocks[""])["packages"]))
    wanted = [(held.package, file) for held in portion.packages for file in held.package.files]
    _refuse_missing(wanted, found, resolution.sources, portion)
    public = {
        (package.name, file.name): _public_url(
            package,
            file,
            found[package.name, package.version, file.name].url,
            portion,
            resolution.sources,
            facts,
        )
        for package, file in wanted
    }
    _refuse_local_only(wanted, public, resolution.sources, portion)
    return {key: url for key, url in public.items() if url}


def _project(portion: TargetView) -> UvProject:
    """Return what uv is asked: exactly what is held, each package from its index."""
    requirements = tuple(
        f"{h.package.name}=={h.package.version}{f' ; {h.marker}' if h.marker else ''}"
        for h in portion.packages
    )
    bound: dict[tuple[str, str], list[LockedPackage]] = {}
    for held in portion.packages:
        if held.package.index != "pypi":
            bound.setdefault((held.package.name, held.package.index), []).append(held.package)
    return UvProject(
        python=portion.python,
        requires_python=f"=={portion.python}.*",
        requirements=requirements,
        indexes=tuple(
            _index(name, url, portion) for name, url in portion.indexes.items() if name != "pypi"
        ),
        bindings=tuple(
            IndexBinding(name, index, portion.marker_of(*packages))
            for (name, index), packages in bound.items()
        ),
        environments=portion.markers,
    )


def _index(name: str, url: str, portion: TargetView) -> Index:
    of = [held.package for held in portion.packages if held.package.index == name]
    keys = {key for package in of for key in package.environments}
    on = [environment for environment in portion.environments if environment.key in keys]
    flavour = next((e.flavour for e in on if name == f"pytorch-{e.flavour}"), None)
    return Index(
        name,
        url,
        flavour,
        tuple(f"{package.name}=={package.version}" for package in of),
        tuple(environment.platform for environment in on),
    )


def _indexed_files(
    rows: list[dict[str, Any]],
) -> Iterator[tuple[tuple[str, str, str], _IndexedFile]]:
    for row in rows:
        for file in (*row.get("wheels", ()), *([row["sdist"]] if "sdist" in row else ())):
            url = str(file.get("url", file.get("path", "")))
            name = str(file.get("name") or unquote(urlsplit(url).path).rsplit("/", 1)[-1])
            yield (
                (canonicalize_name(row["name"]), str(row.get("version", "")), name),
                _IndexedFile(url, str(file.get("hashes", {}).get("sha256", ""))),
            )


def _public_url(
    package: LockedPackage,
    file: LockedFile,
    url: str,
    portion: TargetView,
    sources: PackageSources,
    facts: Facts,
) -> str | None:
    """Return the address of a file that holds on every machine, or None when only this machine's is
    known.
    """
    address, index = urlsplit(urldefrag(url).url), portion.indexes[package.index]
    flavour = package.version.partition("+")[2]
    if (
        urlsplit(index).hostname in facts.torch_hosts
        and flavour
        and index.rstrip("/").endswith(f"/{flavour}")
    ):
        # PyTorch serves each build below the index of its flavour, from more than one host
        return f"{index.rstrip('/')}/{quote(file.name)}"
    if address.query:
        return None  # signed for this machine, for a while
    given = address._replace(
        path=address.path.replace("+", "%2B")
    ).geturl()  # some hosts read a bare + as a space
    if package.index == "pypi":
        return given if not sources.default.url and address.scheme == "https" else None
    source = _source(package.index, sources)
    return (
        given
        if not source.wheels and source.url == index and _is_served_by(address, index)
        else None
    )


def _source(name: str, sources: PackageSources) -> IndexSource:
    return next((source for source in sources.named if source.name == name), sources.default)


def _is_served_by(address: SplitResult, index: str) -> bool:
    """Tell a file that an index gave from one in another folder of this machine; an index on the
    web may keep its files on any host.
    """
    return address.scheme in ("http", "https") or unquote(address.path).startswith(
        unquote(urlsplit(index).path).rstrip("/") + "/"
    )


def _refuse_missing(
    wanted: list[tuple[LockedPackage, LockedFile]],
    found: Mapping[tuple[str, str, str], _IndexedFile],
    sources: PackageSources,
    portion: TargetView,
) -> None:
    gone, other = [], []
    for package, file in wanted:
        there, where = (
            found.get((package.name, package.version, file.name)),
            _describe_index(package.index, sources, portion),
        )
        if there is None:
            gone.append(f"{file.name} is not on {where}")
        elif there.sha256 != file.sha256:
            has = f"has sha256 {there.sha256}" if there.sha256 else "has no sha256 there"
            other.append(f"{file.name} on {where} {has}, locked is {file.sha256}")
    if other:
        raise LockError(
            "a file on an index is not the one that was locked",
            why=_listed([*other, *gone]),
            hint=_relock_hint("if the change is meant, "),
        )
    if gone:
        raise LockError(
            "an index no longer has all that is locked", why=_listed(gone), hint=_relock_hint()
        )


def _refuse_local_only(
    wanted: list[tuple[LockedPackage, LockedFile]],
    public: Mapping[tuple[str, str], str | None],
    sources: PackageSources,
    portion: TargetView,
) -> None:
    hidden = [
        (package, file) for package, file in wanted if public[package.name, file.name] is None
    ]
    if not hidden:
        return
    name = hidden[0][0].index
    url, variable = portion.indexes[name], "PROVISION_INDEX_" + name.upper().replace("-", "_")
    itself = f"{variable}={url}" if url else f"leave out {variable} and pip's index-url"
    raise Refused(
        "no public address is known for some of the locked files",
        why=f"{_describe_index(name, sources, portion)}: what this machine knows of these "
        f"means nothing elsewhere\n{_listed([file.name for _, file in hidden])}",
        hint=f"ask the index itself: {itself}, and no folder of wheels in pip's "
        f"find-links\n{_OTHER_FORMATS_HINT}",
    )


def _describe_index(name: str, sources: PackageSources, portion: TargetView) -> str:
    """Return what a person calls an index, with what stands in for it on this machine."""
    source = _source(name, sources)
    if source.wheels:
        return f"index {name} (here: local wheels)"
    return f"index {name}" + (
        f" (here: {redact(source.url)})" if source.url not in ("", portion.indexes[name]) else ""
    )


def _listed(lines: list[str]) -> str:
    more = [f"and {len(lines) - _MAX_SHOWN} more"] if len(lines) > _MAX_SHOWN else []
    return "\n".join([*lines[:_MAX_SHOWN], *more])


def _relock_hint(before: str = "") -> str:
    return f"{before}lock again with `provision lock --upgrade`\n{_OTHER_FORMATS_HINT}"
