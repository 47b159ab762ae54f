"""The options of `provision lint` as a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from provision.commands.shared.configuration import NO_OVERRIDES, Overrides
from provision.diagnostics import Applicability

if TYPE_CHECKING:
    from provision.effects.system import Revision


def use_one_process() -> int:
    """Return 1."""
    return 1


@dataclass(frozen=True, slots=True)
class LintOptions:
    """The way to lint.

    Attributes:
        applied: the fixes to apply.
        dry: only show what the fixes would change.
        skip_foreign: skip notebooks and files of other tools with a note: files that are not called
            provision*.yaml and do not name our apiVersion.
        notebook_spec: the spec that notebooks are checked with, and with its lock.
        overrides: settings that precede those of the configuration.
        base: the revision whose findings are not reported again.
        baseline: the file of findings that are accepted.
        write_baseline: write that file with all present findings.
        count_processes: returns how many processes may check specs. It is called for many specs.
    """

    applied: frozenset[Applicability] = frozenset()
    dry: bool = False
    skip_foreign: bool = False
    notebook_spec: Path | None = None
    overrides: Overrides = NO_OVERRIDES
    base: Revision | None = None
    baseline: Path | None = None
    write_baseline: bool = False
    count_processes: Callable[[], int] = use_one_process


DEFAULT_OPTIONS = LintOptions()
