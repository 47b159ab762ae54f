"""Public addresses of locked files: the same on any machine, with every sha256 compared."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urldefrag, urlsplit

from packaging.utils import canonicalize_name

from provision.effects.packages import IndexBinding, IndexSource, PackageSources, UvProject
from provision.effects.system import ProgressCallback, System
from provision.errors import LockError, NetworkError, Refused
from provision.facts import Facts
from provision.lock.model import LockedFile, LockedPackage
from provision.lock.target_view import TargetView, to_index
from provision.sanitize import redact

_OTHER_FORMATS_HINT = "the formats `requirements`, `cyclonedx` and `pyproject` need no URLs"
_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _IndexedFile:
    """A file on an index of this machine."""

    url: str
    sha256: str


def resolve_file_urls(
    view: TargetView, facts: Facts, system: System, progress: ProgressCallback
) -> Mapping[tuple[str, str], str]:
    """Return the public address of every file of a target, by (package name, file name).

    Raises:
        LockError: an index no longer has a file, or has another one under its name.
        NetworkError: an index cannot be reached.
        Refused: the only known address means nothing on another machine.
    """
    project = _locked_project(view)
    try:
        resolution = system.resolve(project, progress)
    except NetworkError as error:
        raise NetworkError(
            error.what, why=error.why, hint=f"{error.hint}\n{_OTHER_FORMATS_HINT}"
        ) from error
    except LockError as error:
        raise LockError(
            "some of the locked files are no longer on their index",
            why=error.why,
            hint=_relock_hint(),
        ) from error
    indexed = dict(_indexed_files(tomllib.loads(resolution.pylocks[""])["packages"]))
    locked = [(viewed.package, file) for viewed in view.packages for file in viewed.package.files]
    _refuse_missing(locked, indexed, resolution.sources, view)
    public = {
        (package.name, file.name): _public_url(
            package,
            file,
            indexed[package.name, package.version, file.name].url,
            view,
            resolution.sources,
            facts,
        )
        for package, file in locked
    }
    _refuse_local_only(locked, public, resolution.sources, view)
    return {key: url for key, url in public.items() if url}


def _locked_project(view: TargetView) -> UvProject:
    """Return the project with exactly the locked versions, each package from its index."""
    requirements = tuple(
        f"{h.package.name}=={h.package.version}{f' ; {h.marker}' if h.marker else ''}"
        for h in view.packages
    )
    packages = [viewed.package for viewed in view.packages]
    bound: dict[tuple[str, str], list[LockedPackage]] = {}
    for viewed in view.packages:
        if viewed.package.index != "pypi":
            bound.setdefault((viewed.package.name, viewed.package.index), []).append(viewed.package)
    return UvProject(
        python=view.python,
        requirements=requirements,
        indexes=tuple(
            to_index(name, url, packages, view.environments)
            for name, url in view.indexes.items()
            if name != "pypi"
        ),
        bindings=tuple(
            IndexBinding(name, index, view.marker_of(*packages))
            for (name, index), packages in bound.items()
        ),
        environments=view.markers,
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
    view: TargetView,
    sources: PackageSources,
    facts: Facts,
) -> str | None:
    """Return the address of a file for every machine, None if only this machine's is known."""
    address, index = urlsplit(urldefrag(url).url), view.indexes[package.index]
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
    # Some hosts read a bare + as a space.
    quoted = address._replace(path=address.path.replace("+", "%2B")).geturl()
    if package.index == "pypi":
        return quoted if not sources.default.url and address.scheme == "https" else None
    source = _find_source(package.index, sources)
    if source.wheels or source.url != index or not _is_served_by(address, index):
        return None
    return quoted


def _find_source(name: str, sources: PackageSources) -> IndexSource:
    return next((source for source in sources.named if source.name == name), sources.default)


def _is_served_by(address: SplitResult, index: str) -> bool:
    """Return whether a file belongs to an index, not to another folder of this machine.

    An index on the web may keep its files on any host.
    """
    if address.scheme in ("http", "https"):
        return True
    folder = unquote(urlsplit(index).path).rstrip("/")
    return unquote(address.path).startswith(f"{folder}/")


def _refuse_missing(
    locked: list[tuple[LockedPackage, LockedFile]],
    indexed: Mapping[tuple[str, str, str], _IndexedFile],
    sources: PackageSources,
    view: TargetView,
) -> None:
    gone, other = [], []
    for package, file in locked:
        entry = indexed.get((package.name, package.version, file.name))
        index = _describe_index(package.index, sources, view)
        if entry is None:
            gone.append(f"{file.name} is not on {index}")
        elif entry.sha256 != file.sha256:
            actual = f"has sha256 {entry.sha256}" if entry.sha256 else "has no sha256"
            other.append(f"{file.name} on {index} {actual}, but the lock has {file.sha256}")
    if other:
        raise LockError(
            "a file on an index differs from the locked file",
            why=_format_lines([*other, *gone]),
            hint=_relock_hint("if the change is intended, "),
        )
    if gone:
        raise LockError(
            "some of the locked files are no longer on their index",
            why=_format_lines(gone),
            hint=_relock_hint(),
        )


def _refuse_local_only(
    locked: list[tuple[LockedPackage, LockedFile]],
    public: Mapping[tuple[str, str], str | None],
    sources: PackageSources,
    view: TargetView,
) -> None:
    hidden = [
        (package, file) for package, file in locked if public[package.name, file.name] is None
    ]
    if not hidden:
        return
    name = hidden[0][0].index
    url, variable = view.indexes[name], "PROVISION_INDEX_" + name.upper().replace("-", "_")
    itself = f"set {variable}={url}" if url else f"unset {variable} and pip's index-url"
    raise Refused(
        "some locked files have no known public URL",
        why=f"their URLs on {_describe_index(name, sources, view)} are valid only on this "
        f"machine:\n{_format_lines([file.name for _, file in hidden])}",
        hint=f"lock again from the public index ({itself}), and remove local wheel folders "
        f"from pip's find-links\n{_OTHER_FORMATS_HINT}",
    )


def _describe_index(name: str, sources: PackageSources, view: TargetView) -> str:
    """Return the name of an index for people, with its substitute on this machine."""
    source = _find_source(name, sources)
    if source.wheels:
        return f"index {name} (on this machine: local wheels)"
    if source.url in ("", view.indexes[name]):
        return f"index {name}"
    return f"index {name} (on this machine: {redact(source.url)})"


def _format_lines(lines: list[str]) -> str:
    more = [f"and {len(lines) - _MAX_SHOWN} more"] if len(lines) > _MAX_SHOWN else []
    return "\n".join([*lines[:_MAX_SHOWN], *more])


def _relock_hint(before: str = "") -> str:
    return f"{before}lock again with `provision lock --upgrade`\n{_OTHER_FORMATS_HINT}"
