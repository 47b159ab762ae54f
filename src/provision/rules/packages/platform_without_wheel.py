"""A package has no wheel for a platform of the lock.

## What it does

Compares the platforms of the targets (`platforms` applies to local ones, all others are Linux) with
those that pywin32, triton, vllm and the CUDA plugin of jax have wheels for.

## Why

The lock covers all platforms at once. If a package has no wheel for one of them, no set of versions
exists.

## How to fix

Give the package a marker, as in `triton; sys_platform == "linux"`, or remove the platform. With the
marker `sys_platform == "win32"`, Linux targets do not install the package.
"""

from __future__ import annotations

from provision.diagnostics import Replace, RouteLocation, Severity
from provision.rules.edits import unsafe_fix, yaml_scalar
from provision.rules.package_lines import index_lines
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    if context.resolved is not None:
        return
    platforms = tuple(
        dict.fromkeys(platform for target in context.targets for platform in target.platforms)
    )
    is_declared = any(target.target.kind == "local" for target in context.targets)
    for route, package in index_lines(context):
        known = context.facts.platforms.get(package.key)
        if (
            known is None
            or package.marker
            or package.source == "conda"
            or package.index is not None
        ):
            continue
        lacking = [platform for platform in platforms if platform not in known.platforms]
        if not lacking:
            continue
        on_windows = known.platforms[0].startswith("windows")
        system = "win32" if on_windows else "linux"
        marked = f"{package.requirement} ; sys_platform == '{system}'"
        fix = None
        if context.source.text(route) is not None:
            edit = Replace(RouteLocation(route), yaml_scalar(marked, plain=False))
            fix = unsafe_fix(f"install it only on {'Windows' if on_windows else 'Linux'}", edit)
        remove = f", or remove {' and '.join(lacking)} from `platforms`" if is_declared else ""
        yield RULE.diagnostic(
            f"{package.key} has no wheel for {' and '.join(lacking)}, only for "
            f"{' and '.join(known.platforms)}",
            route,
            why="Only wheels are installed, and no release has a wheel for this platform.",
            help=f"use `{marked}`{remove}",
            related=related_at(("platforms",), "platforms to lock") if is_declared else (),
            fix=fix,
        )


RULE = Rule(
    id="PKG019",
    name="platform-without-wheel",
    severity=Severity.ERROR,
    sources=("wheel tags on PyPI, 2026-11-21 and 2026-11-27", "pytorch/pytorch#136361"),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [«triton»]\n'
        "platforms: [linux-x86_64, windows-x86_64]\n",
        'gpu: mps\npython: "3.11"\npackages: [«{name: vllm}»]\nplatforms: [macos-arm64]\n',
        'gpu: none\npython: "3.12"\npackages: [«pywin32==306»]\n'
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["triton; sys_platform == \'linux\'"]\n'
        "platforms: [linux-x86_64, windows-x86_64]\n",
        'gpu: none\npython: "3.11"\npackages: [triton]\nplatforms: [linux-x86_64, linux-aarch64]\n',
        'gpu: none\npython: "3.11"\npackages: [triton]\nplatforms: [windows-x86_64]\n'
        "targets: {colab: {kind: colab}}\n",
        'gpu: none\npython: "3.11"\npackages: [pywin32]\nplatforms: [windows-x86_64]\n',
    ),
)
