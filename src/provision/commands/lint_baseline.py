"""Findings that a project accepted when it adopted `lint`: the file of a baseline."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from provision.commands.shared.load import CheckedDocument
from provision.diagnostics import Diagnostic, SuppressedFinding, SuppressionKind
from provision.errors import UsageError
from provision.rules.suppressions import is_ignorable
from provision.views.diagnostics.fingerprints import identify_finding

if TYPE_CHECKING:
    from provision.effects.system import Reader

SCHEMA = "provision.baseline/1"
MAX_BYTES = 8 << 20
"""Bytes of a baseline; 10,000 findings have 2 MB (our choice)."""


class BaselineEntry(NamedTuple):
    """Findings of a rule at a value of a document.

    Attributes:
        file: the spec's path from the folder of the baseline, with slashes.
        rule: the id of the rule.
        document: the name of the spec in a file, or its 0-based number.
        place: the route with list items by name, or the text of a finding without a route.
    """

    file: str
    rule: str
    document: str
    place: str


class Baseline:
    """The accepted findings, with their numbers."""

    def __init__(self, path: Path, entries: Counter[BaselineEntry]) -> None:
        self.path, self.entries = path, entries
        self._seen: set[str] = set()
        self._left = Counter(entries)

    def apply(self, document: CheckedDocument) -> CheckedDocument:
        """Return a document without the findings that the baseline accepts."""
        kept, accepted = [], []
        file = _relative_name(document.source.path, self.path)
        self._seen.add(file)
        for finding in document.diagnostics:
            entry = _to_entry(finding, document, file)
            protected = document.configuration.policy.never_ignore
            if (
                self._left[entry] > 0
                and is_ignorable(finding.id)
                and not finding.id.startswith(protected)
            ):
                self._left[entry] -= 1
                reason = f"baseline {self.path.name}"
                accepted.append(SuppressedFinding(finding, SuppressionKind.BASELINE, reason))
            else:
                kept.append(finding)
        return document._replace(
            diagnostics=tuple(kept), suppressed=(*document.suppressed, *accepted)
        )

    @property
    def stale(self) -> int:
        """The number of entries about linted files that match no finding."""
        return sum(count for entry, count in self._left.items() if entry.file in self._seen)

    def to_text(self) -> str:
        """Return the text of the file: sorted, so that a change of it is short."""
        document = {
            "schema": SCHEMA,
            "findings": [
                {**entry._asdict(), "count": count} for entry, count in sorted(self.entries.items())
            ],
        }
        return json.dumps(document, indent=1) + "\n"


def create_baseline(path: Path, documents: Iterable[CheckedDocument]) -> Baseline:
    """Return the baseline that accepts all findings of documents, if they can be accepted."""
    return Baseline(
        path,
        Counter(
            _to_entry(finding, document, _relative_name(document.source.path, path))
            for document in documents
            for finding in document.diagnostics
            if is_ignorable(finding.id)
            and not finding.id.startswith(document.configuration.policy.never_ignore)
        ),
    )


def read_baseline(path: Path, reader: Reader) -> Baseline:
    """Return a baseline.

    Raises:
        UsageError: the file is not a baseline.
        ExternalError: it cannot be read.
    """
    try:
        document = json.loads(reader.read(path, MAX_BYTES))
        if document["schema"] != SCHEMA:
            raise ValueError(f"the schema is {str(document['schema'])[:40]}, not {SCHEMA}")
        entries = Counter(dict(map(_entry_from_json, document["findings"])))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        hint = f"write one with `provision lint --baseline {path} --write-baseline`"
        raise UsageError(f"{path} is not a baseline", why=str(error)[:200], hint=hint) from None
    return Baseline(path, entries)


def _entry_from_json(item: dict[str, Any]) -> tuple[BaselineEntry, int]:
    values = [item[name] for name in BaselineEntry._fields]
    count = item["count"]
    if not all(isinstance(value, str) for value in values) or type(count) is not int or count < 1:
        raise ValueError(f"the file contains an invalid entry: {str(item)[:80]}")
    return BaselineEntry(*values), count


def _to_entry(finding: Diagnostic, document: CheckedDocument, file: str) -> BaselineEntry:
    rule, name, place = identify_finding(finding, document.source)
    return BaselineEntry(file, rule, str(name), place)


def _relative_name(path: Path, baseline: Path) -> str:
    return Path(os.path.relpath(path, baseline.parent)).as_posix()
