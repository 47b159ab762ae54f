"""Packages from paths and repositories in requirements, as the fields that a spec has for them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urldefrag, urlencode

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from pydantic_core import PydanticCustomError

from provision.diagnostics import Span
from provision.errors import LockError
from provision.imports.content import Content
from provision.imports.quoting import quote_text
from provision.lock.package_metadata import parse_project_name
from provision.package_origins import check_git_url, check_path, parse_url

_EXTRAS = re.compile(r"(?P<path>[^\[]*)\[(?P<extras>[^\[\]]*)\]")
SCHEME = re.compile(r"(?:[a-z]+\+)?[a-z]{2,}:/{1,3}", re.IGNORECASE)
_VERSION_TAG = re.compile(r"@v?(\d+(?:\.\d+)+)(?=#|$)")
"""The tag of a release at the end of the address of a repository."""
_VCS = re.compile(r"(?:git|hg|svn|bzr)\+", re.IGNORECASE)
_SOURCE_ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_EGG = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[(?P<extras>[^\]]*)\])?")


class SourceLocation(NamedTuple):
    """What a line names: an address or a path, and the requirement before the @, if any."""

    address: str
    requirement: Requirement | None = None
    is_editable: bool = False


class SourcePackage(NamedTuple):
    """A package with its requirement, without a version, and its fields in a spec."""

    name: str
    requirement: str
    fields: dict[str, Any]


def find_source(content: Content, location: SourceLocation) -> SourcePackage | None:
    """Return the package at a location; None if a spec cannot name it, or its name is unknown."""
    if location.address.startswith("git+"):
        return _find_repository(location)
    return _find_path(content, location)


def leave_location(content: Content, url: str, name: str, version: str, span: Span) -> None:
    """Add a location that a spec cannot name as a leftover."""
    subject = name or f"`{quote_text(url)}`"
    if _VCS.match(url) or url.startswith("git@"):
        origin = "a repository"
    elif SCHEME.match(url) and not url.startswith("file:"):
        origin = "a URL"
    else:
        origin = "a path on this machine"
    if not version and (tag := _VERSION_TAG.search(url)):
        version = tag[1]
    known = f"{name or 'NAME'}=={version.partition('+')[0] or 'VERSION'}"
    why = "a spec takes packages from an index, from git and from paths in its project"
    if not name and url.startswith("git+"):
        why = "the line does not name the package"
    elif url.startswith("git+"):
        why = _explain_repository(url)
    elif not name and not SCHEME.match(url) and content.is_near(url.partition("[")[0]):
        why = "no pyproject.toml there has the name of the package"
    content.leave(
        span,
        f"{subject} is not imported: it comes from {origin}",
        why,
        f"if a package index has it, add it as {quote_text(known)}; otherwise add it with its "
        "`path` or `git`",
    )


def _find_repository(location: SourceLocation) -> SourcePackage | None:
    address, fragment = urldefrag(location.address)
    parts = {key: values[0] for key, values in parse_qs(fragment).items()}
    egg = _EGG.fullmatch(parts.pop("egg", ""))
    try:
        fields = parse_url(f"{address}#{urlencode(parts, safe='/')}" if parts else address)
        check_git_url(fields["git"])
    except PydanticCustomError:
        return None
    requirement = location.requirement
    if requirement is not None:
        return _package(requirement.name, requirement, fields)
    if egg is None:
        return None
    return _package(egg["name"], _with_extras(egg["extras"]), fields)


def _explain_repository(url: str) -> str:
    """Return why a spec cannot name a repository."""
    try:
        check_git_url(parse_url(urldefrag(url)[0])["git"])
    except PydanticCustomError as error:
        return error.message()
    return "a spec takes packages from an index, from git and from paths in its project"


def _find_path(content: Content, location: SourceLocation) -> SourcePackage | None:
    """Return the package at a path next to the imported file."""
    match = _EXTRAS.fullmatch(location.address)
    written = match["path"] if match else location.address
    try:
        path = check_path(written)
    except PydanticCustomError:
        return None
    if not content.is_near(path) or path.endswith(_SOURCE_ARCHIVES):
        return None
    fields: dict[str, Any] = {"path": path if path.startswith(".") else f"./{path}"}
    requirement = location.requirement or _with_extras(match["extras"] if match else None)
    if path.endswith(".whl"):
        try:
            wheel, _, _, _ = parse_wheel_filename(PurePosixPath(path).name)
        except InvalidWheelFilename:
            return None
        return _package(wheel, requirement, fields)
    if location.is_editable:
        fields["editable"] = True
    name = location.requirement.name if location.requirement else _find_name(content, path)
    return _package(name, requirement, fields) if name else None


def _find_name(content: Content, path: str) -> str:
    """Return the name in the pyproject.toml of a folder, "" if there is none."""
    text = content.read_near(f"{path}/pyproject.toml")
    try:
        return "" if text is None else parse_project_name(text)
    except LockError:
        return ""


def _with_extras(extras: str | None) -> Requirement | None:
    try:
        return Requirement(f"x[{extras or ''}]")
    except InvalidRequirement:
        return None


def _package(
    name: str, requirement: Requirement | None, fields: dict[str, Any]
) -> SourcePackage | None:
    if requirement is None:
        return None
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    marker = f" ; {requirement.marker}" if requirement.marker else ""
    key = canonicalize_name(name)
    return SourcePackage(key, f"{key}{extras}{marker}", fields)
