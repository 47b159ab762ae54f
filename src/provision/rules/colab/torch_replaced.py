"""A Colab runtime's own torch is replaced.

## What it does

Compares the version and CUDA flavour of torch with those of the runtime, if packages are installed
on top of it. Checks whether torchvision and torchaudio, which every runtime has, are replaced too.

## Why

torchvision contains code that was compiled for one torch; so does torchaudio before 2.11. With a
different torch, importing them fails ("operator torchvision::nms does not exist", "undefined
symbol"), and transformers imports torchvision as soon as it is installed: a Trainer job fails even
if it uses no image. If both are replaced too, everything works, at a cost: torch with its CUDA
libraries is a download of gigabytes, repeated on every new runtime.

## How to fix

List torchvision (and torchaudio) next to torch: the lock chooses versions that match. Or keep the
runtime's torch, use a runtime with the requested torch, or set `isolation: venv`.
"""

from __future__ import annotations

from typing import NamedTuple

from packaging.version import Version

from provision.diagnostics import Insert, Route, Severity
from provision.facts import cuda_of
from provision.rules.colab.runtimes import (
    BaseRuntime,
    PackageReplacement,
    base_runtimes,
    pinnable_runtimes,
    replaced_packages,
)
from provision.rules.edits import unsafe_fix
from provision.rules.examples import colab_spec
from provision.rules.package_lines import version_specifiers
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
)
from provision.rules.source_builds import major_version


class TorchReplacement(NamedTuple):
    """The requirement that replaces a runtime's torch.

    Attributes:
        requested: the requirement as text.
        route: the route of the requirement.
        alternative: the edit that keeps the runtime's torch, or selects a fitting runtime.
        version: the new version; None if it is not certain.
        flavour: the new flavour if the version stays the same.
    """

    requested: str
    route: Route
    alternative: str
    version: Version | None = None
    flavour: str | None = None


def _check(context: LintContext) -> Findings:
    for system in base_runtimes(context):
        if "torch" not in system.packages:
            continue
        torch = Version(system.packages["torch"])
        replacement = _version_replacement(context, system) or _build_replacement(
            context, system, torch.local
        )
        if replacement is None:
            continue
        message = (
            f"target `{system.target.name}`: {replacement.requested} replaces the runtime's torch "
            f"{torch}"
        )
        mismatched = _mismatched_companions(context, system, torch, replacement)
        if not mismatched:
            yield RULE.diagnostic(
                message,
                replacement.route,
                severity=Severity.INFO,
                why="This downloads gigabytes on every new runtime.",
                help=(
                    f"no change is needed if this is intended; otherwise {replacement.alternative}"
                ),
                related=system.related,
            )
            continue
        kept = " and ".join(f"{name} {system.packages[name]}" for name in mismatched)
        edits = (Insert(("packages",), None, name) for name in mismatched)
        fix = unsafe_fix(f"add {' and '.join(mismatched)}", *edits)
        yield RULE.diagnostic(
            f"{message} and leaves {kept} unchanged",
            replacement.route,
            why=(
                "Packages built against the runtime's own torch fail to import with a different "
                "build."
            ),
            help=f"{fix.title} to `packages`, or {replacement.alternative}",
            related=system.related,
            fix=fix,
        )


def _version_replacement(context: LintContext, system: BaseRuntime) -> TorchReplacement | None:
    change = next(replaced_packages(context, system, ("torch",)), None)
    if change is None:
        return None
    is_older = change.version is not None and change.version < Version(change.installed)
    alternative = f"use torch=={change.installed}"
    fitting = [
        row.runtime
        for row in pinnable_runtimes(context, context.spec.python)
        if _admits(change, row.torch)
    ]
    if fitting:
        alternative += f', or set `runtime: "{fitting[-1]}"`, which has the requested torch'
    return TorchReplacement(
        change.requested + (" (older)" if is_older else ""),
        change.route,
        alternative,
        version=change.version,
    )


def _admits(change: PackageReplacement, torch: str) -> bool:
    if change.version is not None:
        return Version(torch) == Version(change.version.public)
    specifiers = version_specifiers(change.line) if change.line else None
    return specifiers is not None and specifiers.contains(torch, prereleases=True)


def _build_replacement(
    context: LintContext, system: BaseRuntime, installed: str | None
) -> TorchReplacement | None:
    """Return the replacement if only the flavour changes, not the version."""
    device = system.target.gpu_settings
    flavour = device.flavour or (context.resolved.flavour if context.resolved else None)
    if "torch" not in context.package_names or installed is None or flavour in (None, installed):
        return None
    if "cpu" in (installed, flavour):
        alternative = "remove torch from `packages` to keep the runtime's torch"
    else:
        alternative = (
            f'set `cuda: "{cuda_of(installed)}"` on target `{system.target.name}` to keep the '
            "runtime's torch"
        )
    route = device.cuda_route if device.cuda not in ("auto", "none") else device.gpu_route
    return TorchReplacement(f"the {flavour} build of torch", route, alternative, flavour=flavour)


def _mismatched_companions(
    context: LintContext, system: BaseRuntime, torch: Version, replacement: TorchReplacement
) -> list[str]:
    """Return the companions of the runtime's torch that stay and do not match the new torch."""
    if replacement.flavour and _has_same_major(torch.local or "cpu", replacement.flavour):
        return []
    old = context.facts.torch_release(torch.public)
    new = context.facts.torch_release(str(replacement.version)) if replacement.version else None
    mismatched = []
    for name in ("torchvision", "torchaudio"):
        if old is None or name not in system.packages or name in context.package_names:
            continue
        installed = Version(system.packages[name]).public
        if installed in getattr(old, name) and not (new and installed in getattr(new, name)):
            mismatched.append(name)
    return mismatched


def _has_same_major(installed: str, flavour: str) -> bool:
    """Return whether both builds have the same CUDA major version.

    Companions compare nothing else at import (torchvision/extension.py).
    """
    if "cpu" in (installed, flavour):
        return True
    return major_version(cuda_of(installed)) == major_version(cuda_of(flavour))


RULE = Rule(
    id="IMG031",
    name="colab-torch-replaced",
    severity=Severity.WARNING,
    sources=(
        "pytorch/vision#8985",
        "torchvision/extension.py",
        "googlecolab/backend-info pip-freeze.gpu.txt of each runtime version",
    ),
    check=_check,
    bad=examples(
        colab_spec("[«torch==2.13.0»]", "gpu: T4\n"),
        colab_spec("[«torch==2.13.0», torchvision]", "gpu: T4\n"),
        colab_spec("[torch==2.11.0]", 'gpu: T4\ncuda: «"12.6"»\n'),
        example(
            colab_spec("[«torch»]", "gpu: T4\n"), ResolvedSet({"torch": "2.15.0"}, "3.12", "cu130")
        ),
    ),
    good=examples(
        colab_spec("[torch==2.11.*]", "gpu: T4\n"),
        colab_spec("[torch]", 'gpu: T4\ncuda: "12.8"\n'),
        colab_spec("[torch==2.13.0]", "gpu: T4\n", 'runtime: "2026.07", isolation: venv'),
        Example(colab_spec("[torch]"), resolved=ResolvedSet({"torch": "2.11.0"}, "3.12", "cpu")),
    ),
)
