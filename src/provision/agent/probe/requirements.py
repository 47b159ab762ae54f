"""Requirement lines and environment markers (PEP 508); unreadable ones raise."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.versions import UnreadableVersion, normalize_name, specifier_allows

_REQUIREMENT = re.compile(
    r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?\s*(.*?)\s*", re.DOTALL
)
_TOKEN = re.compile(
    r"""([()]|'[^']*'|"[^"]*"|===|==|!=|<=|>=|~=|<|>|not\s+in\b|[A-Za-z_][A-Za-z0-9_.]*)"""
)
_OPERAND = re.compile(r"['\"A-Za-z_]")
_OPERATORS = frozenset({"===", "==", "!=", "<=", ">=", "~=", "<", ">", "in", "not in"})
_VERSIONED = frozenset(
    {"python_version", "python_full_version", "implementation_version", "platform_release"}
)
_OLD_NAMES = {
    "os.name": "os_name",
    "sys.platform": "sys_platform",
    "platform.version": "platform_version",
    "platform.machine": "platform_machine",
    "platform.python_implementation": "platform_python_implementation",
    "python_implementation": "platform_python_implementation",
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement with PEP 503 names; `by_url` if a location replaces the specifier."""

    name: str
    extras: tuple[str, ...]
    specifier: str
    marker: str
    by_url: bool


def parse_requirement(text: str) -> Requirement:
    """Read one Requires-Dist line. Raises UnreadableVersion."""
    # A location may itself contain ";": the marker behind it is set off by a space.
    head, _, marker = text.partition(" ;" if "@" in text.partition(";")[0] else ";")
    match = _REQUIREMENT.fullmatch(head)
    if match is None:
        raise UnreadableVersion(f"not a requirement: {text!r}")
    name, extras, rest = match.groups()
    by_url = rest.startswith("@")
    if rest.startswith("(") and rest.endswith(")"):
        rest = rest[1:-1]
    specifier = "" if by_url else rest.strip()
    if specifier and not re.match(r"[=<>!~]", specifier):
        raise UnreadableVersion(f"not a requirement: {text!r}")
    names = {normalize_name(part.strip()) for part in (extras or "").split(",") if part.strip()}
    return Requirement(
        normalize_name(name), tuple(sorted(names)), specifier, marker.strip(), by_url
    )


def marker_environment() -> dict[str, str]:
    """The marker values of the running interpreter, without `extra`."""
    info = sys.implementation.version
    stage = "" if info.releaselevel == "final" else info.releaselevel[0] + str(info.serial)
    full = platform.python_version()
    return {
        "implementation_name": sys.implementation.name,
        "implementation_version": f"{info.major}.{info.minor}.{info.micro}{stage}",
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": f"{full}local" if full.endswith("+") else full,
        "python_version": f"{sys.version_info.major}.{sys.version_info.minor}",
        "sys_platform": sys.platform,
    }


def evaluate_marker(marker: str, environment: Mapping[str, str], extra: str = "") -> bool:
    """Return whether a marker is true; an empty marker is. Raises UnreadableVersion."""
    if not marker:
        return True
    reader = _MarkerReader(marker, {**environment, "extra": extra})
    value = reader.parse_or()
    if reader.tokens:
        raise reader.error
    return value


class _MarkerReader:
    """Reads and evaluates in one pass; `or` binds weaker than `and`."""

    def __init__(self, marker: str, environment: Mapping[str, str]) -> None:
        self.marker, self.environment = marker, environment
        self.error = UnreadableVersion(f"not a marker: {marker!r}")
        if _TOKEN.sub("", marker).strip():
            raise self.error
        self.tokens: list[str] = _TOKEN.findall(marker)

    def parse_or(self) -> bool:
        value = self.parse_and()
        while self.accept("or"):
            value = self.parse_and() or value
        return value

    def parse_and(self) -> bool:
        value = self.parse_comparison()
        while self.accept("and"):
            value = self.parse_comparison() and value
        return value

    def accept(self, token: str) -> bool:
        accepted = self.tokens[:1] == [token]
        if accepted:
            del self.tokens[0]
        return accepted

    def parse_comparison(self) -> bool:
        if self.accept("("):
            value = self.parse_or()
            if not self.accept(")"):
                raise UnreadableVersion(f"unclosed parenthesis in marker {self.marker!r}")
            return value
        if len(self.tokens) < 3:
            raise self.error
        left, operator, right = self.tokens[:3]
        del self.tokens[:3]
        operator = " ".join(operator.split())
        if operator not in _OPERATORS or not (_OPERAND.match(left) and _OPERAND.match(right)):
            raise self.error
        if _is_text(left) is _is_text(right):
            raise UnreadableVersion(
                f"expected a comparison of a variable with a string in marker {self.marker!r}"
            )
        name = right if _is_text(left) else left
        name = _OLD_NAMES.get(name, name)
        if name not in self.environment:
            raise UnreadableVersion(f"unknown marker variable {name!r}")
        ours, theirs = (
            operand[1:-1] if _is_text(operand) else self.environment[name]
            for operand in (left, right)
        )
        if name == "extra":
            ours, theirs = normalize_name(ours), normalize_name(theirs)
        return _texts_compare(ours, operator, theirs, versioned=name in _VERSIONED)


def _is_text(operand: str) -> bool:
    return operand.startswith(("'", '"'))


def _texts_compare(ours: str, operator: str, theirs: str, versioned: bool) -> bool:
    if operator in ("in", "not in"):
        return (ours in theirs) is (operator == "in")
    if versioned:
        try:
            return specifier_allows(f"{operator}{theirs}", ours)
        except UnreadableVersion:
            # A kernel release such as "6.1.0-13-cloud" does not parse; it then compares as text,
            # as installers do.
            pass
    if operator in ("===", "~="):
        raise UnreadableVersion(f"{operator} cannot compare the strings {ours!r} and {theirs!r}")
    if operator == "!=":
        return ours != theirs
    return operator in ("==", "<=", ">=") and ours == theirs
