"""Applies the comments of a spec that accept findings, and reports comments without effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from provision.diagnostics import (
    Diagnostic,
    Severity,
    Span,
    SuppressedFinding,
    SuppressionKind,
)
from provision.rules.registry import load_notebook_rules, load_registered_rules
from provision.source import FINDING_KINDS, Source
from provision.source.findings import make_finding
from provision.source.suppression_comments import SuppressionComment, find_suppression_comments
from provision.spelling import did_you_mean

REFUSED_ANYWAY = frozenset(
    {
        *("GCP004", "GCP008", "GCP012", "GCP021", "GCP022", "GCP023", "GCP024"),
        *("IMG021", "IMG023", "IMG025", "IMG026", "SEC002", "SEC004", "SPC009"),
    }
)
"""Rules that report what `plan` and `lock` refuse: an accepted finding would change nothing."""
_SECRETS = frozenset({"SEC001"})
_BUILTIN = "builtin:"


def is_ignorable(rule: str) -> bool:
    """Return whether a finding of a rule can be accepted.

    Text that cannot be read, secrets in the clear, and what `plan` refuses cannot.
    """
    return rule not in REFUSED_ANYWAY | _SECRETS and not is_about_text(rule)


def is_about_text(rule: str) -> bool:
    """Return whether a rule reports that a text, or a rule itself, could not be checked."""
    return rule.startswith("BUG") or any(
        kind.severity is Severity.ERROR for kind in FINDING_KINDS if kind.id == rule
    )


def split_suppressed(
    source: Source, findings: Iterable[Diagnostic]
) -> tuple[tuple[Diagnostic, ...], tuple[SuppressedFinding, ...]]:
    """Return the findings that no comment accepts, and those that one accepts."""
    comments = _comments_of(source)
    if not comments:
        return tuple(findings), ()
    kept, suppressed = [], []
    for finding in findings:
        accepting = next((one for one in comments if _covers(one, finding, source)), None)
        if accepting is None:
            kept.append(finding)
        else:
            suppressed.append(
                SuppressedFinding(
                    finding,
                    SuppressionKind.COMMENT,
                    accepting.reason,
                    accepting.comment.span,
                )
            )
    return tuple(kept), tuple(suppressed)


def check_comments(source: Source, findings: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the findings about the comments in a valid spec's own file.

    `findings` are all findings on the spec, before the comments are applied.
    """
    problems: list[Diagnostic] = []
    for comment in _comments_of(source):
        if comment.comment.text.name == source.name:
            problems += _check_comment(comment, source, findings)
    return tuple(problems)


def _check_comment(
    comment: SuppressionComment, source: Source, findings: Sequence[Diagnostic]
) -> Iterator[Diagnostic]:
    if not comment.ids:
        yield make_finding(
            "suppression-without-rules",
            "the comment does not name a rule, so it has no effect",
            comment.comment.span,
            hint="name the rules: `# provision: ignore[PKG001] reason`",
        )
        return
    if not comment.reason:
        yield make_finding(
            "suppression-without-reason",
            f"the comment gives no reason for ignoring {', '.join(comment.ids)}",
            comment.comment.span,
            hint="write the reason after the brackets",
        )
    for rule in comment.ids:
        if any(finding.id == rule and _covers(comment, finding, source) for finding in findings):
            continue
        if rule not in _known_rules():
            yield make_finding(
                "suppression-of-unknown-rule",
                f"there is no rule {rule}",
                _span_of(comment, rule),
                hint=did_you_mean(rule.upper(), _known_rules())
                or "`provision explain ID` prints the page of a rule",
            )
        elif rule.startswith("SUP") or not is_ignorable(rule):
            yield make_finding(
                "suppression-refused",
                f"findings of {rule} cannot be ignored with a comment",
                _span_of(comment, rule),
                hint="delete the comment, and fix the finding",
            )
        else:
            yield _unused(comment, rule)


def _unused(comment: SuppressionComment, rule: str) -> Diagnostic:
    finding = make_finding(
        "suppression-unused",
        f"there is no {rule} finding to ignore here",
        _span_of(comment, rule),
        hint=f"remove {rule} from the comment",
    )
    if rule not in _rules_on_locks():
        return finding
    why = "The rule also checks the lock, which `lint` does not read."
    return finding._replace(severity=Severity.INFO, why=why)


def _comments_of(source: Source) -> list[SuppressionComment]:
    """Return the comments of the document's own part of its file, and of files it extends."""
    return [
        comment
        for name, text in source.texts.items()
        if not name.startswith(_BUILTIN)
        for comment in find_suppression_comments(text)
        if name != source.name or comment.document == source.document
    ]


def _covers(comment: SuppressionComment, finding: Diagnostic, source: Source) -> bool:
    if finding.id not in comment.ids or not is_ignorable(finding.id):
        return False
    span, covered = source.span(finding.where), comment.covered
    return span.file == covered.text.name and covered.start <= span.start.offset < max(
        covered.end, covered.start + 1
    )


def _span_of(comment: SuppressionComment, rule: str) -> Span:
    """Return the span of a rule's id in a comment."""
    text, start, end = comment.comment
    offset = text.content.find(rule, start, end)
    return text.span(offset, offset + len(rule))


@cache
def _known_rules() -> frozenset[str]:
    ids = [rule.id for rule in load_registered_rules()]
    ids += [rule.id for rule in load_notebook_rules()]
    return frozenset((*ids, *(kind.id for kind in FINDING_KINDS)))


@cache
def _rules_on_locks() -> frozenset[str]:
    """Return the rules that may report a resolved set only."""
    return frozenset(
        rule.id
        for rule in load_registered_rules()
        if any(example.resolved is not None for example in rule.bad)
    )
