"""Versions as Poetry, pixi and `requires-python` write them, in the form of PEP 440."""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from provision.diagnostics import Span
from provision.imports.content import Content
from provision.imports.quoting import quote_text

MAX_RANGE_LENGTH = 200
"""Code points; Python refuses to convert numbers of more than 4300 digits (our choice)."""
_MINORS = range(6, 30)
_RELEASE = re.compile(r"\d+(?:\.\d+)*")


def add_python(content: Content, versions: str, span: Span) -> None:
    """Add the Python of a file: "3.11" if only this minor version fits, else the specifiers."""
    try:
        specifiers = SpecifierSet(versions if len(versions) <= MAX_RANGE_LENGTH else "?")
    except InvalidSpecifier:
        content.leave(
            span,
            f"the Python version {quote_text(versions)} is not imported",
            "it is not a version specifier",
            "set `python` in the spec",
        )
        return
    minors = [
        f"3.{minor}"
        for minor in _MINORS
        if any(specifiers.contains(f"3.{minor}.{patch}") for patch in range(30))
    ]
    if len(minors) == 1:
        content.set(("python",), minors[0], span)
    elif versions.strip():
        content.set(("python",), versions.strip(), span)


def convert_range(text: str, *, is_exact_bare: bool = True) -> str | None:
    """Return a range of Poetry or of conda in PEP 440, None if it cannot be translated.

    Sources: python-poetry.org/docs/dependency-specification, and the match specifications of conda.

    Args:
        text: Such as "^1.2", "~1.2", "1.2.*", "1.2", ">=1,<2" or "*".
        is_exact_bare: What "1.2" means: True for exactly this version, False for 1.2.*.
    """
    if len(text) > MAX_RANGE_LENGTH:
        return None
    clauses = []
    for part in text.replace(" ", "").split(","):
        clause = _convert_clause(part, is_exact_bare=is_exact_bare)
        if clause is None:
            return None
        clauses.append(clause)
    joined = ",".join(filter(None, clauses))
    try:
        SpecifierSet(joined)
    except InvalidSpecifier:
        return None
    return joined


def _convert_clause(part: str, *, is_exact_bare: bool) -> str | None:
    if part in ("", "*"):
        return ""
    if part[0] == "^" and _RELEASE.fullmatch(part[1:]):
        return f">={part[1:]},<{_next_version(part[1:], is_caret=True)}"
    if part[0] == "~" and _RELEASE.fullmatch(part[1:]):
        return f">={part[1:]},<{_next_version(part[1:], is_caret=False)}"
    if part[0] == "=" and part[1:2] != "=":
        part, is_exact_bare = part[1:], part.endswith("*")
    if part[:1].isdigit():
        return f"=={part}" if part.endswith("*") or is_exact_bare else f"=={part}.*"
    return part if part[0] in "<>!=~" else None


def _next_version(version: str, *, is_caret: bool) -> str:
    """Return the first version that a caret or tilde range excludes."""
    parts = [int(part) for part in version.split(".")]
    if is_caret:
        place = next((index for index, part in enumerate(parts) if part), len(parts) - 1)
    else:
        place = min(1, len(parts) - 1)
    return ".".join(map(str, (*parts[:place], parts[place] + 1)))
