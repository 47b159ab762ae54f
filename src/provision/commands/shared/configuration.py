"""The configuration of a project for `lint`, and its application to findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from provision.diagnostics import Diagnostic, Severity, SuppressedFinding, SuppressionKind
from provision.errors import UsageError
from provision.rules.policy import Policy
from provision.spelling import did_you_mean

NO_POLICY = Policy()
RULE = re.compile(r"[A-Z]{3}[0-9]{3}")
RULE_OR_AREA = re.compile(r"[A-Z]{3}[0-9]{0,3}")


@dataclass(frozen=True, slots=True)
class FileIgnores:
    """Rules whose findings are accepted in the files that a pattern matches."""

    pattern: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FactsPin:
    """The archive of the facts that a project uses: a file, or one with this hash on an index.

    `position` is the file, line and column of the pin.
    """

    sha256: str
    position: str
    file: Path | None = None
    index: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        """The archive in words."""
        return str(self.file) if self.file is not None else f"{self.name} on {self.index}"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration of the specs below a folder; that of an empty file by default.

    Attributes:
        folder: the folder of the file.
        name: its display name; "" without a file.
        select: the rules to report, as ids or the letters of an area; () for all.
        ignore: the rules not to report.
        severities: severities that replace those of rules.
        file_ignores: the rules accepted in certain files.
        fail_on: the lowest severity that fails `lint`.
        policy: what the specs may declare.
        facts: the facts to use; None for those of the installed version.
    """

    folder: Path = Path()
    name: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severities: Mapping[str, Severity] = field(default_factory=dict)
    file_ignores: tuple[FileIgnores, ...] = ()
    fail_on: Severity = Severity.ERROR
    policy: Policy = NO_POLICY
    facts: FactsPin | None = None

    def split_accepted(
        self, path: Path, findings: Iterable[Diagnostic]
    ) -> tuple[tuple[Diagnostic, ...], tuple[SuppressedFinding, ...]]:
        """Return the findings on a file to report, and those accepted in files with its name.

        Findings of rules that are not selected or that are ignored are in neither; those about a
        text that cannot be checked are always reported.
        """
        kept, accepted = [], []
        ignores = self._find_ignores(path)
        for finding in findings:
            if finding.id.startswith(self.policy.never_ignore):
                kept.append(finding)
                continue
            severity = self.severities.get(finding.id, finding.severity)
            changed = finding._replace(severity=severity)
            if self._is_reported(finding.id):
                if finding.id.startswith(ignores.rules):
                    reason = f"per-file-ignores of {ignores.pattern}"
                    kind = SuppressionKind.CONFIGURATION
                    accepted.append(SuppressedFinding(changed, kind, reason))
                else:
                    kept.append(changed)
        return tuple(kept), tuple(accepted)

    def _is_reported(self, rule: str) -> bool:
        if not self.select and not self.ignore:
            return True
        from provision.rules.suppressions import is_about_text

        selected = not self.select or rule.startswith(self.select)
        return is_about_text(rule) or (selected and not rule.startswith(self.ignore))

    def _find_ignores(self, path: Path) -> FileIgnores:
        """Return all rules that are accepted in a file, with the patterns that match it."""
        try:
            name = path.absolute().relative_to(self.folder).as_posix()
        except ValueError:
            return FileIgnores("", ())
        matching = [item for item in self.file_ignores if matches_pattern(name, item.pattern)]
        rules = tuple(rule for item in matching for rule in item.rules)
        return FileIgnores(", ".join(item.pattern for item in matching), rules)


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings of the command line, which precede those of the configuration.

    `select`, `fail_on` and `policy` replace the configuration's, `ignore` is added to it.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: Severity | None = None
    policy: Policy | None = None

    def apply(self, configuration: Configuration) -> Configuration:
        """Return a configuration with these settings."""
        if self == NO_OVERRIDES:
            return configuration
        return replace(
            configuration,
            select=self.select or configuration.select,
            ignore=(*configuration.ignore, *self.ignore),
            fail_on=self.fail_on or configuration.fail_on,
            policy=configuration.policy if self.policy is None else self.policy,
        )


NO_OVERRIDES = Overrides()
NO_CONFIGURATION = Configuration()


def read_overrides(select: Iterable[str], ignore: Iterable[str], fail_on: str | None) -> Overrides:
    """Return the settings of the command line; each word may name several rules with commas.

    Raises:
        UsageError: there is no such rule, or its findings cannot be ignored.
    """
    from provision.rules.suppressions import is_about_text

    def refuse(what: str, hint: str) -> None:
        raise UsageError(what, hint=hint)

    selected, ignored = (
        tuple(filter(None, (rule.strip() for word in words for rule in word.split(","))))
        for words in (select, ignore)
    )
    for rule in (*selected, *ignored):
        check_rule(rule, RULE_OR_AREA, refuse)
    for rule in filter(is_about_text, ignored):
        raise UsageError(
            f"findings of {rule} cannot be ignored",
            why="this rule reports problems that prevent further checks",
        )
    return Overrides(selected, ignored, Severity(fail_on) if fail_on else None)


def matches_pattern(name: str, pattern: str) -> bool:
    """Return whether a pattern matches a path with slashes.

    `*` and `?` match within a name, `**/` matches folders. A pattern without a slash matches the
    last name of the path.
    """
    if "/" not in pattern:
        name = name.rpartition("/")[2]
    expression = re.escape(pattern)
    for sign, meaning in (
        (r"\*\*/", "(?:[^/]+/)*"),
        (r"\*\*", ".*"),
        (r"\*", "[^/]*"),
        (r"\?", "[^/]"),
    ):
        expression = expression.replace(sign, meaning)
    return re.fullmatch(expression, name) is not None


def check_rule(rule: str, pattern: re.Pattern[str], refuse: Callable[[str, str], Any]) -> None:
    """Call `refuse` with the reason and a hint if there is no such rule or area."""
    from provision.commands.explain import all_pages

    ids = [page.id for page in all_pages()]
    if pattern.fullmatch(rule) and any(page_id.startswith(rule) for page_id in ids):
        return
    hint = (
        did_you_mean(rule.upper(), ids)
        or "use the name of a rule, such as PKG001, or of an area, such as PKG"
    )
    refuse(f"there is no rule {rule}", hint)
