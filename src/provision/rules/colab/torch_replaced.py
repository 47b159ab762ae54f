"""Another torch takes the place of the one that a Colab runtime brings.

## What it does

Compares the version and CUDA flavour of torch with those of the runtime, where packages go on top
of it. Looks whether torchvision and torchaudio, which every runtime brings, are replaced with it.

## Why

torchvision contains code that was compiled for one torch; so does torchaudio before 2.11. With
another torch, importing them fails ("operator torchvision::nms does not exist", "undefined
symbol"), and transformers imports torchvision as soon as it is installed: a Trainer job fails even
if it uses no image. If both are replaced too, everything works, at a cost: torch with its CUDA
libraries is a download of gigabytes, repeated on every new runtime.

## How to fix

List torchvision (and torchaudio) next to torch: the lock chooses versions that match. Or keep the
runtime's torch, take a runtime with the requested torch, or write `isolation: venv`.
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
from provision.rules.examples import COLAB_TARGETS
from provision.rules.package_lines import version_specifiers
from provision.rules.rule import Example, Findings, LintContext, ResolvedSet, Rule, examples


class TorchReplacement(NamedTuple):
    """The requirement that replaces a runtime's torch."""

    wanted: str
    route: Route
    change: PackageReplacement | None
    back: str


def _check(context: LintContext) -> Findings:
    for system in base_runtimes(context):
        if (
            "torch" in system.packages
            and (
                swap := _version_replacement(context, system) or _build_replacement(context, system)
            )
            is not None
        ):
            left = _mismatched_companions(context, system, swap)
            behind = ""
            if left:
                behind = (
                    " and leaves "
                    + " and ".join(f"{name} {system.packages[name]}" for name in left)
                    + " behind"
                )
            edits = tuple(Insert(("packages",), None, name) for name in left)
            yield RULE.diagnostic(
                f"target {system.colab.name}: {swap.wanted} takes the place of the runtime's torch "
                f"{system.packages['torch']}{behind}",
                swap.route,
                severity=None if left else Severity.INFO,
                why=f"{' and '.join(left)} of the runtime {'were' if len(left) > 1 else 'was'} "
                "built for its torch: importing fails with another one."
                if left
                else "That is a download of gigabytes on every new runtime.",
                help=(
                    f"add {' and '.join(left)} to the packages, or "
                    if left
                    else "nothing, where that is meant, or "
                )
                + swap.back,
                related=system.related,
                fix=unsafe_fix(f"add {' and '.join(left)}", *edits) if left else None,
            )


def _version_replacement(context: LintContext, system: BaseRuntime) -> TorchReplacement | None:
    change = next(replaced_packages(context, system, ("torch",)), None)
    if change is None:
        return None
    older = change.version is not None and change.version < Version(change.installed)
    fitting = [
        row.runtime
        for row in pinnable_runtimes(context, context.spec.python)
        if _admits(change, row.torch)
    ]
    return TorchReplacement(
        change.requested + (" (older)" if older else ""),
        change.route,
        change,
        f"ask for torch=={change.installed} where that will do"
        + (f', or take runtime "{fitting[-1]}", which has the one asked for' if fitting else ""),
    )


def _admits(change: PackageReplacement, torch: str) -> bool:
    if change.version is not None:
        return Version(torch) == Version(change.version.public)
    specifiers = version_specifiers(change.line) if change.line else None
    return specifiers is not None and specifiers.contains(torch, prereleases=True)


def _build_replacement(context: LintContext, system: BaseRuntime) -> TorchReplacement | None:
    """Return the replacement if only the flavour changes, not the version."""
    device = system.colab.facts.gpu_settings
    has = Version(system.packages["torch"]).local
    if context.resolved is None:
        named = context.spec.package("torch") is not None
    else:
        named = "torch" in context.resolved.versions
    wanted = device.flavour or (context.resolved.flavour if context.resolved is not None else None)
    if not named or has is None or wanted in (None, has):
        return None
    route = device.cuda_route if device.cuda not in ("auto", "none") else device.gpu_route
    if has != "cpu" and wanted != "cpu":
        back = f'write cuda: "{cuda_of(has)}" at target {system.colab.name}'
    else:
        back = "leave torch out of the packages there"
    return TorchReplacement(
        f"torch of the build {wanted}", route, None, f"{back}, the runtime's own"
    )


def _mismatched_companions(
    context: LintContext, system: BaseRuntime, swap: TorchReplacement
) -> list[str]:
    """Return the companions of the runtime's torch that stay and do not match the new torch."""
    mine = context.facts.torch_release(Version(system.packages["torch"]).public)
    other = None
    if swap.change and swap.change.version:
        other = context.facts.torch_release(str(swap.change.version))
    if swap.change is None and _same_major(system, swap):
        return []
    left = []
    for name in ("torchvision", "torchaudio"):
        installed = Version(system.packages[name]).public if name in system.packages else None
        tied = installed is not None and mine is not None and installed in getattr(mine, name)
        if (
            tied
            and not _is_replaced(context, name)
            and not (other and installed in getattr(other, name))
        ):
            left.append(name)
    return left


def _same_major(system: BaseRuntime, swap: TorchReplacement) -> bool:
    """Return whether both builds have the same CUDA major version.

    Companions compare nothing else at import (torchvision/extension.py).
    """
    has = Version(system.packages["torch"]).local or "cpu"
    wanted = swap.wanted.rpartition(" ")[2]
    return "cpu" in (has, wanted) or cuda_of(has).split(".")[0] == cuda_of(wanted).split(".")[0]


def _is_replaced(context: LintContext, name: str) -> bool:
    if context.resolved is None:
        return context.spec.package(name) is not None
    return name in context.resolved.versions


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
    bad=(
        Example(
            f'gpu: T4\npython: "3.12"\npackages: [torch==2.13.0]\n{COLAB_TARGETS}', "torch==2.13.0"
        ),
        Example(
            f'gpu: T4\npython: "3.12"\npackages: [torch==2.13.0, torchvision]\n{COLAB_TARGETS}',
            "torch==2.13.0",
        ),
        Example(
            f'gpu: T4\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\n{COLAB_TARGETS}',
            '"12.6"',
        ),
        Example(
            f'gpu: T4\npython: "3.12"\npackages: [torch]\n{COLAB_TARGETS}',
            "torch",
            ResolvedSet({"torch": "2.15.0"}, "3.12", "cu130"),
        ),
    ),
    good=(
        *examples(
            f'gpu: T4\npython: "3.12"\npackages: [torch==2.11.*]\n{COLAB_TARGETS}',
            f'gpu: T4\ncuda: "12.8"\npython: "3.12"\npackages: [torch]\n{COLAB_TARGETS}',
            'gpu: T4\npython: "3.12"\npackages: [torch==2.13.0]\ntargets:\n  colab: {kind: '
            'colab, runtime: "2026.07", isolation: venv}\n',
        ),
        Example(
            f'gpu: none\npython: "3.12"\npackages: [torch]\n{COLAB_TARGETS}',
            resolved=ResolvedSet({"torch": "2.11.0"}, "3.12", "cpu"),
        ),
    ),
)
