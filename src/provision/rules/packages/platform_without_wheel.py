"""A package has no wheel for a platform of the lock.

## What it does

Compares `platforms`, which applies to local targets, with the platforms that triton, vllm and the
CUDA plugin of jax have wheels for.

## Why

The lock covers all platforms at once. If a package has no wheel for one of them, no set of versions
exists.

## How to fix

Give the package a marker, as in `triton; sys_platform == "linux"`, or remove the platform.
"""

from __future__ import annotations

from provision.diagnostics import Replace, RouteLocation, Severity
from provision.rules.edits import unsafe_fix, yaml_scalar
from provision.rules.package_lines import package_lines
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    if context.resolved is not None or not any(
        target.target.kind == "local" for target in context.targets
    ):
        return
    for route, package in package_lines(context):
        known = context.facts.platforms.get(package.key)
        lacking = [
            platform.value
            for platform in context.spec.platforms
            if known and platform.value not in known.platforms
        ]
        if (
            known is None
            or not lacking
            or package.marker
            or package.source == "conda"
            or package.index is not None
        ):
            continue
        text = context.source.text(route)
        marked = None
        if text is not None:
            marked = Replace(
                RouteLocation(route),
                yaml_scalar(f"{package.requirement} ; sys_platform == 'linux'", plain=False),
            )
        yield RULE.diagnostic(
            f"{package.key} has no wheel for {' and '.join(lacking)}, only for "
            f"{' and '.join(known.platforms)}",
            route,
            why="The lock covers all platforms, and only wheels are installed.",
            help=f"write {package.requirement} ; sys_platform == 'linux', or remove "
            f"{' and '.join(lacking)} from `platforms`",
            related=related_at(("platforms",), "platforms of the lock"),
            fix=unsafe_fix("install it on Linux only", marked) if marked else None,
        )


RULE = Rule(
    id="PKG019",
    name="platform-without-wheel",
    severity=Severity.ERROR,
    sources=("wheel tags on PyPI, 2026-11-21", "pytorch/pytorch#136361"),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [«triton»]\n'
        "platforms: [linux-x86_64, windows-x86_64]\n",
        'gpu: mps\npython: "3.11"\npackages: [«{name: vllm}»]\nplatforms: [macos-arm64]\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["triton; sys_platform == \'linux\'"]\n'
        "platforms: [linux-x86_64, windows-x86_64]\n",
        'gpu: none\npython: "3.11"\npackages: [triton]\nplatforms: [linux-x86_64, linux-aarch64]\n',
        'gpu: none\npython: "3.11"\npackages: [triton]\nplatforms: [windows-x86_64]\n'
        "targets: {colab: {kind: colab}}\n",
    ),
)
