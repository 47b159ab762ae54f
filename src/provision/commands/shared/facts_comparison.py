"""Compares an imported report with the facts, and runs the rules on what was observed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision import rules
from provision.commands.shared.load import LoadedSpec, run_rules_on_lock
from provision.diagnostics import Diagnostic
from provision.facts import Facts
from provision.rules import LintContext
from provision.spec import Spec
from provision.targets import TargetContext, get_driver
from provision.targets.capabilities import AcceptsReports, FactsComparison


def compare_with_facts(
    loaded: LoadedSpec, context: TargetContext, document: Mapping[str, Any]
) -> FactsComparison:
    """Return how a report differs from the facts; nothing for a kind that accepts no reports."""

    def run_rules(spec: Spec, facts: Facts) -> Iterator[Diagnostic]:
        yield from rules.run_rules(LintContext(spec, loaded.source, facts))
        yield from run_rules_on_lock(spec, context.lock, loaded.source, facts)

    driver = get_driver(context)
    if not isinstance(driver, AcceptsReports):
        return FactsComparison()
    return driver.compare_with_facts(context, loaded.spec, loaded.facts, document, run_rules)
