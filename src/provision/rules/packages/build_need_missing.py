"""A package is locked as source, and something that its build needs is not in the environment.

## What it does

In the resolved set, looks for what the build of flash-attn, causal-conv1d, mamba-ssm, deepspeed or
gptqmodel imports (torch, ninja, setuptools, wheel, packaging, psutil), if such a package is locked
as source. The declared build requirements of a source distribution (`requires` of `[build-system]`,
else setuptools) are locked with it and need no line.

## Why

It is built in the environment that it is for, so that it is built against the locked torch. Nothing
else is there: no second set of packages that only the build sees. Several of these packages do not
declare what their setup.py imports, and the build ends in "No module named 'wheel'".

## How to fix

Add what is missing to `packages`.
"""

from __future__ import annotations

from provision.diagnostics import Insert, Severity
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import package_lines
from provision.rules.rule import Example, Findings, LintContext, ResolvedSet, Rule


def _check(context: LintContext) -> Findings:
    if context.resolved is None:
        return
    versions = context.resolved.versions
    for route, package in package_lines(context):
        known = context.facts.source_only.get(package.key)
        if known is None or package.key not in context.resolved.built_packages:
            continue
        missing = [name for name in known.packages if name not in versions]
        if not missing:
            continue
        names = ", ".join(missing)
        yield RULE.diagnostic(
            f"{package.key} {versions[package.key]} is built from source, "
            f"and {names} {'is' if len(missing) == 1 else 'are'} not there for it",
            route,
            evidence=known.evidence,
            why="It is built in the environment that it is for, with nothing but the packages "
            "of the lock.",
            help=f"add {names} to the packages",
            fix=unsafe_fix(
                f"add {names}", *(Insert(("packages",), None, name) for name in missing)
            ),
            source=known.evidence.source,
        )


_SPEC = 'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: [torch==2.8.0, '

RULE = Rule(
    id="PKG026",
    name="build-need-missing",
    severity=Severity.ERROR,
    sources=(
        "setup.py and pyproject.toml of the source distributions on PyPI",
        "PEP 517, Build environment",
    ),
    check=_check,
    bad=(
        Example(
            _SPEC + "{name: deepspeed, build: true}]\n",
            "{name: deepspeed, build: true}",
            ResolvedSet(
                {"torch": "2.8.0+cu128", "deepspeed": "0.19.8"},
                "3.12",
                "cu128",
                frozenset({"deepspeed"}),
            ),
        ),
        Example(
            _SPEC + '{name: flash-attn, version: "==2.8.3", build: true}]\n',
            '{name: flash-attn, version: "==2.8.3", build: true}',
            ResolvedSet(
                {"torch": "2.8.0+cu128", "flash-attn": "2.8.3", "setuptools": "80.9.0"},
                "3.12",
                "cu128",
                frozenset({"flash-attn"}),
            ),
        ),
    ),
    good=(
        Example(
            _SPEC + "{name: deepspeed, build: true}]\n",
            resolved=ResolvedSet(
                {"torch": "2.8.0+cu128", "deepspeed": "0.19.8", "setuptools": "80.9.0"},
                "3.12",
                "cu128",
                frozenset({"deepspeed"}),
            ),
        ),
        Example(
            _SPEC + "{name: deepspeed, build: true}]\n",
            resolved=ResolvedSet({"torch": "2.8.0+cu128", "deepspeed": "0.19.8"}, "3.12", "cu128"),
        ),
        Example(_SPEC + "{name: our-kernels, build: true}]\n"),
    ),
)
