"""torchvision, torchaudio or triton is not the release made for torch.

## What it does

Looks up the torchvision and torchaudio releases made for the torch releases that are possible, and
the triton that torch pins on Linux. torchaudio ends with 2.11.0, which names no torch and goes with
newer ones; from 0.29.1 on, torchvision goes with several.

## Why

They are compiled against one torch. Put together otherwise, importing ends in "operator
torchvision::nms does not exist" or "undefined symbol"; a resolver finds no set of versions.

## How to fix

Ask for the release that the finding gives, or leave the version out: resolving takes the one that
fits.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import TorchRelease
from provision.facts.versions import is_satisfiable, require_version
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
        if _fits(companion, {specifier for made in fitting for specifier in made}):
            continue
        wanted = fitting[-1][-1]
        yield RULE.diagnostic(
            f"{companion.description} was not made for {releases.requested}: torch "
            f"{rows[-1].release} goes with {companion.name}{wanted}",
            companion.route,
            why="It is compiled against one torch; with another, importing fails or no set of "
            "versions is found.",
            help=f"ask for {companion.name}{wanted}, or leave its version out",
            related=related_at(releases.route, "torch asked for here"),
            fix=set_version_fix(context, companion, wanted),
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


def _fits(companion: RequestedPackage, wanted: set[str]) -> bool:
    """Return whether a requested companion fits a torch; later patches of its minor fit too."""
    patches = set()
    for specifier in wanted:
        if specifier.startswith("==") and companion.name != "triton":
            version = specifier.removeprefix("==")
            patches.add(f">{version},=={'.'.join(version.split('.')[:2])}.*")
    return any(is_satisfiable(specifier, companion.specifiers) for specifier in wanted | patches)


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
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: [torch==2.5.1, torchvision==0.21.0]\n',
            "torchvision==0.21.0",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: [torch==2.13.0, torchaudio==2.10.0]\n',
            "torchaudio==2.10.0",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch==2.8.0, triton==3.3.1]\n', "triton==3.3.1"
        ),
    ),
    good=(
        *examples(
            'gpu: none\npython: "3.11"\npackages: [torch==2.5.1, torchvision==0.20.1, '
            "torchaudio==2.5.1]\n",
            'gpu: none\npython: "3.11"\npackages: [torch==2.13.0, torchvision, '
            "torchaudio==2.11.0]\n",
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
