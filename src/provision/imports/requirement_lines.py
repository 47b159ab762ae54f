"""Reads one requirement, and the arguments of `pip install`, into the content of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import (
    InvalidWheelFilename,
    canonicalize_name,
    parse_wheel_filename,
)

from provision.diagnostics import Span
from provision.field_types import suggest_requirement
from provision.imports.content import VARIABLE, Content, is_default_index
from provision.imports.model import ImportedPackage
from provision.imports.package_sources import (
    SCHEME,
    SourceLocation,
    SourcePackage,
    find_source,
    leave_location,
)
from provision.imports.pip_options import OPTIONS, OptionMeaning, PipOption
from provision.imports.quoting import quote_text

MAX_REQUIREMENT_LENGTH = 2000
"""Code points; packaging compares some of its patterns in quadratic time (our choice)."""

_HEAD = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?")
_CLAUSE = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*([^\s,;()]+)")
_ARCHIVE = re.compile(r"\.(?:whl|zip|tar\.gz|tgz|tar\.bz2|tar\.xz)$", re.IGNORECASE)
_PATH = re.compile(r"(?:\.{1,2}(?:[/\\\[]|$)|[/~\\]|[A-Za-z]:[\\/])")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_CONDA_BUILD_FOLDERS = re.compile(r"/(?:croot|feedstock_root|conda-bld|build/\w+)/|_h_env")
"""Folders in which conda builds packages; pip freeze prints them for packages from conda."""


class FileReference(NamedTuple):
    """A file that a line includes with -r or -c."""

    name: str
    span: Span
    is_constraint: bool


class RequirementOrigin(NamedTuple):
    """Properties of the packages of a line that follow from its file (see `ImportedPackage`)."""

    is_constraint: bool = False
    is_exact: bool = False
    environment: str = ""
    index_name: str | None = None


MAIN = RequirementOrigin()


def read_requirement(
    content: Content, text: str, span: Span, origin: RequirementOrigin = MAIN
) -> ImportedPackage | None:
    """Add a requirement as pip and PEP 508 write it, and return its package.

    Args:
        content: Where packages, settings and leftovers are added.
        text: The requirement without comment and options, such as "torch==2.0.1+cu118".
        span: The requirement in its file.
        origin: Properties that follow from the file.

    Returns:
        None if a spec cannot contain it, or if it is not valid; that is added as a leftover.
    """
    text = text.strip()
    if not text:
        return None
    if VARIABLE.search(text):
        content.leave(
            span,
            f"{quote_text(text)} is not imported",
            "its text depends on a variable, whose value is unknown",
            "write the value instead of the variable",
        )
        return None
    if " @ " not in text and _is_location(text):
        return read_location(content, SourceLocation(text), span, origin)
    requirement = parse_requirement(text)
    if requirement is None:
        what = f"{quote_text(text)} is not a requirement"
        content.leave(span, what, help=suggest_requirement(text), kind="refused")
        return None
    if requirement.url:
        location = SourceLocation(requirement.url, requirement)
        return read_location(content, location, span, origin)
    marker = str(requirement.marker or "")
    if re.search(r"\bextra\b", marker):
        content.leave(
            span,
            f"{quote_text(text)} is not imported",
            "its marker depends on an extra, but a spec has no extras",
        )
        return None
    return add_package(content, requirement, text, span, origin)


def parse_requirement(text: str) -> Requirement | None:
    """Return a requirement of PEP 508, None if the text is not one."""
    if len(text) > MAX_REQUIREMENT_LENGTH:
        return None
    try:
        return Requirement(text)
    except (InvalidRequirement, RecursionError):
        return None


def add_package(
    content: Content, requirement: Requirement, text: str, span: Span, origin: RequirementOrigin
) -> ImportedPackage:
    """Add a package of an index; the local version of a build becomes a setting."""
    name, marker = canonicalize_name(requirement.name), str(requirement.marker or "")
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    clauses = []
    # The parsed set has no order; the text has that of its author.
    for operator, version in _CLAUSE.findall(_version_part(text)):
        base, plus, local = version.partition("+")
        if plus and operator not in ("==", "==="):
            content.leave(
                span, f"{name}{quote_text(operator + version)} is not imported", _BUILDS_WHY
            )
            continue
        if plus:
            _read_local_version(content, name, base, local.lower(), span, marker)
        clauses.append(("==" if plus else operator) + base)
    specifier = ",".join(clauses)
    suffix = f" ; {marker}" if marker else ""
    package = ImportedPackage(
        name,
        f"{name}{extras}{specifier}{suffix}",
        span,
        index=origin.index_name,
        is_constraint=origin.is_constraint,
        is_exact=origin.is_exact,
        environment=origin.environment,
    )
    content.packages.append(package)
    return package


_BUILDS_WHY = "a spec names versions; `cuda` selects the build"


def _version_part(text: str) -> str:
    head = _HEAD.match(text)
    return text[head.end() if head else 0 :].partition(";")[0]


def _read_local_version(
    content: Content, name: str, base: str, local: str, span: Span, marker: str
) -> None:
    is_flavoured = name in content.facts.flavoured
    if is_flavoured or re.fullmatch(r"cu\d{2,3}", local):
        content.add_build(local, span, marker)
    if not is_flavoured:
        content.leave(
            span,
            f"the build +{quote_text(local)} of {name} is not imported",
            f"{name} {quote_text(base)} is taken from its index without a build tag",
            f"if you need that build of {name}, add the index that has it to `indexes`",
        )


def _is_location(text: str) -> bool:
    if SCHEME.match(text) or _PATH.match(text):
        return True
    return _ARCHIVE.search(text.partition("#")[0]) is not None


def read_location(
    content: Content, location: SourceLocation, span: Span, origin: RequirementOrigin
) -> ImportedPackage | None:
    """Add a package that is named by a URL or a path, if a spec can name it."""
    url, version = location.address, ""
    name = location.requirement.name if location.requirement else ""
    path = unquote(urlsplit_path(url))
    try:
        wheel_name, wheel_version, _, _ = parse_wheel_filename(path.rpartition("/")[2])
    except (InvalidWheelFilename, ValueError):
        pass
    else:
        name, version = name or wheel_name, str(wheel_version)
    name = name or (egg[1] if (egg := _EGG.search(url)) else "")
    host = url_host(url)
    pinned = parse_requirement(f"{name}=={version}") if name and version else None
    is_from_index = host in content.facts.torch_hosts or is_default_index(host)
    if pinned and is_from_index:
        return add_package(content, pinned, str(pinned), span, origin)
    if url.startswith("file:") and name and _CONDA_BUILD_FOLDERS.search(path):
        return _read_conda_build(content, canonicalize_name(name), pinned, span, origin)
    source = None if origin.is_constraint else find_source(content, location)
    if source is not None:
        return _add_source(content, source, location, span, origin)
    leave_location(content, url, canonicalize_name(name) if name else "", version, span)
    return None


def _add_source(
    content: Content,
    source: SourcePackage,
    location: SourceLocation,
    span: Span,
    origin: RequirementOrigin,
) -> ImportedPackage:
    if location.is_editable and "git" in source.fields:
        content.leave(
            span,
            f"{source.name} is imported without -e",
            "a package from a repository is built from its commit",
            "to edit it, clone it into the project and add it with its `path`",
        )
    package = ImportedPackage(
        source.name,
        source.requirement,
        span,
        is_exact=origin.is_exact,
        environment=origin.environment,
        source=tuple(source.fields.items()),
    )
    content.packages.append(package)
    return package


def _read_conda_build(
    content: Content,
    name: str,
    pinned: Requirement | None,
    span: Span,
    origin: RequirementOrigin,
) -> ImportedPackage:
    content.leave(
        span,
        f"the version of {name} is taken from its file name"
        if pinned
        else f"the version of {name} is unknown",
        "conda installed it, and the line names a folder on the machine that built it",
        "" if pinned else f"add the version that `conda list {name}` shows",
    )
    requirement = pinned or Requirement(name)
    return add_package(content, requirement, str(requirement), span, origin)


def urlsplit_path(url: str) -> str:
    """Return the path of a URL, or a path itself, without query and fragment."""
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def url_host(url: str) -> str:
    """Return the host of a URL, "" if it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def read_pip_arguments(
    content: Content,
    arguments: Iterable[tuple[str, Span]],
    origin: RequirementOrigin = MAIN,
    *,
    takes_packages: bool = True,
) -> tuple[FileReference, ...]:
    """Add what the arguments of `pip install` or `uv pip install` mean, without `install` itself.

    Args:
        content: Where packages, settings, indexes and leftovers are added.
        arguments: The words without quotes, each with its span.
        origin: Properties that follow from the file.
        takes_packages: False for the options of a line of a requirements file.

    Returns:
        The files that the arguments name with -r and -c, for the caller to read.
    """
    references: list[FileReference] = []
    words = iter(arguments)
    for text, span in words:
        if not text.startswith("-") or text == "-":
            if takes_packages:
                read_requirement(content, text, span, origin)
            else:
                what = f"{quote_text(text)} is not an option"
                content.leave(span, what, help=_OWN_LINE, kind="refused")
            continue
        for name, value in _split_option(text):
            option = OPTIONS.get(name)
            if option is None:
                what = f"the option {quote_text(name)} is unknown"
                content.leave(span, what, help=_CHECK_IT, kind="refused")
                continue
            end = span
            if option.takes_value and value is None:
                value, end = next(words, (None, span))  # noqa: PLW2901
            whole = Span(span.file, span.start, end.end)
            if option.takes_value and value is None:
                content.leave(whole, f"the option {name} has no value", kind="refused")
                continue
            reference = _read_option(content, name, option, value or "", whole, origin)
            references.extend(reference)
    return tuple(references)


