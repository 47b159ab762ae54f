"""Stable paths of findings: list items by name, never by line, so that they outlive an edit."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from packaging.utils import canonicalize_name

from provision.diagnostics import Diagnostic, Route, Span
from provision.sanitize import redact
from provision.views.diagnostics.secret_filter import may_contain_secret
from provision.views.diagnostics.source_location import SpecSource

_PACKAGES = ("packages", "conda_packages")
_PACKAGE = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_DIGITS = 32


def stable_path(route: Route, data: Any, *, private: bool = False) -> str:
    """Return a route as `packages[torch].version`.

    Items of lists are named by package, name or text; by index if they are `private` or have none.
    """
    path, holder = "", ""
    for part in route:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            data = None
        if isinstance(part, int):
            path += f"[{part if private else _item_name(holder, data, part)}]"
        else:
            path += f".{part}" if _WORD.fullmatch(part) else f"[{json.dumps(part)}]"
            holder = part
    return redact(path.removeprefix("."))


def fingerprint(finding: Diagnostic, source: SpecSource) -> str:
    """Return 32 hexadecimal digits that identify a finding (see `identify_finding`)."""
    identity = json.dumps(identify_finding(finding, source))
    return hashlib.sha256(identity.encode()).hexdigest()[:_DIGITS]


def identify_finding(finding: Diagnostic, source: SpecSource) -> tuple[str, str | int, str]:
    """Return the rule, the document and the place of a finding.

    They stay the same while lines move, versions change and other items are added or removed.
    """
    data = source.data or {}
    name = data.get("name")
    document = name if isinstance(name, str) else source.document
    where = finding.where
    place = (
        _text_of_span(where, source)
        if isinstance(where, Span)
        else stable_path(where.route, data, private=may_contain_secret(finding))
    )
    return finding.id, document, place


def _item_name(holder: str, item: Any, index: int) -> str:
    named = item.get("name") if isinstance(item, dict) else item
    if isinstance(named, str) and holder in _PACKAGES and (match := _PACKAGE.match(named)):
        return canonicalize_name(match[1])
    return str(index) if named is None or isinstance(named, dict | list) else str(named)


def _text_of_span(span: Span, source: SpecSource) -> str:
    """Return the first line of a text that has no route."""
    text = source.files.get(span.file, "")[span.start.offset : span.end.offset]
    return redact(next(iter(text.splitlines()), ""))
