"""Row types of the fact tables about environment variables: effects, folders, allocator options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from provision.facts.evidence import Evidence

_OFF = frozenset({"", "0", "false", "no", "off"})


class VariableEffect(NamedTuple):
    """The effect of a variable on training if its value matches `when`.

    `at` names the targets that it affects. See variables.yaml for both vocabularies.
    """

    variable: str
    when: str
    at: str
    severity: str
    effect: str
    evidence: Evidence
    cure: str = ""
    instead: str = ""
    except_cards: tuple[str, ...] = ()
    holds_for: Mapping[str, str] = {}
    else_without: str = ""

    def applies_to(self, value: str) -> bool:
        """Return whether the variable has its effect with a value."""
        match self.when:
            case "set":
                return True
            case "on":
                return value.strip().lower() not in _OFF
            case "off":
                return value.strip().lower() in _OFF - {""}
            case pattern:
                return re.fullmatch(pattern, value.strip()) is not None


class FolderVariable(NamedTuple):
    """A variable that names a folder: its content, whether it takes gigabytes, and its expansions.

    `expands` lists which of ~ and $ the program that reads the variable replaces.
    """

    variable: str
    holds: str
    big: bool
    expands: str
    evidence: Evidence


class AllocatorOption(NamedTuple):
    """An option of torch's allocator.

    `takes` is flag, number (of at least `least`), ratio or any.
    """

    option: str
    takes: str
    evidence: Evidence
    least: int = 0
