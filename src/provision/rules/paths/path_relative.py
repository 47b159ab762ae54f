"""A declared folder is not an absolute path.

## What it does

Looks at `paths`, of the spec and of every target: each must start at the root of its file system.

## Why

A relative path means another folder wherever the working directory is another one: a notebook
starts in /content on Colab and in /home/jupyter on Workbench. `~` and `$HOME` are expanded by
shells, not by Python's open(), and stand for different homes in a terminal, a kernel and a service.

## How to fix

Write the whole path. If it differs between targets, set `paths` at the target.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.diagnostics import Route, Severity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.spec import Platform

_WINDOWS = re.compile(r"[A-Za-z]:[\\/].*")


def _check(context: LintContext) -> Findings:
    windows = Platform.WINDOWS_X86_64 in context.spec.platforms
    for route, path in _paths(context):
        if path.startswith("/") or (windows and _WINDOWS.fullmatch(path)):
            continue
        yield RULE.diagnostic(
            f"paths.{route[-1]} is {path!r}, which is not an absolute path",
            route,
            why="~ and variables stand for another folder for every user, and are not expanded "
            "everywhere."
            if path[:1] in ("~", "$", "%")
            else "It means another folder wherever the working directory is another one: "
            "/content on Colab, /home/jupyter on Workbench.",
            help="write the whole path, as in /home/jupyter/data; give targets `paths` of their "
            "own where it differs",
        )


def _paths(context: LintContext) -> Iterator[tuple[Route, str]]:
    for key, path in context.spec.paths.items():
        yield ("paths", key), path
    for name, target in context.spec.targets.items():
        for key, path in target.paths.items():
            yield ("targets", name, "paths", key), path


RULE = Rule(
    id="REF101",
    name="path-relative",
    severity=Severity.ERROR,
    sources=(
        "the spec language: `paths` are absolute",
        "Colab and Workbench, working directory of a notebook",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: []\npaths: {data: data/train}\n', "data/train"
        ),
        Example('gpu: none\npython: "3.11"\npackages: []\npaths: {output: ~/out}\n', "~/out"),
        Example(
            'gpu: none\npython: "3.11"\npackages: []\ntargets: {here: {kind: local, paths: '
            "{data: ./d}}}\n",
            "./d",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: []\npaths: {data: /home/jupyter/data}\n',
        'gpu: none\npython: "3.11"\npackages: []\nplatforms: '
        "[windows-x86_64]\npaths: {data: 'C:\\data'}\n",
    ),
)
