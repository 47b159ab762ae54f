"""Words that a shell offers for arguments and options: targets, rules, checks, GPUs and facts.

A shell waits for the answer, so nothing here validates a spec or loads a driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

Parameters = Mapping[str, Any]
"""The parameters on the command line, and `spec`."""

Words = Iterator[tuple[str, str]]
"""Words, each with its help."""

_MAX_SPEC_BYTES = 256 * 1024


def complete_word(
    subject: str, context: click.Context, incomplete: str, default_spec: str
) -> list[CompletionItem]:
    """Return the words of a subject that begin with `incomplete`, whatever their case."""
    parameters = {name: value for name, value in context.params.items() if value is not None}
    spec = parameters.get("spec", default_spec)
    if context.get_parameter_source("spec") is not ParameterSource.COMMANDLINE:
        # click does not assign the arguments before an option that lacks its value.
        spec = next(iter(context.args), spec)
    words: dict[str, str] = {}
    # The message of a broken spec or table would appear in the line that a person types.
    with suppress(Exception):
        words.update(LISTS[subject]({**parameters, "spec": spec}))
    matching = (word for word in words if word.lower().startswith(incomplete.lower()))
    return [CompletionItem(word, help=words[word] or None) for word in matching]


def list_targets(parameters: Parameters) -> Words:
    """Yield the targets of the spec on the command line, else of provision.yaml."""
    path = Path(parameters.get("report", parameters["spec"]))
    if not path.is_file() or path.stat().st_size > _MAX_SPEC_BYTES:
        return
    from provision.adapters import RealSystem
    from provision.source.loader import read_spec_file
    from provision.source.nodes import Scalar

    for source in read_spec_file(path, RealSystem()):
        if source.tree is None:
            continue
        targets = source.tree.children.get("targets")
        if targets is None and source.tree.children:
            from provision.spec import DEFAULT_TARGET

            yield DEFAULT_TARGET, ""
        for target, declaration in targets.children.items() if targets else ():
            kind = declaration.children.get("kind")
            yield str(target), kind.node.value if kind and isinstance(kind.node, Scalar) else ""


def list_rules(_: Parameters) -> Words:
    """Yield the ids and the names of all findings."""
    from provision.rules import load_notebook_rules, load_registered_rules
    from provision.source import FINDING_KINDS

    for rule in load_registered_rules():
        yield rule.id, rule.summary
        yield rule.name, rule.summary
    for notebook_rule in load_notebook_rules():
        yield notebook_rule.id, notebook_rule.summary
        yield notebook_rule.name, notebook_rule.summary
    for kind in FINDING_KINDS:
        yield kind.id, kind.explanation
        yield kind.name, kind.explanation


def list_checks(_: Parameters) -> Words:
    """Yield the ids of the checks of a verification."""
    from provision.agent.probe.checks import CHECKS

    return ((check.id, check.title) for check in CHECKS)


def list_gpus(_: Parameters) -> Words:
    """Yield the names of GPUs."""
    from provision.facts import load_facts

    yield "none", "CPU only"
    for card in load_facts().cards:
        yield card.name, ""


def list_places(_: Parameters) -> Words:
    """Yield the places of `check` without runtimes and images: bash begins a new word at @."""
    from provision.commands.shared.places import list_places
    from provision.facts import load_facts

    places = list_places(load_facts())
    return ((place.name, place.description) for place in places if not place.version)


def list_kinds(_: Parameters) -> Words:
    """Yield the kinds of target."""
    from provision.kinds import registry_in_use

    for kind in registry_in_use.get().kinds:
        yield kind.name, (kind.model.__doc__ or "").strip().removesuffix(".")


def list_fact_lists(parameters: Parameters) -> Words:
    """Yield what `facts list` lists."""
    yield "places", "the places of provision check"
    yield from list_fact_tables(parameters)


def list_fact_tables(_: Parameters) -> Words:
    """Yield the tables of the facts."""
    return ((name, "") for name in _fact_tables())


def list_fact_keys(parameters: Parameters) -> Words:
    """Yield the first parts of the keys of the table on the command line, else of all tables.

    The other parts come after colons, at which bash begins another word.
    """
    tables = _fact_tables()
    name = parameters.get("table")
    for table in tables.values() if name is None else [tables[name]]:
        for row in table.rows:
            yield row.key.partition(":")[0], table.name


LISTS: dict[str, Callable[[Parameters], Words]] = {
    "targets": list_targets,
    "rules": list_rules,
    "checks": list_checks,
    "gpus": list_gpus,
    "places": list_places,
    "fact lists": list_fact_lists,
    "kinds": list_kinds,
    "fact tables": list_fact_tables,
    "fact keys": list_fact_keys,
}
"""The words of each subject that `completed_by` names."""


def _fact_tables() -> dict[str, Any]:
    from provision.facts import COMPILED_TABLES
    from provision.facts.table_lookup import load_tables

    return dict(load_tables(COMPILED_TABLES))
