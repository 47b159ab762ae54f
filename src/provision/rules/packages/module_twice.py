"""Two packages install the same module.

## What it does

Looks for more than one of opencv-python and its variants (all install `cv2`), and of the cupy
wheels for CUDA 11, 12 and 13 (all install `cupy`). It also finds a cupy wheel for a different major
CUDA version than the requested one.

## Why

Both write to the same folder. Files of the package that is installed last overwrite those of the
first, and removing one package breaks the other.

## How to fix

Keep one of them: opencv-python-headless on a server without a display; cupy-cuda12x for CUDA 12.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import cuda_of
from provision.rules.package_requirements import RequestedPackage, origin_route, requested_packages
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)
from provision.rules.source_builds import major_version


def _check(context: LintContext) -> Findings:
    requested = requested_packages(context)
    for group in context.facts.one_of:
        installed = [requested[name] for name in group.packages if name in requested]
        for other in installed[1:]:
            first = installed[0]
            yield RULE.diagnostic(
                f"{other.name} and {first.name} both install the module {group.module}",
                origin_route(context, other, first.route),
                why="They write to the same folder, so the last one installed overwrites "
                "files of the other.",
                help=f"keep only one of {first.name} and {other.name}",
                related=related_at(first.route, f"{first.name} requested here")
                if other.package
                else (),
            )
        for package in installed if group.module == "cupy" else ():
            yield from _other_major(context, package)


def _other_major(context: LintContext, package: RequestedPackage) -> Findings:
    major = package.name.removeprefix("cupy-cuda").rstrip("x")
    for device in context.devices:
        cuda = cuda_of(context.flavour_of(device) or "cpu")
        if cuda == "none" or major_version(cuda) == major:
            continue
        yield RULE.diagnostic(
            f"{package.name} is for CUDA {major}, but CUDA {cuda} is requested",
            origin_route(context, package, device.cuda_route),
            severity=Severity.WARNING,
            why=f"It loads CUDA {major} libraries, which torch's wheels for CUDA {cuda} do not "
            "include.",
            help=f"use cupy-cuda{major_version(cuda)}x",
            related=()
            if context.resolved
            else related_at(device.cuda_route, "CUDA requested here"),
        )
        return


RULE = Rule(
    id="PKG020",
    name="module-twice",
    severity=Severity.WARNING,
    sources=(
        "README of opencv/opencv-python",
        "opencv/opencv-python#467",
        "cupy, the warning about multiple CuPy packages",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [opencv-python, «opencv-python-headless»]\n',
        'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [«cupy-cuda13x»]\n',
        example(
            'gpu: none\npython: "3.11"\npackages: [albumentations, «opencv-python»]\n',
            ResolvedSet(
                {
                    "albumentations": "2.0.8",
                    "opencv-python": "4.12.0",
                    "opencv-python-headless": "4.12.0",
                },
                "3.11",
            ),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [opencv-python-headless]\n',
        'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [cupy-cuda12x]\n',
        'gpu: none\npython: "3.11"\n'
        'packages: ["opencv-python; sys_platform == \'darwin\'", "opencv-python-headless; '
        "sys_platform == 'linux'\"]\n",
    ),
)
