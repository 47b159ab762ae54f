"""Problems of a snapshot: what the checks, the facts and the rules report on its versions."""

from __future__ import annotations

import re
from typing import Any

from packaging.utils import canonicalize_name
from pydantic import ValidationError

from provision.diagnostics import Diagnostic, Route, Severity
from provision.facts import Facts, cuda_of
from provision.rules import LintContext, ResolvedSet, run_rules
from provision.rules.registry import load_registered_rules
from provision.spec import Spec
from provision.verification.diff.build_problems import (
    find_build_problems,
    find_card,
    torch_flavour,
)
from provision.verification.diff.problems import Problem, find_machine_problems
from provision.verification.diff.relations import find_changed_arguments, find_lost_abilities
from provision.verification.diff.snapshot import Snapshot

_AREAS = ("PKG", "PYT")
"""Rules about versions that are installed; others are about what a spec declares."""
_REPORTED = (Severity.ERROR, Severity.WARNING)
_WORD = re.compile(r"[A-Za-z][\w.-]*\w")


def find_problems(snapshot: Snapshot, other: Snapshot, facts: Facts) -> tuple[Problem, ...]:
    """Return the problems of a snapshot, seen next to the other side."""
    return (
        *find_build_problems(snapshot, facts),
        *_package_problems(snapshot, facts),
        *find_machine_problems(snapshot, other, facts),
        *find_lost_abilities(snapshot, other, facts),
    )


def find_relations(a: Snapshot, b: Snapshot, facts: Facts) -> tuple[Problem, ...]:
    """Return the problems of programs that move from one side to the other."""
    return tuple(find_changed_arguments(a, b, facts))


class _InstalledText:
    """The text of a spec that nobody wrote."""

    def text(self, route: Route) -> str | None:  # noqa: ARG002
        return None

    def is_plain(self, route: Route) -> bool:  # noqa: ARG002
        return False


class _InstalledContext(LintContext):
    """A context whose messages are about installed packages."""

    @property
    def chosen(self) -> str:
        return "installed"

    @property
    def package_list(self) -> str:
        return "installed"


def _package_problems(snapshot: Snapshot, facts: Facts) -> tuple[Problem, ...]:
    versions = {
        name: version.partition("+")[0] for name, version in sorted(snapshot.packages.items())
    }
    flavour = torch_flavour(snapshot, facts)
    spec = _validated(_describe(snapshot, versions, flavour, facts))
    if spec is None or not versions:
        return ()
    resolved = ResolvedSet(versions, spec.python, flavour or None)
    context = _InstalledContext(spec, _InstalledText(), facts, resolved)
    rules = tuple(rule for rule in load_registered_rules() if rule.id.startswith(_AREAS))
    findings = run_rules(context, rules)
    return tuple(
        _problem(finding, versions) for finding in findings if finding.severity in _REPORTED
    )


def _describe(
    snapshot: Snapshot, versions: dict[str, str], flavour: str, facts: Facts
) -> dict[str, Any]:
    """Return the spec of a snapshot, as far as rules about packages read it."""
    card = find_card(snapshot, facts)
    has_trainer = "transformers" in versions and "torch" in versions
    return {
        "python": str(snapshot.values.get("python.minor") or "3.12"),
        "gpu": card.name if card and flavour not in ("", "cpu") else "none",
        "cuda": cuda_of(flavour) if card and flavour not in ("", "cpu") else "auto",
        "packages": [f"{name}=={version}" for name, version in versions.items()],
        "targets": {"here": {"kind": "local"}},
        **({"training": {"framework": "hf-trainer"}} if has_trainer else {}),
    }


def _validated(data: dict[str, Any]) -> Spec | None:
    try:
        return Spec.model_validate(data)
    except ValidationError:
        pass
    # A version or a name that no spec may have: rules then see what is resolved only.
    try:
        return Spec.model_validate({**data, "packages": ["packaging"]})
    except ValidationError:
        return None


def _problem(finding: Diagnostic, versions: dict[str, str]) -> Problem:
    words = (str(canonicalize_name(word)) for word in _WORD.findall(finding.message))
    names = [name for name in dict.fromkeys(words) if name in versions]
    missing = [
        str(canonicalize_name(word))
        for word in _WORD.findall(finding.help)
        if str(canonicalize_name(word)) not in versions
    ]
    keys = [f"package.{name}" for name in (*names, *missing)]
    if finding.id.startswith("PYT") or " Python " in finding.message:
        keys.insert(0, "python.minor")
    return Problem(
        finding.id,
        " ".join(names[:2]),
        finding.severity,
        finding.message,
        finding.why,
        finding.help,
        tuple(keys) or ("packages.count",),
        (finding.id,),
        finding.source,
    )
