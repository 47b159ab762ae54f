"""The path of a folder contains a variable or a ~ that is not expanded.

## What it does

Looks in `paths` for $NAME, ${NAME}, %NAME% and ~ inside an absolute path.

## Why

Shells expand them, but programs do not: the path is used as written, and stands for a folder whose
name starts with a dollar sign.

## How to fix

Use an absolute path. If it differs between users or machines, set `paths` on each target.
"""

from __future__ import annotations

import re

from provision.diagnostics import Severity
from provision.kinds.drive import DRIVE_PREFIX
from provision.rules.folders import declared_folders
from provision.rules.rule import Findings, LintContext, Rule, examples

_LEFT = re.compile(r"\$\{?[A-Za-z_]\w*\}?|%[A-Za-z_]\w*%|(?<=/)~[^/]*")


def _check(context: LintContext) -> Findings:
    for route, path in {folder.route: folder.path for folder in declared_folders(context)}.items():
        left = _LEFT.search(path)
        if left is None or not path.startswith(("/", DRIVE_PREFIX)):
            continue
        yield RULE.diagnostic(
            f"paths.{route[-1]} is {path}, but {left.group()} is not expanded",
            route,
            why="Only a shell expands it; other programs look for a folder with exactly this name.",
            help="use an absolute path; if it differs between targets, set `paths` on each target",
        )


RULE = Rule(
    id="REF103",
    name="path-not-expanded",
    severity=Severity.ERROR,
    sources=(
        "the spec language: `paths` are used as written",
        "POSIX shell, tilde and parameter expansion",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: «/scratch/$USER/data»}\n',
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: «"/scratch/${USER}/data"»}\n',
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: /data}\n'
        "targets: {here: {kind: local, paths: {data: «/scratch/~me»}}}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: /scratch/price$/a~b}\n',
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: /scratch/me/data}\n',
    ),
)
