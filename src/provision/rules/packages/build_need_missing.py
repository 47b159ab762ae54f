"""A package is built from source, and a build requirement is not in the environment.

## What it does

Checks the build requirements of flash-attn, causal-conv1d, mamba-ssm, deepspeed and gptqmodel
(torch, ninja, setuptools, wheel, packaging, psutil) if such a package is locked as source. Before
the lock is resolved, it warns about those that `packages` does not list and that no listed package
is known to require. The build requirements that a source distribution declares (`requires` of
`[build-system]`, otherwise setuptools) are locked with it and need no line in the spec.

## Why

The package is built inside its own environment, against the locked torch, without build isolation.
Several of these packages do not declare what their setup.py imports, and the build fails with "No
module named 'wheel'".

## How to fix

Add the missing packages to `packages`.
"""

from __future__ import annotations

from provision.diagnostics import Insert, Severity
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import find_line, index_lines
from provision.rules.package_requirements import find_listed_provider, is_known_dependency
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
)
from provision.rules.torch_presence import has_torch
from provision.spelling import join_words

_BROUGHT_BY_TORCH = frozenset({"setuptools"})
"""Requirements of torch itself on Python 3.12 and newer, and of its triton on older ones (METADATA
of torch 2.8.0 and triton 3.4.0). Once it is resolved, the set decides.
"""


def _check(context: LintContext) -> Findings:
    if context.resolved is None:
        yield from _unresolved_findings(context)
        return
    versions = context.resolved.versions
    for route, package in index_lines(context):
        known = context.facts.source_only.get(package.key)
        if known is None or package.key not in context.resolved.built_packages:
            continue
        missing = [name for name in known.packages if name not in versions]
        if not missing:
            continue
        names = join_words(missing)
        yield RULE.diagnostic(
            f"{package.key} {versions[package.key]} is built from source, and its build needs "
            f"{names}",
            route,
            evidence=known.evidence,
            why=(
                "The package is built inside the environment, which contains only the locked "
                "packages."
            ),
            help=f"add {names} to `packages`",
            fix=unsafe_fix(
                f"add {names}", *(Insert(("packages",), None, name) for name in missing)
            ),
            source=known.evidence.source,
        )


def _unresolved_findings(context: LintContext) -> Findings:
    brought = _BROUGHT_BY_TORCH if has_torch(context) else frozenset[str]()
    for route, package in index_lines(context):
        known = context.facts.source_only.get(package.key)
        if known is None or not package.is_built or package.index is not None:
            continue
        missing = [
            name
            for name in known.packages
            if name not in brought
            and find_line(context, name) is None
            and find_listed_provider(context, name) is None
            and not is_known_dependency(context, name)
        ]
        if missing:
            names = join_words(missing)
            yield RULE.diagnostic(
                f"the build of {package.key} needs {names}, which `packages` does not list",
                route,
                severity=Severity.WARNING,
                evidence=known.evidence,
                why=(
                    "The package is built inside the environment, which contains only the "
                    "locked packages. No change is needed if another package already requires "
                    f"{names}."
                ),
                help=f"add {names} to `packages`",
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
    bad=examples(
        example(
            _SPEC + "«{name: deepspeed, build: true}»]\n",
            ResolvedSet(
                {"torch": "2.8.0+cu128", "deepspeed": "0.19.8"},
                "3.12",
                "cu128",
                frozenset({"deepspeed"}),
            ),
        ),
        example(
            _SPEC + '«{name: flash-attn, version: "==2.8.3", build: true}»]\n',
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
