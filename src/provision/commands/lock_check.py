"""Lock checks without a network: the changes of a spec since its lock was made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provision import source
from provision.commands.shared.facts_selection import select_facts
from provision.commands.shared.load import (
    LoadedSpec,
    check_spec_name,
    load_spec,
    lock_path,
    with_recorded_target,
)
from provision.commands.shared.lock_file import read_lock_text
from provision.diagnostics import Severity
from provision.errors import ProvisionError
from provision.lock import compute_text_digest, loads

if TYPE_CHECKING:
    from provision.effects.system import Reader


def list_lock_differences(path: Path, reader: Reader) -> tuple[str, ...]:
    """Return the changes of the spec at `path` since its lock was made.

    The rules do not run on a spec whose text has the same packages: `lint` runs them.

    Raises:
        LockError: there is no usable lock.
        SourceError: the spec cannot be read.
        SpecHasErrors: the spec has changed and has errors.
    """
    from provision.commands.lock import check_lock  # the model of the language loads slowly

    return check_lock(_load_if_text_unchanged(path, reader) or load_spec(path, reader), reader)


def _load_if_text_unchanged(path: Path, reader: Reader) -> LoadedSpec | None:
    """Return the spec, without findings, if its lock was made of the same text; else None."""
    try:
        check_spec_name(path, reader)
        first, *others = source.read_spec_file(path, reader)
        text = read_lock_text(lock_path(path), reader)
        lock = loads(text, str(path))
    except ProvisionError:
        return None  # load_spec raises it
    if others or first.data is None or lock.text_digest != compute_text_digest(first.data):
        return None
    spec, problems = source.validate_source(first)
    if spec is None or any(
        finding.severity is Severity.ERROR for finding in (*first.diagnostics, *problems)
    ):
        return None
    return with_recorded_target(
        LoadedSpec(path, first, spec, select_facts(path, reader), ()), reader
    )
