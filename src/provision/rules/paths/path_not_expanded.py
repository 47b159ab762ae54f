"""A folder's path contains a variable or a ~ that nothing replaces.

## What it does

Looks through `paths` for $NAME, ${NAME}, %NAME% and ~ inside an absolute path.

## Why

Shells replace them, programs do not: the path is handed over as it stands, and means a folder whose
name begins with a dollar sign.

## How to fix

Write the full path. If it differs between users or machines, set `paths` at the targets.
"""

from __future__ import annotations

import re

from provision.diagnostics import Severity
from provision.rules.examples import EMPTY_SPEC
from provision.rules.folders import declared_folders
from provision.rules.rule import Example, Findings, LintContext, Rule, examples

_LEFT = re.compile(r"\$\{?[A-Za-z_]\w*\}?|%[A-Za-z_]\w*%|(?<=/)~[^/]*")


def _check(context: LintContext) -> Findings:
    for route, path in {folder.route: folder.path for folder in declared_folders(context)}.items():
        left = _LEFT.search(path)
        if left is None or not path.startswith("/"):
            continue
        yield RULE.diagnostic(
            f"paths.{route[-1]} is {path!r}, in which nobody replaces {left.group()}",
            route,
            why="Only shells replace it. A program that is given this path looks for a folder "
            "of that very name.",
            help="write the path out; give targets `paths` of their own where it differs",
        )


RULE = Rule(
    id="REF103",
    name="path-not-expanded",
    severity=Severity.ERROR,
    sources=(
        "the spec language: `paths` are taken as they stand",
        "POSIX shell, tilde and parameter expansion",
    ),
    check=_check,
    bad=(
        Example(f"{EMPTY_SPEC}paths: {{data: /scratch/$USER/data}}\n", "/scratch/$USER/data"),
        Example(
            f'{EMPTY_SPEC}paths: {{data: "/scratch/${{USER}}/data"}}\n', '"/scratch/${USER}/data"'
        ),
        Example(
            f"{EMPTY_SPEC}paths: {{data: /data}}\ntargets: {{here: {{kind: local, paths: {{data: "
            f"/scratch/~me}}}}}}\n",
            "/scratch/~me",
        ),
    ),
    good=examples(
        f"{EMPTY_SPEC}paths: {{data: /scratch/price$/a~b}}\n",
        f"{EMPTY_SPEC}paths: {{data: /scratch/me/data}}\n",
    ),
)
