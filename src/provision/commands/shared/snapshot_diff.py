"""Compare two snapshots: captures, descriptions of machines and reports, without a spec."""

from __future__ import annotations

from provision.commands.shared.snapshot_problems import find_problems, find_relations
from provision.facts import load_facts
from provision.facts.lazy_tables import load_symptoms
from provision.verification.diff.error_relevance import ErrorRelevance
from provision.verification.diff.layers import Weights
from provision.verification.diff.snapshot import Snapshot
from provision.verification.diff.snapshot_compare import compare_snapshots
from provision.verification.diff.snapshot_model import SnapshotComparison
from provision.verification.error_lookup.known_environment import KnownEnvironment
from provision.verification.error_lookup.symptoms import LookupContext, explain_error


def diff_snapshots(a: Snapshot, b: Snapshot, error: str | None) -> SnapshotComparison:
    """Return the comparison of two snapshots, ordered by an error if there is one.

    Args:
        a: The first snapshot.
        b: The second snapshot.
        error: The text of the error; None without one.
    """
    facts, symptoms = load_facts(), load_symptoms()
    problems = find_problems(a, b, facts), find_problems(b, a, facts)
    relations = find_relations(a, b, facts)
    relevance = None
    if error is not None:
        environments = tuple(
            KnownEnvironment(
                side.name,
                side.packages,
                str(side.values.get("python.version") or ""),
                side.values,
                side.kind == "capture",
            )
            for side in (a, b)
        )
        explanations = explain_error(
            error, symptoms, LookupContext(facts, environments=environments)
        )
        relevance = ErrorRelevance(error, explanations, facts)
    return compare_snapshots(a, b, problems, relations, Weights(symptoms, facts), relevance)
