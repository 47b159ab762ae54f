"""Kinds of findings about a spec's text, shape and `extends`: id, name, severity, explanation."""

from __future__ import annotations

from dataclasses import dataclass

from provision.diagnostics import Diagnostic, Fix, Location, RelatedLocation, Severity
from provision.sanitize import escape_line, redact

MAX_MESSAGE_LENGTH = 400
"""Maximum code points of a message, so that a finding fits on a screen (our choice)."""


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A kind of finding, from which its documentation page is generated."""

    id: str
    name: str
    explanation: str
    severity: Severity = Severity.ERROR


FINDING_KINDS: tuple[FindingKind, ...] = (
    FindingKind("YML001", "syntax", "The text is not valid YAML."),
    FindingKind(
        "YML002",
        "duplicate-key",
        "A mapping holds the same key twice; YAML readers differ in which of the two they take.",
    ),
    FindingKind(
        "YML003",
        "types-lost",
        "Without quotes YAML reads a number, a boolean or null, and what was written is "
        "lost: 3.10 becomes 3.1.",
    ),
    FindingKind("YML004", "encoding", "The file is not UTF-8."),
    FindingKind(
        "YML005",
        "control-character",
        "The file holds a character that no text may hold, such as NUL or ESC.",
    ),
    FindingKind(
        "YML006",
        "empty-document",
        "There is nothing in the file or document but comments.",
    ),
    FindingKind(
        "YML007",
        "limit",
        "The document is larger or more deeply nested than a spec can sensibly be, or "
        "aliases make it so.",
    ),
    FindingKind(
        "YML008",
        "root-not-mapping",
        "A spec is a mapping of keys to values; this document is something else.",
    ),
    FindingKind(
        "YML009",
        "tag",
        "Tags such as !!python/object or !secret are not read; only the core types of YAML "
        "1.2 are.",
    ),
    FindingKind(
        "YML010",
        "alias",
        "An alias names an anchor that does not exist yet, or one that holds the alias itself.",
    ),
    FindingKind(
        "YML011",
        "key-not-text",
        "Keys of a spec are text: no numbers, booleans, null, lists, mappings or aliases.",
    ),
    FindingKind(
        "YML012",
        "merge-key",
        "The merge key << takes a mapping, or a list of mappings.",
    ),
    FindingKind("YML013", "number", "A number is too long or not finite."),
    FindingKind(
        "YML014",
        "duplicate-anchor",
        "The same anchor is set twice; an alias means the one that stands before it.",
        Severity.WARNING,
    ),
    FindingKind(
        "YML015",
        "yaml-version",
        "The document asks for YAML 1.1; it is read as YAML 1.2, where yes, no, on and off "
        "are text.",
        Severity.WARNING,
    ),
    FindingKind(
        "SPC001",
        "unknown-key",
        "The language of specs has no such key at this place.",
    ),
    FindingKind("SPC002", "missing-key", "A key that must be there is not."),
    FindingKind(
        "SPC003",
        "wrong-type",
        "The value has another shape than the key takes: a list for a text, a text for a number.",
    ),
    FindingKind("SPC004", "not-a-choice", "The value is none of those that the key knows."),
    FindingKind("SPC005", "bad-format", "The text is not written the way the key asks for."),
    FindingKind(
        "SPC006",
        "out-of-range",
        "The number or the length is outside the bounds of the key.",
    ),
    FindingKind(
        "SPC007",
        "secret-written-out",
        "A secret stands in the spec itself; specs name secrets, they never hold them.",
    ),
    FindingKind(
        "SPC008",
        "more-findings",
        "There are more findings about the shape of the spec than are shown.",
    ),
    FindingKind(
        "REF001",
        "extends-missing",
        "The file or profile that `extends` names does not exist or cannot be read.",
    ),
    FindingKind(
        "REF002",
        "extends-outside-root",
        "`extends` leads out of the folder that holds the project.",
    ),
    FindingKind(
        "REF003",
        "extends-cycle",
        "A file extends itself, directly or through others.",
    ),
    FindingKind(
        "REF004",
        "extends-limit",
        "Too many files extend one another, or they are too large together.",
    ),
    FindingKind(
        "REF005",
        "extends-unusable",
        "The file that `extends` names is no spec: several documents, or text with errors.",
    ),
)


def make_finding(
    name: str,
    message: str,
    where: Location,
    *,
    why: str = "",
    hint: str = "",
    related: tuple[RelatedLocation, ...] = (),
    fix: Fix | None = None,
) -> Diagnostic:
    """Return a diagnostic of a named kind; its texts are escaped and secrets redacted."""
    kind = next(kind for kind in FINDING_KINDS if kind.name == name)
    related = tuple(RelatedLocation(other.where, _clean(other.text)) for other in related)
    return Diagnostic(
        kind.id,
        kind.name,
        kind.severity,
        _clean(message),
        where,
        _clean(why),
        _clean(hint),
        related,
        fix,
    )


def _clean(text: str) -> str:
    text = escape_line(redact(text[: 10 * MAX_MESSAGE_LENGTH]))
    return text if len(text) <= MAX_MESSAGE_LENGTH else text[: MAX_MESSAGE_LENGTH - 1] + "…"
