"""torchvision, torchaudio or triton does not match torch.

## What it does

Looks up the torchvision and torchaudio releases that match the possible torch releases, and the
triton that torch pins on Linux. The last torchaudio, 2.11.0, works with newer torch releases too;
torchvision works with several from 0.29.1 on.

## Why

They are compiled against one torch release. With a different one, the import fails with "operator
torchvision::nms does not exist" or "undefined symbol", or the resolver finds no set of versions.

## How to fix

Use the release that the finding names, or remove the version: the resolver then chooses the
matching one.
"""

from __future__ import annotations

from collections.abc import Iterable

from provision.diagnostics import Severity
from provision.facts import TorchRelease
from provision.facts.versions import is_pin, is_satisfiable, require_version
from provision.rules.admitted_releases import torch_releases, torch_rows
from provision.rules.package_requirements import (
    RequestedPackage,
    requested_package,
    set_version_fix,
)
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)


def _check(context: LintContext) -> Findings:
    releases = torch_releases(context)
    rows = torch_rows(context, releases)
    if releases is None or releases.includes_newer or not rows:
        return
    for name in ("torchvision", "torchaudio", "triton"):
        companion = requested_package(context, name)
        fitting = [_companion_specifiers(context, name, row) for row in rows]
        if companion is None or not companion.specifiers or not all(fitting):
            continue
        if _fits(context, companion, {specifier for made in fitting for specifier in made}):
            continue
        matching = fitting[-1][-1]
        yield RULE.diagnostic(
            f"{companion.description} does not match {releases.requested}: torch "
            f"{rows[-1].release} needs {companion.name}{matching}",
            companion.route,
            why=(
                f"Each {companion.name} release is built for one torch release. With a different "
                "one, the import fails or the packages cannot be installed together."
            ),
            help=f"use {companion.name}{matching}, or remove the version from {companion.name}",
            related=related_at(releases.route, "torch requested here"),
            fix=set_version_fix(context, companion, matching),
        )


def _companion_specifiers(context: LintContext, name: str, row: TorchRelease) -> tuple[str, ...]:
    """Return the specifiers of the companions of a torch release, newest last; () if unknown."""
    if name == "triton":
        if not row.triton:
            return ()
        return (row.triton if row.triton[0] in "<>=~!" else f"=={row.triton}",)
    made = row.torchvision if name == "torchvision" else row.torchaudio
    if made or name == "torchvision":
        return tuple(f"=={version}" for version in made)
    *_, newest = (other for other in context.facts.torch if other.torchaudio)
    if require_version(row.release) > require_version(newest.release):
        return (f">{newest.torchaudio[-1]}",)
    return ()


def _fits(context: LintContext, companion: RequestedPackage, matching: set[str]) -> bool:
    """Return whether a requested companion fits a torch.

    Patches that are newer than the newest listed one of a minor may fit as well as it does. A
    pre-release may be a build for any torch: conda's torchaudio 0.7.2 is named 0.7.0a0+a853dff.
    """
    pin = companion.specifiers.removeprefix("==")
    if is_pin(companion.specifiers) and require_version(pin).is_prerelease:
        return True
    fitting = set(matching)
    if companion.name != "triton":
        for version in _newest_patches(context, companion.name):
            if f"=={version}" in matching:
                minor = ".".join(version.split(".")[:2])
                fitting.add(f">{version},=={minor}.*")
    return any(is_satisfiable(specifier, companion.specifiers) for specifier in fitting)


def _newest_patches(context: LintContext, name: str) -> Iterable[str]:
    """Return the newest listed release of each minor of torchvision or torchaudio."""
    newest: dict[tuple[int, ...], str] = {}
    for row in context.facts.torch:
        for version in row.torchvision if name == "torchvision" else row.torchaudio:
            newest[require_version(version).release[:2]] = version
    return newest.values()


RULE = Rule(
    id="PKG012",
    name="torch-companion-mismatch",
    severity=Severity.ERROR,
    sources=(
        "METADATA of the torch, torchvision and torchaudio wheels on PyPI",
        "pytorch/vision#8985",
        "pytorch/pytorch#157648",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [torch==2.5.1, «torchvision==0.21.0»]\n',
        'gpu: none\npython: "3.11"\npackages: [torch==2.13.0, «torchaudio==2.10.0»]\n',
        'gpu: L4\npython: "3.11"\npackages: [torch==2.8.0, «triton==3.3.1»]\n',
        'gpu: none\npython: "3.11"\npackages: [torch==2.5.0, «"torchvision>=0.20.1"»]\n',
        'gpu: none\npython: "3.11"\npackages: [torch==2.5.0, «torchaudio==2.5.1»]\n',
    ),
    good=(
        *examples(
            'gpu: none\npython: "3.11"\n'
            "packages: [torch==2.5.1, torchvision==0.20.1, torchaudio==2.5.1]\n",
            'gpu: none\npython: "3.11"\n'
            "packages: [torch==2.13.0, torchvision, torchaudio==2.11.0]\n",
            'gpu: L4\npython: "3.11"\npackages: [torch==2.8.0, triton==3.4.0]\n',
            'gpu: none\npython: "3.11"\npackages: [torch>=2.5, torchvision==0.21.0]\n',
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: [torch, torchvision]\n',
            resolved=ResolvedSet(
                {"torch": "2.5.1+cpu", "torchvision": "0.20.1+cpu"}, "3.11", "cpu"
            ),
        ),
    ),
)
