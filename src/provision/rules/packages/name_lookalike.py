"""A package name is almost the same as a well-known one.

## What it does

Compares unknown names with well-known ones: a letter added, missing or changed, two adjacent
letters swapped, or a missing hyphen. Names of four letters are only compared for swapped letters
and hyphens, because many real names are that short; long names are compared for two such
differences. A known name is never reported.

## Why

Such names are misspellings, or packages that were published under a misspelled name so that people
install them by mistake.

## How to fix

Correct the name. If the package really has that name, nothing needs to change.
"""

from __future__ import annotations

from functools import lru_cache

from provision.diagnostics import Severity
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import index_lines, rename_edit
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spelling import edit_distance

SHORT = 5
"""Below this length of the known name only swaps count: dash and dask are both real. At this
length, 2 of some 560 other names in Colab's package lists are near a known one.
"""
LONG = 11
"""From this length of the known name on, two differences count: jupyterhub and jupyterlab, ten
letters, are both real; no other name in Colab's lists is near a known one.
"""


def _check(context: LintContext) -> Findings:
    facts = context.facts
    for route, package in index_lines(context):
        name = package.key
        if package.source == "conda" or len(name) < 4:
            continue
        if name in facts.popular or name in facts.seen or name in facts.replaced:
            continue
        meant = _nearest_popular_name(name, facts.popular)
        if meant is None:
            continue
        yield RULE.diagnostic(
            f"{name} looks like {meant}, a well-known package",
            route,
            why=(
                "Malicious packages are published under misspelled names, so that people "
                "install them by mistake."
            ),
            help=f"use {meant}, or keep this line if {name} is the package you need",
            fix=unsafe_fix(f"use {meant}", rename_edit(context, route, package, meant)),
        )


@lru_cache(maxsize=4096)
def _nearest_popular_name(name: str, popular: frozenset[str]) -> str | None:
    """Return the popular name that is probably meant; hyphens are ignored."""
    joined = {known.replace("-", ""): known for known in sorted(popular, reverse=True)}
    letters = name.replace("-", "")
    if letters in joined:
        return joined[letters]
    near = [
        (distance, known)
        for known in joined
        if (distance := edit_distance(letters, known, 2)) <= _max_distance(letters, known)
    ]
    return joined[min(near)[1]] if near else None


def _max_distance(name: str, known: str) -> int:
    """Return how many differences still make one name look like the other."""
    if len(known) >= LONG:
        return 2
    if len(known) >= SHORT or sorted(name) == sorted(known):
        return 1
    return 0


RULE = Rule(
    id="PKG005",
    name="name-lookalike",
    severity=Severity.WARNING,
    sources=("names on the public package index", "pytorch/pytorch#92226"),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [numpy, «pstuil>=5»]\n',
        'gpu: none\npython: "3.11"\npackages: [«{name: transfomers, version: ">=5"}»]\n',
        'gpu: none\npython: "3.11"\npackages: [«torch-vision»]\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\n'
        "packages: [psutil, transformers, accelerate, torchvision, scikit_learn, our-own-tools]\n",
        'gpu: none\npython: "3.11"\n'
        "packages: [dash, jupyterhub, torchx, cattrs, tomli-w, torchio]\n",
    ),
)
