"""A package that Colab's kernel has already loaded is replaced.

## What it does

Compares numpy and Pillow with those of the runtime, if packages are installed on top of it
(`isolation: system`).

## Why

Colab's kernel imports both when it starts. A version that is installed afterwards is on disk while
the old one stays in memory: "numpy.dtype size changed, may indicate binary incompatibility". A
restart fixes this, and interrupts a "Run all".

## How to fix

Use the runtime's version, and no restart is needed; one lock applies to all targets, so the other
targets get this version too. Or keep your version, and restart once.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import (
    base_runtimes,
    replaced_packages,
    request_fix,
    route_of_line,
)
from provision.rules.examples import colab_spec
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
)


def _check(context: LintContext) -> Findings:
    names = [row.package for row in context.facts.protected.values() if row.restart]
    for system in base_runtimes(context):
        changes = tuple(replaced_packages(context, system, names))
        # A resolved set needs one restart for all of its packages.
        groups = [(change,) for change in changes] if context.resolved is None else [changes]
        for group in filter(None, groups):
            fix = request_fix(context, *group)
            replaced = " and ".join(
                f"{change.requested} replaces {change.package} {change.installed}"
                for change in group
            )
            yield RULE.diagnostic(
                f"target `{system.target.name}`: {replaced}, which Colab's kernel has already "
                "loaded, so a restart is required",
                route_of_line(group),
                why=(
                    "Until the restart, the old version is in memory and the new one is on "
                    "disk, which causes errors such as `numpy.dtype size changed`. A restart "
                    "interrupts Run all."
                ),
                help=(
                    f"{fix.title} (the version in the runtime), or restart the kernel once after "
                    "the installation"
                ),
                related=system.related,
                fix=fix,
            )


RULE = Rule(
    id="IMG029",
    name="colab-restart",
    severity=Severity.WARNING,
    sources=(
        "googlecolab/colabtools#5238",
        "googlecolab/colabtools#5204",
        "googlecolab/colabtools at 3c07d776, _reprs.py: the kernel's imports",
    ),
    check=_check,
    bad=examples(
        colab_spec('[«"numpy>=2.1"»]'),
        example(
            colab_spec("[«numpy»]"), ResolvedSet({"numpy": "2.4.1", "pillow": "12.0.0"}, "3.12")
        ),
        colab_spec("[«pillow==10.0.0»]"),
    ),
    good=examples(
        colab_spec("[numpy==2.0.2, pillow]"),
        Example(
            colab_spec("[numpy]"),
            resolved=ResolvedSet({"numpy": "2.0.2", "pillow": "11.3.0"}, "3.12"),
        ),
        colab_spec('["numpy>=2.1"]', target='runtime: "2026.07", isolation: venv'),
    ),
)
