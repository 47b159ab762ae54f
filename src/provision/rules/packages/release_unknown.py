"""The requested release is not in the facts.

## What it does

Reports, as unknown, that no release in the fact tables satisfies the bounds of torch or
transformers. For about 220 other packages, all releases are known: it warns about a pin on a
version between two of them that the public index does not list.

## Why

Rules about Pythons, CUDA builds and minimum versions cannot check such a release. It may be newer
than the facts, or it may not exist: torch 2.1.5 was never published, and resolving fails with "no
matching distribution". xformers 0.0.22.post4 is on PyTorch's index only, other releases were
withdrawn, and an export of a conda environment can name versions that only conda has.

## How to fix

Check the version. If it is newer than the fact tables, update `provision`; `==2.1.*` requests the
newest patch of a minor release.
"""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from provision.diagnostics import Severity
from provision.facts.package_releases import load_releases
from provision.facts.versions import is_pin, named_versions, require_version
from provision.rules.admitted_releases import torch_releases, transformers_releases
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import find_line, set_version_edit, version_specifiers
from provision.rules.package_requirements import requested_packages
from provision.rules.rule import Findings, LintContext, ResolvedSet, Rule, example, examples

_OWN_TABLES = {"torch", "transformers"}


def _check(context: LintContext) -> Findings:
    facts = context.facts
    torch = facts.torch_versions
    transformers = (facts.transformers[0].first, facts.transformers[-1].last)
    for name, releases, table in (
        ("torch", torch_releases(context), torch),
        ("transformers", transformers_releases(context), transformers),
    ):
        if releases is None or releases.known:
            continue
        near = _same_minor(context, name, table)
        line = find_line(context, name)
        fix = None
        if near and line:
            minor = ".".join(near[0].split(".")[:2])
            edit = set_version_edit(context, *line, f"=={minor}.*")
            fix = unsafe_fix(f"use the newest {minor} release", edit)
        if releases.includes_newer:
            message = (
                f"{releases.requested} is newer than the fact tables, which list {name} only up to "
                f"{table[-1]}"
            )
        else:
            listed = ", ".join(near) or f"those from {table[0]} to {table[-1]}"
            message = f"the fact tables list no release {releases.requested}, only {listed}"
        yield RULE.diagnostic(
            message,
            releases.route,
            why=(
                "The Python, CUDA build and packages it needs are unknown, so `lint` cannot "
                "check them."
            ),
            help="correct the version, or update `provision` if the release is new",
            severity=Severity.UNKNOWN,
            fix=fix,
        )
    if context.resolved is None:
        yield from _unlisted_findings(context)


def _unlisted_findings(context: LintContext) -> Findings:
    """Yield a finding for each pin on a release that the table lacks before its newest one."""
    table = load_releases()
    for name, package in requested_packages(context).items():
        if name in _OWN_TABLES or name not in table or not is_pin(package.specifiers):
            continue
        pin = require_version(package.specifiers.removeprefix("=="))
        releases = table[name]
        if pin.is_prerelease or releases.admitted(package.specifiers) is not None:
            continue
        near = releases.around(pin)
        yield RULE.diagnostic(
            f"the public index lists no release {package.description}; the nearest "
            + (f"are {' and '.join(near)}" if len(near) > 1 else f"is {near[0]}"),
            package.route,
            why="The release was withdrawn, or was published elsewhere, such as on another index "
            "or in a conda channel. Installers may not find it.",
            help=f"use {name}=={near[0]}, or name the index that has the release in `indexes`",
        )


def _same_minor(context: LintContext, name: str, table: tuple[str, ...]) -> list[str]:
    """Return the known releases with the minor version of a pin in the spec."""
    _, package = find_line(context, name) or ((), None)
    if package is None or context.resolved is not None or not package.version.startswith("=="):
        return []
    named = named_versions(version_specifiers(package) or SpecifierSet())
    minors = {version.release[:2] for version in named}
    return [release for release in table if require_version(release).release[:2] in minors]


RULE = Rule(
    id="PKG003",
    name="release-unknown",
    severity=Severity.WARNING,
    sources=("release lists of the packages on the public package index",),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [«torch==2.1.5»]\n',
        'gpu: none\npython: "3.11"\npackages: [«torch==99.0»]\n',
        'gpu: none\npython: "3.11"\npackages: [«"transformers[torch]>=99"»]\n',
        'gpu: L4\npython: "3.10"\npackages: [torch==2.1.0, «xformers==0.0.22.post4»]\n',
        'gpu: none\npython: "3.10"\npackages: [«jaxlib==0.3.15»]\n',
        example(
            'gpu: none\npython: "3.11"\npackages: [«torch»]\n',
            ResolvedSet({"torch": "99.0"}, "3.11", "cpu"),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch==2.4.1, transformers==5.5.2, accelerate]\n',
        'gpu: none\npython: "3.11"\npackages: [torch>=2.13, transformers, accelerate]\n',
        'gpu: none\npython: "3.11"\npackages: [accelerate==99.0, peft==0.17.2.dev0]\n',
        'gpu: L4\npython: "3.10"\n'
        "packages: [{name: xformers, version: ==0.0.22.post4, index: ours}]\n"
        'indexes: {ours: {url: "https://packages.example.com/simple"}}\n',
    ),
)
