"""The requested torch has no wheel for the requested Python.

## What it does

Looks up the Pythons for which the allowed torch releases have wheels, on the platforms of the spec.

## Why

torch is published only as wheels. Without a wheel for this Python, resolving fails with "Could not
find a version that satisfies the requirement", which names neither the Pythons nor the torch
releases that would work.

## How to fix

Use a Python that the torch release supports, or a torch release that supports the Python. On macOS
with an Intel processor, torch ended at 2.2.2.
"""

from __future__ import annotations

from provision.diagnostics import Diagnostic, Severity
from provision.facts import TorchRelease
from provision.facts.versions import format_versions
from provision.rules.admitted_releases import AdmittedReleases, torch_releases, torch_rows
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)
from provision.spec import LocalTarget


def _check(context: LintContext) -> Findings:
    releases = torch_releases(context)
    rows = torch_rows(context, releases)
    if releases is None or not rows:
        return
    newest = rows[-1]
    python = context.python
    for platform in _platforms(context):
        if any(python in row.pythons_on(platform) for row in rows):
            continue
        pythons = newest.pythons_on(platform)
        if not pythons:
            yield _no_wheel_finding(context, releases, newest, platform)
            return
        others = [row.release for row in context.facts.torch if python in row.pythons_on(platform)]
        yield RULE.diagnostic(
            f"{releases.requested} has no wheel for Python {python} on {platform}; "
            f"torch {newest.release} supports Python {format_versions(pythons)}",
            ("python",),
            severity=Severity.UNKNOWN if releases.includes_newer else None,
            why=(
                "torch is published only as wheels, so it cannot be installed for other Python "
                "versions."
            )
            + (" Releases newer than the facts may have one." if releases.includes_newer else ""),
            help=f"use Python {pythons[-1]}"
            + (
                f", or torch {format_versions(others)}, which supports Python {python}"
                if others
                else ""
            ),
            related=related_at(releases.route, "torch requested here"),
        )
        return


def _no_wheel_finding(
    context: LintContext, releases: AdmittedReleases, newest: TorchRelease, platform: str
) -> Diagnostic:
    """Return the finding about a platform for which torch has no wheels any more."""
    last = next(row for row in reversed(context.facts.torch) if row.pythons_on(platform))
    pythons = last.pythons_on(platform)
    help_text = f"request torch=={last.release}"
    if context.python not in pythons:
        help_text += f" and Python {pythons[-1]}"
    return RULE.diagnostic(
        f"{releases.requested} has no wheel for {platform}; the last release that has one is "
        f"torch {last.release}, for Python {format_versions(pythons)}",
        releases.route,
        evidence=newest.evidence,
        why="torch is published only as wheels, so it cannot be installed there.",
        help=f"{help_text}, or remove {platform} from `platforms`",
        related=related_at(("platforms",), "platforms to lock"),
    )


def _platforms(context: LintContext) -> list[str]:
    """Return the platforms of cloud targets and those of local targets, each once."""
    are_local = [isinstance(target, LocalTarget) for target in context.spec.targets.values()]
    platforms = [] if all(are_local) else ["linux-x86_64"]
    if any(are_local):
        platforms += [platform.value for platform in context.spec.platforms]
    return list(dict.fromkeys(platforms))


RULE = Rule(
    id="PYT001",
    name="python-has-no-torch",
    severity=Severity.ERROR,
    sources=("wheel tags of torch on the public package index",),
    check=_check,
    bad=examples(
        'gpu: none\npython: «"3.13"»\npackages: [torch==2.4.1]\n',
        example(
            'gpu: none\npython: «"3.9"»\npackages: ["torch>=2.9,<2.13"]\n', other_ids=("PYT002",)
        ),
        'gpu: none\npython: «"3.13"»\npackages: [torch==2.5.1]\n'
        "platforms: [linux-x86_64, linux-aarch64]\n",
        example('gpu: none\npython: «"3.9"»\npackages: [torch>=2.15]\n', other_ids=("PYT002",)),
        example(
            'gpu: none\npython: «"3.12"»\npackages: [torch]\n',
            ResolvedSet({"torch": "2.0.1+cpu"}, "3.12", "cpu"),
        ),
        'gpu: none\npython: "3.12"\npackages: [«torch==2.3.0»]\nplatforms: [macos-x86_64]\n',
        'gpu: none\npython: "3.13"\npackages: [«torch»]\nplatforms: [macos-x86_64]\n',
        'gpu: none\npython: «"3.13"»\npackages: [torch==2.5.1]\nplatforms: [windows-x86_64]\n',
    ),
    good=examples(
        'gpu: none\npython: "3.13"\npackages: [torch==2.5.1]\n',
        'gpu: none\npython: "3.10"\npackages: [torch]\n',
        'gpu: none\npython: "3.10"\npackages: [torch==99.0]\n',
        'gpu: none\npython: "3.12"\npackages: [torch]\nplatforms: [macos-x86_64]\n',
    ),
)
