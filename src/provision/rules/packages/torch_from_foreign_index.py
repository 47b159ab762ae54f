"""A package of the torch family comes from an index that is not PyTorch's.

## What it does

Finds torch, torchvision, triton and their siblings bound to an index whose host is not one of
PyTorch's own.

## Why

The lock takes these from the PyTorch index of the right CUDA flavour by itself. Bound to another
index they are whatever that index serves: in December 2022 a package named torchtriton on the
public index ran on the machines of those who installed the nightly build.

## How to fix

Leave `index` out. If it is a mirror that you trust, keep it, and know that rules about Pythons and
CUDA builds say nothing about what it serves.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.package_lines import package_lines, url_host
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


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
            f"{package.key} comes from {url_host(index.url) or index.url}, which is not an "
            "index of PyTorch's",
            (*route, "index"),
            why="The lock finds the PyTorch index by itself; from another one, what is "
            "installed under this name is that index's word.",
            help="leave `index` out, or keep it for a mirror that you trust",
            related=related_at(
                ("indexes", package.index or "", "url"), "the index is defined here"
            ),
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
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: [{name: triton, index: ours}]\nindexes: '
            '{ours: {url: "https://packages.example.com/simple"}}\n',
            "ours",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [{name: torch, index: pt}]\nindexes: '
        '{pt: {url: "https://download.pytorch.org/whl/cpu"}}\n',
        'gpu: none\npython: "3.11"\npackages: [torch, {name: our-lib, index: '
        'ours}]\nindexes: {ours: {url: "https://packages.example.com/simple"}}\n',
    ),
)
