"""A package of the torch family comes from an index that is not PyTorch's.

## What it does

Finds torch, torchvision, triton and related packages bound to an index whose host does not belong
to PyTorch.

## Why

The lock takes these packages from the PyTorch index for the right CUDA flavour without any setting.
If they are bound to a different index, they are whatever that index serves: in December 2022 a
package named torchtriton on the public index ran on the machines of everyone who installed the
nightly build.

## How to fix

Remove `index`. If the index is a mirror you trust, keep it; rules about Pythons and CUDA
builds do not check what it serves.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.package_lines import package_lines, url_host
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    for route, package in package_lines(context):
        index = context.spec.indexes.get(package.index or "")
        if (
            package.key not in context.facts.torch_family
            or index is None
            or url_host(index.url) in context.facts.torch_hosts
        ):
            continue
        yield RULE.diagnostic(
            f"{package.key} comes from {url_host(index.url) or index.url}, which is not a "
            "PyTorch index",
            (*route, "index"),
            why=(
                "Without `index`, `lock` uses the PyTorch index; any other index may serve "
                "anything under this name."
            ),
            help="remove `index`, or keep it if the index is a mirror you trust",
            related=related_at(("indexes", package.index or "", "url"), "index defined here"),
        )


RULE = Rule(
    id="SEC003",
    name="torch-from-foreign-index",
    severity=Severity.WARNING,
    sources=(
        "PyTorch blog, Compromised PyTorch-nightly dependency chain, 2022-12-31",
        "pytorch/pytorch#92226",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [{name: triton, index: «ours»}]\n'
        'indexes: {ours: {url: "https://packages.example.com/simple"}}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [{name: torch, index: pt}]\n'
        'indexes: {pt: {url: "https://download.pytorch.org/whl/cpu"}}\n',
        'gpu: none\npython: "3.11"\npackages: [torch, {name: our-lib, index: ours}]\n'
        'indexes: {ours: {url: "https://packages.example.com/simple"}}\n',
    ),
)
