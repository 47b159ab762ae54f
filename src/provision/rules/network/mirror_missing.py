"""An index has no mirror, or a mirror does not match any index.

## What it does

If an instance has mirrors and no other access to the internet, looks for a mirror of each index
that packages come from: `pypi`, `pytorch` for torch and its siblings, and those under `indexes`. A
mirror with any other name has no effect.

## Why

Packages from an index without a mirror cannot be downloaded there.

## How to fix

Set a mirror for each index. One Artifact Registry repository can be the mirror for several indexes.
"""

from __future__ import annotations

from provision.diagnostics import Route, RoutePart, Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.package_lines import package_lines
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.spelling import nearest_word

_OWN = ("pypi", "pytorch")


def _check(context: LintContext) -> Findings:
    known = (*_OWN, *context.spec.indexes)
    for target, fields in context.targets_of(WorkbenchTarget):
        if not fields.mirrors:
            continue
        for name in fields.mirrors:
            if name not in known:
                meant = nearest_word(name, known, 2)
                yield RULE.diagnostic(
                    f"the mirror {name} does not match any index",
                    target.route_to("mirrors", name),
                    at=RoutePart.KEY,
                    why=f"The indexes in this spec are {', '.join(known)}.",
                    help=f"use {meant}"
                    if meant
                    else f"add {name} to `indexes`, or remove the mirror",
                )
        if fields.public_ip or fields.nat:
            continue
        for index, route in _used_indexes(context).items():
            if index not in fields.mirrors:
                yield RULE.diagnostic(
                    f"packages come from the index `{index}`, which has no mirror",
                    target.route_to("mirrors"),
                    why="Without a public IP or Cloud NAT, the instance can download packages only "
                    "from mirrors.",
                    help=f"add `{index}: URL` to `mirrors`",
                    related=related_at(route, f"uses the index `{index}`"),
                )


def _used_indexes(context: LintContext) -> dict[str, Route]:
    """Return the indexes that packages come from, each with the first line that does."""
    used: dict[str, Route] = {}
    for route, package in package_lines(context):
        if package.source == "pypi":
            default = "pytorch" if package.key in context.facts.torch_family else "pypi"
            used.setdefault(package.index or default, route)
    return used


RULE = Rule(
    id="NET003",
    name="mirror-missing",
    severity=Severity.WARNING,
    sources=("docs.cloud.google.com, Workbench instances, create an instance (network)",),
    check=_check,
    bad=examples(
        example_spec(nat=None, mirrors='«{pypi: "https://packages.example.com/simple"}»'),
        example_spec(mirrors='{«pypy»: "https://packages.example.com/simple"}'),
    ),
    good=examples(
        example_spec(nat=None, mirrors='{pytorch: "https://packages.example.com/simple"}'),
        example_spec(mirrors='{pypi: "https://packages.example.com/simple"}'),
    ),
)
