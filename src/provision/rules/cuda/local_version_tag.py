"""A package line carries the tag of a CUDA build.

## What it does

Finds torch, torchvision and torchaudio pinned to a build (`+cu118`, `+cpu`) and compares the tag
with the spec's `cuda`.

## Why

Builds with such a tag are on the PyTorch index only, one index for each CUDA version, so the line
cannot be found on the public index; and it ties every target to one build. The spec names the CUDA
version once, in `cuda`, and the lock chooses the build of every package for it.

## How to fix

Drop the tag and write `cuda: "11.8"`. If `cuda` has another value, decide which of the two is
meant.
"""

from __future__ import annotations

import re

from provision.diagnostics import (
    Edit,
    Fix,
    Insert,
    Replace,
    RouteLocation,
    Severity,
)
from provision.facts import cuda_of
from provision.rules.edits import yaml_scalar
from provision.rules.package_lines import package_lines, set_version_edit, without_local
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at

_TAG = re.compile(r"\+(cu\d{3,}|cpu)\b")


def _check(context: LintContext) -> Findings:
    tagged = [
        (route, package, match[1])
        for route, package in package_lines(context)
        if package.key in context.facts.flavoured and (match := _TAG.search(package.version))
    ]
    tags = {tag for _, _, tag in tagged}
    for number, (route, package, tag) in enumerate(tagged):
        fixable = _agrees_with_spec(context, tag) and len(tags) == 1
        cuda = cuda_of(tag)
        plain = f"{package.key}{without_local(package.version)}"
        right = f"write {plain} with cuda: {cuda if cuda == 'none' else yaml_scalar(cuda)}"
        note = ""
        if not _agrees_with_spec(context, tag):
            note = f"; the spec says cuda: {context.spec.cuda} and gpu: {context.spec.gpu.type}"
        edits: tuple[Edit, ...] = (
            set_version_edit(context, route, package, without_local(package.version)),
            *(_set_cuda_edits(context, cuda) if (number == 0) else ()),
        )
        yield RULE.diagnostic(
            f"{package.key}{package.version} names the build {tag}{note}",
            route,
            why="Tagged builds lie on one PyTorch index for each CUDA version; the CUDA version is "
            "said once, in `cuda`, and the lock chooses the builds.",
            help=right
            if fixable
            else f"decide which CUDA version is meant, say it in `cuda`, and write {plain}",
            related=related_at(("cuda",), "the CUDA version is said here")
            if note and "cuda" in context.spec.model_fields_set
            else (),
            fix=Fix(right, edits) if fixable else None,
        )


def _agrees_with_spec(context: LintContext, tag: str) -> bool:
    """Return whether `cuda` for this tag agrees with the rest of the spec."""
    cuda = cuda_of(tag)
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
    bad=(
        Example(
            'gpu: T4\npython: "3.11"\npackages: [psutil, torch==2.0.1+cu118]\n',
            "torch==2.0.1+cu118",
        ),
        Example(
            'gpu: T4\ncuda: auto\npython: "3.11"\npackages:\n  - {name: torch, version: '
            '"==2.0.1+cu118"}\n',
            '{name: torch, version: "==2.0.1+cu118"}',
        ),
        Example(
            'gpu: T4\ncuda: "11.7"\npython: "3.11"\npackages: [torch==2.0.1+cu118]\n',
            "torch==2.0.1+cu118",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages:\n  - torch==2.13.0+cpu\n', "torch==2.13.0+cpu"
        ),
    ),
    good=examples(
        'gpu: T4\ncuda: "11.8"\npython: "3.11"\npackages: [torch==2.0.1]\n',
        'gpu: T4\npython: "3.11"\npackages: [flash-attn==2.8.3+cu12torch2.8]\n',
    ),
)
