"""A declared folder is not an absolute path.

## What it does

Checks that the `paths` of the spec and of every target are absolute, or name a folder of Google
Drive as drive:/FOLDER.

## Why

A relative path depends on the working directory: a notebook starts in /content on Colab and in
/home/jupyter on Workbench. `~` and `$HOME` are expanded by shells, not by Python's open(), and are
different folders in a terminal, a kernel and a service.

## How to fix

Use an absolute path. If it differs between targets, set `paths` on each target.
"""

from __future__ import annotations

import re

from provision.diagnostics import Diagnostic, Route, Severity
from provision.kinds.drive import is_drive_folder, is_on_drive
from provision.rules.folders import declared_folders
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spec import Platform

_WINDOWS = re.compile(r"[A-Za-z]:[\\/].*")


def _check(context: LintContext) -> Findings:
    windows = Platform.WINDOWS_X86_64 in context.spec.platforms
    for route, path in {folder.route: folder.path for folder in declared_folders(context)}.items():
        if is_on_drive(path):
            if not is_drive_folder(path):
                yield _drive_finding(route, path)
            continue
        if path.startswith("/") or (windows and _WINDOWS.fullmatch(path)):
            continue
        yield RULE.diagnostic(
            f"paths.{route[-1]} is {path}, which is not an absolute path",
            route,
            why=(
                "~ and variables stand for a different folder for every user, and programs do "
                "not expand them."
            )
            if path[:1] in ("~", "$", "%")
            else "A relative path depends on the working directory: /content on Colab, "
            "/home/jupyter on Workbench.",
            help=(
                "use an absolute path, such as /home/jupyter/data; if it differs between "
                "targets, set `paths` on each target"
            ),
        )


def _drive_finding(route: Route, path: str) -> Diagnostic:
    return RULE.diagnostic(
        f"paths.{route[-1]} is {path}, which is not a Google Drive folder",
        route,
        why="The path must be relative to the root of My Drive and must not contain `..`.",
        help="use drive:/FOLDER, such as drive:/data",
    )


RULE = Rule(
    id="REF101",
    name="path-relative",
    severity=Severity.ERROR,
    sources=(
        "the spec language, `paths` (absolute)",
        "Colab and Workbench, working directory of notebooks",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: []\npaths: {data: «data/train»}\n',
        'gpu: none\npython: "3.11"\npackages: []\npaths: {output: «~/out»}\n',
        'gpu: none\npython: "3.11"\npackages: []\n'
        "targets: {here: {kind: local, paths: {data: «./d»}}}\n",
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: «drive:data»}\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: []\npaths: {data: /home/jupyter/data}\n',
        'gpu: none\npython: "3.11"\npackages: []\nplatforms: [windows-x86_64]\n'
        "paths: {data: 'C:\\data'}\n",
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: drive:/data}\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
    ),
)
