"""The rows of the fact table about environment variables: what each does to training, which name
folders, and how the allocator is configured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from provision.facts.schema_torch import Evidence

_OFF = frozenset({"", "0", "false", "no", "off"})


class VariableEffect(NamedTuple):
    """What a variable does to training where its value is one of those that `when` names, and what
    `at` it matters to. See variables.yaml for both words.
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
        """Tell whether the variable has its effect when it holds `value`."""
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
    """A variable that names a folder: what lies there, whether that takes gigabytes, and which of ~
    and $ its reader replaces.
    """

    variable: str
    holds: str
    big: bool
    expands: str
    evidence: Evidence


class AllocatorOption(NamedTuple):
    """An option of torch's allocator and what it takes: flag, number (of at least `least`), ratio,
    or any.
    """

    option: str
    takes: str
    evidence: Evidence
    least: int = 0
