"""A folder belongs to a different kind of target.

## What it does

Finds folders below /content on targets that are not on Colab, and folders below /home/jupyter on
Colab. Targets may have their own `paths`.

## Why

/content is Colab's working directory. On Workbench and on other machines it does not exist, and
only root can create a folder in /. /home/jupyter is the home folder on Workbench, on the data disk;
on Colab it can be created, but does not persist.

## How to fix

Set `paths` on the target to the folder that exists there; the finding suggests one.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.folders import (
    COLAB_HOME,
    WORKBENCH_HOME,
    declared_folders,
    is_within,
    override_fix,
    to_target_path,
)
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_at
from provision.spec import ColabTarget, LocalTarget, WorkbenchTarget


def _check(context: LintContext) -> Findings:
    for folder in declared_folders(context):
        home = ""
        severity = None
        why = "/content exists only on Colab, and only root can create a folder in /."
        is_below_content = is_within(folder.path, COLAB_HOME)
        match folder.target.target:
            case ColabTarget():
                if folder.holds_results or not is_within(folder.path, WORKBENCH_HOME):
                    continue
                system = "Colab"
                home = COLAB_HOME
                severity = Severity.INFO
                why = (
                    "The folder can be created, but it has no purpose on Colab, where notebooks "
                    "run in /content."
                )
            case WorkbenchTarget() if is_below_content:
                system = "Workbench"
                home = WORKBENCH_HOME
            case LocalTarget() if is_below_content:
                system = "this machine"
            case _:
                continue
        path = to_target_path(folder.path, home) if home else ""
        name = folder.target.name
        yield RULE.diagnostic(
            f"paths.{folder.key} is {folder.path}, but target `{name}` runs on {system}",
            folder.route,
            severity=severity,
            why=why,
            help=(
                f"set `paths: {{{folder.key}: {path or 'a folder you can write to'}}}` on target "
                f"{name}"
            ),
            related=related_at(folder.target.route, "target defined here"),
            fix=override_fix(folder, path),
        )


RULE = Rule(
    id="REF102",
    name="path-wrong-place",
    severity=Severity.WARNING,
    sources=(
        "googlecolab/colabtools: a notebook's working directory is /content",
        "docs.cloud.google.com, Workbench instances: /home/jupyter",
    ),
    check=_check,
    bad=examples(
        example(
            'gpu: none\npython: "3.12"\npackages: []\npaths: {data: «/content/data»}\ntargets:\n'
            "  wb: {kind: workbench, project: my-project, bucket: gs://b-1, zones: "
            "[us-central1-a]}\n",
            other_ids=(
                "GCP013",
                "IMG002",
            ),
        ),
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: «/content/data»}\n',
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: «/home/jupyter/data»}\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: /content/data}\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: /home/jupyter/data}\ntargets:\n'
        "  wb: {kind: workbench, project: my-project, bucket: gs://b-1, zones: [us-central1-a]}\n",
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: /home/jupyter/data}\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07", paths: {data: /content/data}}\n'
        "  wb: {kind: workbench, project: my-project, bucket: gs://b-1, zones: [us-central1-a]}\n",
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: /contents/data}\n',
    ),
)
