"""A package is locked as source, and something that its build needs is not in the environment.

## What it does

Asked of the resolved set: looks for what the build of flash-attn, causal-conv1d, mamba-ssm,
deepspeed or gptqmodel imports (torch, ninja, setuptools, wheel,
packaging, psutil), where such a package is locked as source. What a source distribution itself
declares for its build (`requires` of `[build-system]`, else
setuptools) is locked with it and needs no line.

## Why

It is built in the environment that it is for, so that it is built against the locked torch.
Nothing else is there: no second set of packages that only the
build sees. Several of these packages do not declare what their setup.py imports, and the build
ends in "No module named 'wheel'".

## How to fix

Add what is missing to `packages`.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Applicability, Diagnostic, Fix, Insert, Severity
from provision.rules.package_lines import package_lines
from provision.rules.rule import Example, LintContext, ResolvedSet, Rule


def check(case: LintContext) -> Iterator[Diagnostic]:
    """Yield a finding for each package that is locked as source without what its build is known to
    need.
    """
    if case.resolved is None:
        return
    for route, package in package_lines(case):
        known = case.facts.source_only.get(package.key)
        missing = (
            [name for name in known.packages if name not in case.resolved.versions]
            if known and package.key in case.resolved.built_packages
            else []
        )
        if known is None or not missing:
            continue
        words = ", ".join(missing)
        finding = RULE.diagnostic(
            f"{package.key} {case.resolved.versions[package.key]} is built from source, "
            f"and {words} {'is' if len(missing) == 1 else 'are'} not there for it",
            route,
            severity=known.evidence.cap_severity(Severity.ERROR),
            why="It is built in the environment that it is for, with nothing but the packages "
            "of the lock.",
            way_out=f"add {words} to the packages",
            fix=Fix(
                f"add {words}",
                tuple(Insert(("packages",), None, name) for name in missing),
                Applicability.UNSAFE,
            ),
        )
        yield finding._replace(source=known.evidence.source)


_SPEC = 'gpu: L4\ncuda: "12.8"\ncuda_toolkit: "12.8"\npython: "3.12"\npackages: [torch==2.8.0, '

RULE = Rule(
    id="PKG026",
    name="build-need-missing",
    severity=Severity.ERROR,
    summary="A package is locked as source, and something that its build needs is not in the "
    "environment.",
    sources=(
        "setup.py and pyproject.toml of the source distributions on PyPI",
        "PEP 517, Build environment",
    ),
    page=__doc__,
    check=check,
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
