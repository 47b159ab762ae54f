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
        "A mapping contains the same key twice; YAML readers differ in which of the values they "
        "use.",
    ),
    FindingKind(
        "YML003",
        "types-lost",
        "Without quotes, YAML reads a number, a boolean or null, and the original text is "
        "lost: 3.10 becomes 3.1.",
    ),
    FindingKind("YML004", "encoding", "The file is not UTF-8."),
    FindingKind(
        "YML005",
        "control-character",
        "The file contains a character that is not allowed in YAML, such as NUL or ESC.",
    ),
    FindingKind(
        "YML006",
        "empty-document",
        "The file or document contains nothing but comments.",
    ),
    FindingKind(
        "YML007",
        "limit",
        "The document, with its aliases expanded, exceeds the size or nesting limit for specs.",
    ),
    FindingKind(
        "YML008",
        "root-not-mapping",
        "A spec is a mapping of keys to values; this document is something else.",
    ),
    FindingKind(
        "YML009",
        "tag",
        "Tags such as !!python/object or !secret are not supported; only the core types of "
        "YAML 1.2 are.",
    ),
    FindingKind(
        "YML010",
        "alias",
        "An alias refers to an anchor that is not defined above it, or that contains the alias.",
    ),
    FindingKind(
        "YML011",
        "key-not-text",
        "Keys of a spec are strings, not numbers, booleans, null, lists, mappings or aliases.",
    ),
    FindingKind(
        "YML012",
        "merge-key",
        "The merge key << needs a mapping or a list of mappings.",
    ),
    FindingKind("YML013", "number", "A number is too long or not finite."),
    FindingKind(
        "YML014",
        "duplicate-anchor",
        "The same anchor is defined twice; an alias refers to the last one above it.",
        Severity.WARNING,
    ),
    FindingKind(
        "YML015",
        "yaml-version",
        "The document declares YAML 1.1 but is read as YAML 1.2, in which yes, no, on and off "
        "are strings.",
        Severity.WARNING,
    ),
    FindingKind(
        "SPC001",
        "unknown-key",
        "A spec has no such key at this position.",
    ),
    FindingKind("SPC002", "missing-key", "A required key is missing."),
    FindingKind(
        "SPC003",
        "wrong-type",
        "The value has the wrong type for its key, such as a list instead of a string.",
    ),
    FindingKind("SPC004", "not-a-choice", "The value is not one of the choices for its key."),
    FindingKind("SPC005", "bad-format", "The value does not have the format of its key."),
    FindingKind(
        "SPC006",
        "out-of-range",
        "The number or the length is outside the limits for its key.",
    ),
    FindingKind(
        "SPC007",
        "secret-written-out",
        "A secret is written in the spec; a spec must name secrets and never contain them.",
    ),
    FindingKind(
        "SPC008",
        "more-findings",
        "The spec has more errors of this kind than are shown.",
    ),
    FindingKind(
        "REF001",
        "extends-missing",
        "The file or profile that `extends` names does not exist or cannot be read.",
    ),
    FindingKind(
        "REF002",
        "extends-outside-root",
        "`extends` refers to a file outside the project folder.",
    ),
    FindingKind(
        "REF003",
        "extends-cycle",
        "A file extends itself, directly or through others.",
    ),
    FindingKind(
        "REF004",
        "extends-limit",
        "Too many files extend one another, or their total size is too large.",
    ),
    FindingKind(
        "REF005",
        "extends-unusable",
        "The file that `extends` names cannot be used: it has several documents, or errors.",
    ),
    FindingKind(
        "REF006",
        "code-not-found",
        "The folder that `code` names does not exist.",
    ),
    FindingKind(
        "REF007",
        "command-file-not-found",
        "The program that `verify.command` starts is not in the folder of `code`.",
        Severity.WARNING,
    ),
    FindingKind(
        "REF008",
        "model-config-unusable",
        "The config.json of the folder that `training.model.id` names is missing, outside the "
        "project, too large or not a JSON object.",
    ),
    FindingKind(
        "REF009",
        "package-source-unusable",
        "The folder or wheel file of a package cannot be used: it is missing, outside the "
        "project, or contains a different package.",
    ),
    FindingKind(
        "IMP001",
        "files-contradict",
        "Two lines of the files that `provision check` reads contradict each other.",
    ),
    FindingKind(
        "IMP002",
        "line-refused",
        "A line of a requirements file is not valid: pip refuses the whole file.",
    ),
    FindingKind(
        "IMP003",
        "include-not-read",
        "A file that a checked file includes was not read, so its content is not checked.",
        Severity.WARNING,
    ),
    FindingKind(
        "IMP004",
        "torch-build-unpublished",
        "A file pins a torch build that does not exist, such as `torch==2.4.0+cu126`.",
    ),
    FindingKind(
        "IMP005",
        "torch-build-without-index",
        "A file pins a torch build that only PyTorch's index has, but does not name this index.",
        Severity.WARNING,
    ),
    FindingKind(
        "IMP006",
        "python-excluded",
        "A file requires a Python version that the machine does not have.",
        Severity.WARNING,
    ),
    FindingKind(
        "SUP001",
        "suppression-unused",
        "A comment `# provision: ignore[ID]` names a rule that has no finding there.",
        Severity.WARNING,
    ),
    FindingKind(
        "SUP002",
        "suppression-of-unknown-rule",
        "A comment `# provision: ignore[ID]` names a rule that does not exist.",
        Severity.WARNING,
    ),
    FindingKind(
        "SUP003",
        "suppression-without-reason",
        "A comment `# provision: ignore[ID]` accepts findings without a reason.",
        Severity.WARNING,
    ),
    FindingKind(
        "SUP004",
        "suppression-without-rules",
        "A comment `# provision: ignore` does not name the rules whose findings it accepts.",
        Severity.WARNING,
    ),
    FindingKind(
        "SUP005",
        "suppression-refused",
        "A comment names a rule whose findings cannot be accepted: text that cannot be read, a "
        "plaintext secret, or something that `plan` refuses anyway.",
        Severity.WARNING,
    ),
    FindingKind("POL001", "policy-gpu", "The project's policy does not allow a GPU."),
    FindingKind("POL002", "policy-region", "The project's policy does not allow a region."),
    FindingKind("POL003", "policy-machine", "The project's policy does not allow a machine type."),
    FindingKind(
        "POL004",
        "policy-cost",
        "A machine costs more per hour than the project's policy allows, or its price is unknown.",
    ),
    FindingKind(
        "POL005",
        "policy-field-missing",
        "A spec does not set a field that the project's policy requires.",
    ),
    FindingKind(
        "POL006",
        "policy-rule-ignored",
        "A comment, the configuration or the baseline accepts a finding of a rule that the "
        "project's policy protects.",
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
