"""Compares findings with those of another revision: what a change adds, and what it fixes."""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from provision.commands.shared.configuration import Overrides
from provision.commands.shared.configuration_file import find_configuration
from provision.commands.shared.load import CheckedDocument, check_file
from provision.diagnostics import (
    Diagnostic,
    RouteLocation,
    SuppressedFinding,
    SuppressionKind,
)
from provision.errors import ExternalError, SourceError, UsageError
from provision.facts import load_facts
from provision.rules.suppressions import is_about_text
from provision.source import Source
from provision.source.loader import MAX_FILE_BYTES
from provision.target_changes import ChangedTarget, compare_targets
from provision.views.diagnostics.fingerprints import fingerprint

if TYPE_CHECKING:
    from provision.effects.system import Reader, Revision

_SPEC_SUFFIXES = (".yaml", ".yml")
_LEAST_SIMILARITY = 0.5
"""Share of equal lines of a renamed file, as git's default for renames."""
_MAX_RENAME_CANDIDATES = 200
"""Deleted files that a new file is compared with (our choice)."""

_BLOCKING = (
    "the rules did not run because of this error, so new findings of the change are unknown; the "
    "error itself is not from this change"
)

_Identity = tuple[str, str, str]


class FixedFinding(NamedTuple):
    """A finding of the other revision that the change removes, and the text it was in."""

    finding: Diagnostic
    source: Source


class FileChanges(NamedTuple):
    """What the change of a file removes from the findings, and what it does to targets."""

    fixed: tuple[FixedFinding, ...] = ()
    targets: tuple[ChangedTarget, ...] = ()


class RevisionComparison:
    """Compares the findings on specs with those of another revision."""

    def __init__(self, base: Revision, reader: Reader, overrides: Overrides) -> None:
        self.base, self.reader = base, reader
        self.base_reader = cast("Reader", base)
        self.overrides = overrides
        self._deleted: list[Path] | None = None

    def compare(
        self, path: Path, documents: tuple[CheckedDocument, ...]
    ) -> tuple[tuple[CheckedDocument, ...], FileChanges]:
        """Return the documents of a file with its new findings only, and what the change does.

        The others are among the suppressed ones, except errors because of which no rule checks the
        document: they would hide what the change adds. A finding is new if no finding of the same
        rule is at the same value, or if the change edits that value. Lines and the order of items
        do not matter, and a renamed file is compared with the deleted file most like it.
        """
        if self._is_unchanged(path, documents):
            documents = tuple(_keep_new(document, document.diagnostics) for document in documents)
            return documents, FileChanges()
        old = self._check_base(path)
        known: Counter[_Identity] = Counter()
        for document in old:
            known.update(_identify(item, document.source) for item in document.diagnostics)
        result = []
        for document in documents:
            present = []
            for finding in document.diagnostics:
                identity = _identify(finding, document.source)
                if known[identity] > 0:
                    known[identity] -= 1
                    present.append(finding)
            result.append(_keep_blocking(_keep_new(document, present)))
        fixed = []
        for document in old:
            for finding in document.diagnostics:
                identity = _identify(finding, document.source)
                if known[identity] > 0:
                    known[identity] -= 1
                    fixed.append(FixedFinding(finding, document.source))
        changes = FileChanges(tuple(fixed), self._compare_targets(path, old, documents))
        return tuple(result), changes

    def _compare_targets(
        self, path: Path, old: tuple[CheckedDocument, ...], new: tuple[CheckedDocument, ...]
    ) -> tuple[ChangedTarget, ...]:
        """Return the changes of the targets of a file's specs; none for specs that are not valid.

        Several specs in a file are compared by their names.
        """
        if any(document.spec is None for document in (*old, *new)):
            return ()
        before = {document.spec.name: document.spec for document in old if document.spec}
        after = {document.spec.name: document.spec for document in new if document.spec}
        if len(old) == len(new) == 1:
            return compare_targets(path.stem, old[0].spec, new[0].spec, load_facts())
        changes = [
            compare_targets(path.stem, before.get(name), after.get(name), load_facts())
            for name in dict.fromkeys((*before, *after))
        ]
        return tuple(itertools.chain.from_iterable(changes))

    def _is_unchanged(self, path: Path, documents: tuple[CheckedDocument, ...]) -> bool:
        names = {name for document in documents for name in document.source.texts}
        try:
            for file in (Path(name) for name in names if not name.startswith("builtin:")):
                old, new = self.base, self.reader
                if old.read(file, MAX_FILE_BYTES) != new.read(file, MAX_FILE_BYTES):
                    return False
            configuration = self.overrides.apply(find_configuration(path, self.base_reader))
        except (ExternalError, UsageError):
            return False
        return all(document.configuration == configuration for document in documents)

    def _check_base(self, path: Path) -> tuple[CheckedDocument, ...]:
        """Return the documents of a file in the other revision; () if it cannot be read there."""
        if not self.base.exists(path):
            renamed = self._find_renamed(path)
            if renamed is None:
                return ()
            path = renamed
        try:
            return check_file(path, self.base_reader, load_facts(), self.overrides)
        except (SourceError, UsageError):
            return ()

    def _find_renamed(self, path: Path) -> Path | None:
        """Return the deleted file of the other revision that is most like a new file."""
        if self._deleted is None:
            self._deleted = [
                file
                for file in self.base.files()
                if file.suffix in _SPEC_SUFFIXES and not self.reader.exists(file)
            ][:_MAX_RENAME_CANDIDATES]
        lines = self.reader.read(path, MAX_FILE_BYTES).splitlines()
        best, best_ratio = None, _LEAST_SIMILARITY
        for candidate in self._deleted:
            try:
                old = self.base.read(candidate, MAX_FILE_BYTES).splitlines()
            except ExternalError:
                continue
            matcher = difflib.SequenceMatcher(None, old, lines, autojunk=False)
            if matcher.quick_ratio() >= best_ratio and matcher.ratio() >= best_ratio:
                best, best_ratio = candidate, matcher.ratio()
        return best


def _keep_new(document: CheckedDocument, present: Sequence[Diagnostic]) -> CheckedDocument:
    """Return a document in which the findings that were there before are suppressed."""
    earlier = set(map(id, present))
    return document._replace(
        diagnostics=tuple(item for item in document.diagnostics if id(item) not in earlier),
        suppressed=(
            *document.suppressed,
            *(SuppressedFinding(item, SuppressionKind.BASE) for item in present),
        ),
    )


def _keep_blocking(document: CheckedDocument) -> CheckedDocument:
    """Return a document that is not valid with the errors because of which no rule checks it."""
    if document.spec is not None:
        return document
    blocking, suppressed = [], []
    for item in document.suppressed:
        if item.kind is SuppressionKind.BASE and is_about_text(item.finding.id):
            why = f"{item.finding.why}; {_BLOCKING}" if item.finding.why else _BLOCKING
            blocking.append(item.finding._replace(why=why))
        else:
            suppressed.append(item)
    return document._replace(
        diagnostics=(*document.diagnostics, *blocking), suppressed=tuple(suppressed)
    )


def _identify(finding: Diagnostic, source: Source) -> _Identity:
    """Return the identity of a finding: its file, rule and path, and the text of its value."""
    span = source.span(finding.where)
    file = "" if span.file == source.name else span.file
    value = ""
    if isinstance(finding.where, RouteLocation):
        value = source.text(finding.where.route) or ""
    return file, fingerprint(finding, source), value
