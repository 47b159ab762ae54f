"""A package comes from an index that has no mirror, or a mirror stands for no index.

## What it does

Where an instance has mirrors and no other way to the internet, looks for a mirror of each index
that packages come from: `pypi`, `pytorch` for torch and its siblings, and those under `indexes`. A
mirror of any other name stands for nothing.

## Why

What has no mirror cannot be fetched there.

## How to fix

Name a mirror for each index. One repository of Artifact Registry may stand for several.
"""

from __future__ import annotations

from provision.diagnostics import Route, RoutePart, Severity
from provision.rules.examples import example_spec
from provision.rules.package_lines import package_lines
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import workbench_instances
from provision.spelling import nearest_word

_OWN = ("pypi", "pytorch")


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        if not instance.target.mirrors:
            continue
        known = (*_OWN, *context.spec.indexes)
        for name in instance.target.mirrors:
            if name not in known:
                meant = nearest_word(name, known, 2)
                yield RULE.diagnostic(
                    f"{name} is no index, so this mirror stands for nothing",
                    instance.route("mirrors", name),
                    at=RoutePart.KEY,
                    why=f"Mirrors stand for {', '.join(known)}.",
                    help=f"write {meant}"
                    if meant
                    else "name the index under indexes, or leave the mirror out",
                )
        if instance.target.public_ip or instance.target.nat:
            continue
        for index, route in _used_indexes(context).items():
            if index not in instance.target.mirrors:
                yield RULE.diagnostic(
                    f"packages come from the index {index}, which has no mirror",
                    instance.route("mirrors"),
                    why="The instance has no other way to the internet, so they cannot be fetched.",
                    help=f"write {index}: ADDRESS under mirrors",
                    related=related_at(route, f"comes from {index}"),
                )


def _used_indexes(context: LintContext) -> dict[str, Route]:
    """Return the indexes that packages come from, each with the first line that does."""
    used: dict[str, Route] = {}
    for route, package in package_lines(context):
        if package.source == "pypi":
            used.setdefault(
                package.index
                or ("pytorch" if package.key in context.facts.torch_family else "pypi"),
                route,
            )
    return used


RULE = Rule(
    id="NET003",
    name="mirror-missing",
    severity=Severity.WARNING,
    sources=("docs.cloud.google.com, Workbench instances, create an instance (network)",),
    check=_check,
    bad=(
        Example(
            example_spec(nat=None, mirrors='{pypi: "https://packages.example.com/simple"}'),
            '{pypi: "https://packages.example.com/simple"}',
        ),
        Example(example_spec(mirrors='{pypy: "https://packages.example.com/simple"}'), "pypy"),
    ),
    good=examples(
        example_spec(nat=None, mirrors='{pytorch: "https://packages.example.com/simple"}'),
        example_spec(mirrors='{pypi: "https://packages.example.com/simple"}'),
    ),
)
