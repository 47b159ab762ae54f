"""Every finding about a spec's text, its shape and what it extends: id, name, severity and one line of explanation."""

from __future__ import annotations

from dataclasses import dataclass

from provision.diagnostics import Diagnostic, Fix, Related, Severity, Where
from provision.safe import redact, safe_line

MESSAGE_LIMIT = 400
"""Longest message in code points: a finding is read on one screen, whatever the spec holds (our choice)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A kind of finding; the pages of the documentation are made from these."""

    id: str
    name: str
    severity: Severity
    explanation: str


FINDINGS: tuple[Finding, ...] = (
    Finding("YML001", "syntax", Severity.ERROR, "The text is not valid YAML."),
    Finding("YML002", "duplicate-key", Severity.ERROR, "A mapping holds the same key twice; YAML readers differ in which of the two they take."),
    Finding("YML003", "types-lost", Severity.ERROR, "Without quotes YAML reads a number, a boolean or null, and what was written is lost: 3.10 becomes 3.1."),
    Finding("YML004", "encoding", Severity.ERROR, "The file is not UTF-8."),
    Finding("YML005", "control-character", Severity.ERROR, "The file holds a character that no text may hold, such as NUL or ESC."),
    Finding("YML006", "empty-document", Severity.ERROR, "There is nothing in the file or document but comments."),
    Finding("YML007", "limit", Severity.ERROR, "The document is larger or more deeply nested than a spec can sensibly be, or aliases make it so."),
    Finding("YML008", "root-not-mapping", Severity.ERROR, "A spec is a mapping of keys to values; this document is something else."),
    Finding("YML009", "tag", Severity.ERROR, "Tags such as !!python/object or !secret are not read; only the core types of YAML 1.2 are."),
    Finding("YML010", "alias", Severity.ERROR, "An alias names an anchor that does not exist yet, or one that holds the alias itself."),
    Finding("YML011", "key-not-text", Severity.ERROR, "Keys of a spec are text: no numbers, booleans, null, lists, mappings or aliases."),
    Finding("YML012", "merge-key", Severity.ERROR, "The merge key << takes a mapping, or a list of mappings."),
    Finding("YML013", "number", Severity.ERROR, "A number is too long or not finite."),
    Finding("YML014", "duplicate-anchor", Severity.WARNING, "The same anchor is set twice; an alias means the one that stands before it."),
    Finding("YML015", "yaml-version", Severity.WARNING, "The document asks for YAML 1.1; it is read as YAML 1.2, where yes, no, on and off are text."),
    Finding("SPC001", "unknown-key", Severity.ERROR, "The language of specs has no such key at this place."),
    Finding("SPC002", "missing-key", Severity.ERROR, "A key that must be there is not."),
    Finding("SPC003", "wrong-type", Severity.ERROR, "The value has another shape than the key takes: a list for a text, a text for a number."),
    Finding("SPC004", "not-a-choice", Severity.ERROR, "The value is none of those that the key knows."),
    Finding("SPC005", "bad-format", Severity.ERROR, "The text is not written the way the key asks for."),
    Finding("SPC006", "out-of-range", Severity.ERROR, "The number or the length is outside the bounds of the key."),
    Finding("SPC007", "secret-written-out", Severity.ERROR, "A secret stands in the spec itself; specs name secrets, they never hold them."),
    Finding("SPC008", "more-findings", Severity.ERROR, "There are more findings about the shape of the spec than are shown."),
    Finding("REF001", "extends-missing", Severity.ERROR, "The file or profile that `extends` names does not exist or cannot be read."),
    Finding("REF002", "extends-outside-root", Severity.ERROR, "`extends` leads out of the folder that holds the project."),
    Finding("REF003", "extends-cycle", Severity.ERROR, "A file extends itself, directly or through others."),
    Finding("REF004", "extends-limit", Severity.ERROR, "Too many files extend one another, or they are too large together."),
    Finding("REF005", "extends-unusable", Severity.ERROR, "The file that `extends` names is no spec: several documents, or text with errors."),
)

_BY_NAME = {finding.name: finding for finding in FINDINGS}


def finding(
    name: str,
    message: str,
    where: Where,
    *,
    why: str = "",
    hint: str = "",
    related: tuple[Related, ...] = (),
    fix: Fix | None = None,
) -> Diagnostic:
    """Return the diagnostic of the kind `name`; all text in it is made harmless and free of well-known secrets."""
    kind = _BY_NAME[name]
    related = tuple(Related(other.where, _clean(other.text)) for other in related)
    return Diagnostic(kind.id, kind.name, kind.severity, _clean(message), where, _clean(why), _clean(hint), related, fix)


def _clean(text: str) -> str:
    text = safe_line(redact(text[: 10 * MESSAGE_LIMIT]))
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"