_HASH = re.compile(r"sha(?:256|384|512):[0-9a-fA-F]+")
_OWN_LINE = "write each package on its own line, before its options"
_CHECK_IT = "check whether the packages depend on this option"


def _split_option(text: str) -> list[tuple[str, str | None]]:
    """Return the options in a word and the value in it: --name=value, -rvalue, -qU."""
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        return [(name.lower(), value if equals else None)]
    options: list[tuple[str, str | None]] = []
    for position in range(1, len(text)):
        name = f"-{text[position]}"
        option, rest = OPTIONS.get(name), text[position + 1 :]
        if option is not None and option.takes_value:
            return [*options, (name, rest.removeprefix("=") or None)]
        options.append((name, None))
        if option is None:
            return [(text, None)]
    return options


def _read_option(
    content: Content,
    name: str,
    option: PipOption,
    value: str,
    span: Span,
    origin: RequirementOrigin,
) -> list[FileReference]:
    match option.meaning:
        case OptionMeaning.NONE:
            pass
        case OptionMeaning.REQUIREMENTS | OptionMeaning.CONSTRAINTS:
            is_constraint = origin.is_constraint or option.meaning is OptionMeaning.CONSTRAINTS
            return [FileReference(value, span, is_constraint)]
        case OptionMeaning.EDITABLE:
            read_location(content, SourceLocation(value, is_editable=True), span, origin)
        case OptionMeaning.INDEX | OptionMeaning.EXTRA_INDEX:
            read_index(content, value, span, is_main=option.meaning is OptionMeaning.INDEX)
        case OptionMeaning.FIND_LINKS:
            if url_host(value) in content.facts.torch_hosts:
                content.add_index(value, span)
            else:
                content.leave(span, f"{name} {quote_text(value)} is not imported", *option.text)
        case OptionMeaning.TORCH_BACKEND:
            if value != "auto":
                content.add_build(value, span)
        case OptionMeaning.HASH if not _HASH.fullmatch(value):
            content.leave(
                span,
                f"--hash={quote_text(value)} is not a hash that pip accepts",
                help="use the form --hash=sha256:HEX, with sha256, sha384 or sha512",
                kind="refused",
            )
        case OptionMeaning.HASH:
            content.hashed.append(span)
        case OptionMeaning.LEFT:
            shown = f"{name} {quote_text(value)}".rstrip()
            content.leave(span, f"{shown} is not imported", *option.text)
    return []


def read_index(content: Content, url: str, span: Span, *, is_main: bool) -> None:
    """Add an index as pip's --index-url (`is_main`) or --extra-index-url."""
    index = content.add_index(url, span)
    if is_main:
        content.main_indexes.append((index, span))
        return
    content.has_extra_index = True
    if index is not None:
        content.leave(
            span,
            f"no package is bound to the index {index}",
            "pip searches every index, but in a spec each package names its index",
            f"add `index: {index}` to the packages that come from it",
        )
