"""A package line hard-codes a CUDA build.

## What it does

Finds torch, torchvision and torchaudio pinned to a build (`+cu118`, `+cpu`) and compares the tag
with the spec's `cuda`.

## Why

Builds with such a tag are only on the PyTorch indexes, one index for each CUDA version, so the
package cannot be found on the public index; and every target is tied to one build. The spec sets
the CUDA version once, in `cuda`, and the lock selects the build of every package for it.

## How to fix

Remove the tag and set `cuda: "11.8"`. If `cuda` has a different value, decide which of the two you
need.
"""

from __future__ import annotations

import re

from provision.diagnostics import (
    Edit,
    Fix,
    Insert,
    RelatedLocation,
    Replace,
    RouteLocation,
    Severity,
)
from provision.facts import cuda_of
from provision.rules.edits import yaml_scalar
from provision.rules.package_lines import package_lines, set_version_edit, without_local
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at

_TAG = re.compile(r"\+(cu\d{3,}|cpu)\b")


def _check(context: LintContext) -> Findings:
    tagged = [
        (route, package, match[1])
        for route, package in package_lines(context)
        if package.key in context.facts.flavoured and (match := _TAG.search(package.version))
    ]
    tags = {tag for _, _, tag in tagged}
    for number, (route, package, tag) in enumerate(tagged):
        cuda = cuda_of(tag)
        version = without_local(package.version)
        plain = f"{package.key}{version}"
        message = f"{package.key}{package.version} hard-codes the {tag} build"
        help_text = f"choose a CUDA version, set it in `cuda`, and use {plain}"
        related: tuple[RelatedLocation, ...] = ()
        fix = None
        if not _agrees_with_spec(context, cuda):
            message += (
                f", but the spec has `cuda: {context.spec.cuda}` and `gpu: {context.spec.gpu.type}`"
            )
            if "cuda" in context.spec.model_fields_set:
                related = related_at(("cuda",), "CUDA version set here")
        elif len(tags) == 1:
            help_text = f"use {plain} with `cuda: {cuda if cuda == 'none' else yaml_scalar(cuda)}`"
            edits = _set_cuda_edits(context, cuda) if number == 0 else ()
            fix = Fix(help_text, (set_version_edit(context, route, package, version), *edits))
        yield RULE.diagnostic(
            message,
            route,
            why="Each CUDA version has its own PyTorch index. Set the CUDA version once, in "
            "`cuda`, and the lock selects the builds.",
            help=help_text,
            related=related,
            fix=fix,
        )


def _agrees_with_spec(context: LintContext, cuda: str) -> bool:
    """Return whether a CUDA version agrees with the rest of the spec."""
    spec = context.spec
    return (
        spec.cuda in ("auto", cuda)
        and spec.gpu.is_none == (cuda == "none")
        and spec.gpu.type != "mps"
    )


def _set_cuda_edits(context: LintContext, cuda: str) -> tuple[Edit, ...]:
    if cuda in (context.spec.cuda, "none"):
        return ()
    text = yaml_scalar(cuda)
    if "cuda" in context.spec.model_fields_set:
        return (Replace(RouteLocation(("cuda",)), text),)
    return (Insert((), "cuda", text),)


RULE = Rule(
    id="CUD001",
    name="local-version-tag",
    severity=Severity.ERROR,
    sources=("PEP 440, local version identifiers", "https://download.pytorch.org/whl/"),
    check=_check,
    bad=examples(
        'gpu: T4\npython: "3.11"\npackages: [psutil, «torch==2.0.1+cu118»]\n',
        'gpu: T4\ncuda: auto\npython: "3.11"\npackages:\n'
        '  - «{name: torch, version: "==2.0.1+cu118"}»\n',
        'gpu: T4\ncuda: "11.7"\npython: "3.11"\npackages: [«torch==2.0.1+cu118»]\n',
        'gpu: none\npython: "3.11"\npackages:\n  - «torch==2.13.0+cpu»\n',
    ),
    good=examples(
        'gpu: T4\ncuda: "11.8"\npython: "3.11"\npackages: [torch==2.0.1]\n',
        'gpu: T4\npython: "3.11"\npackages: [flash-attn==2.8.3+cu12torch2.8]\n',
    ),
)
