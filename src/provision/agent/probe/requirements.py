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
    r"\s*(?:(\()|(\))|'([^']*)'|\"([^\"]*)\"|(===|==|!=|<=|>=|~=|<|>)|([A-Za-z_][A-Za-z0-9_.]*))"
)
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
    by_url = "@" in text.partition(";")[0]
    head, _, marker = text.partition(" ;" if by_url else ";")
    match = _REQUIREMENT.fullmatch(head)
    if match is None:
        raise UnreadableVersion(f"not a requirement: {text!r}")
    name, extras, rest = match.groups()
    if rest.startswith("@"):
        return Requirement(normalize_name(name), _extras(extras), "", marker.strip(), True)
    if rest.startswith("(") and rest.endswith(")"):
        rest = rest[1:-1]
    if rest and not re.match(r"[=<>!~]", rest.strip()):
        raise UnreadableVersion(f"not a requirement: {text!r}")
    return Requirement(normalize_name(name), _extras(extras), rest.strip(), marker.strip(), False)


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
    reader = _MarkerReader(_tokens(marker), {**environment, "extra": extra}, marker)
    value = reader.parse_or()
    if reader.tokens:
        raise UnreadableVersion(f"not a marker: {marker!r}")
    return value


def _extras(text: str | None) -> tuple[str, ...]:
    return tuple(
        sorted(normalize_name(part.strip()) for part in (text or "").split(",") if part.strip())
    )


def _tokens(marker: str) -> list[tuple[str, str]]:
    tokens, place = [], 0
    while place < len(marker.rstrip()):
        match = _TOKEN.match(marker, place)
        if match is None:
            raise UnreadableVersion(f"not a marker: {marker!r}")
        opened, closed, single, double, operator, word = match.groups()
        if opened or closed:
            tokens.append(("bracket", opened or closed))
        elif operator:
            tokens.append(("operator", operator))
        elif word:
            tokens.append(("word", word))
        else:
            tokens.append(("text", double if single is None else single))
        place = match.end()
    return tokens


class _MarkerReader:
    """Reads and evaluates in one pass; `or` binds weaker than `and`."""

    def __init__(
        self, tokens: list[tuple[str, str]], environment: Mapping[str, str], marker: str
    ) -> None:
        self.tokens = tokens
        self.environment = environment
        self.marker = marker

    def parse_or(self) -> bool:
        value = self.parse_and()
        while self.accept("word", "or"):
            value = self.parse_and() or value
        return value

    def parse_and(self) -> bool:
        value = self.parse_comparison()
        while self.accept("word", "and"):
            value = self.parse_comparison() and value
        return value

    def parse_comparison(self) -> bool:
        if self.accept("bracket", "("):
            value = self.parse_or()
            if not self.accept("bracket", ")"):
                raise UnreadableVersion(f"a bracket is not closed: {self.marker!r}")
            return value
        left, operator, right = self.parse_operand(), self.parse_operator(), self.parse_operand()
        return self.compare(left, operator, right)

    def accept(self, kind: str, text: str) -> bool:
        if self.tokens and self.tokens[0] == (kind, text):
            self.tokens.pop(0)
            return True
        return False

    def parse_operand(self) -> tuple[str, str]:
        if self.tokens and self.tokens[0][0] in ("word", "text"):
            return self.tokens.pop(0)
        raise UnreadableVersion(f"not a marker: {self.marker!r}")

    def parse_operator(self) -> str:
        if self.accept("word", "in"):
            return "in"
        if self.accept("word", "not"):
            if self.accept("word", "in"):
                return "not in"
        elif self.tokens and self.tokens[0][0] == "operator":
            return self.tokens.pop(0)[1]
        raise UnreadableVersion(f"not a marker: {self.marker!r}")

    def compare(self, left: tuple[str, str], operator: str, right: tuple[str, str]) -> bool:
        if (left[0] == "word") is (right[0] == "word"):
            raise UnreadableVersion(f"a marker compares a name with a text: {self.marker!r}")
        name = left[1] if left[0] == "word" else right[1]
        name = _OLD_NAMES.get(name, name)
        if name not in self.environment:
            raise UnreadableVersion(f"unknown marker name {name!r}")
        known = self.environment[name]
        ours, theirs = (known, right[1]) if left[0] == "word" else (left[1], known)
        if name == "extra":
            ours, theirs = normalize_name(ours), normalize_name(theirs)
        return _texts_compare(ours, operator, theirs, versioned=name in _VERSIONED)


def _texts_compare(ours: str, operator: str, theirs: str, versioned: bool) -> bool:
    if operator in ("in", "not in"):
        return (ours in theirs) is (operator == "in")
    if versioned:
        try:
            return specifier_allows(f"{operator}{theirs}", ours)
        except UnreadableVersion:
            # A kernel release such as "6.1.0-13-cloud" is no version; it then compares as text,
            # which is what installers do.
            pass
    if operator in ("===", "~="):
        raise UnreadableVersion(f"{operator} does not compare texts: {ours!r}, {theirs!r}")
    if operator == "!=":
        return ours != theirs
    return operator in ("==", "<=", ">=") and ours == theirs
