"""A folder that belongs to another kind of place.

## What it does

Finds folders below /content at targets that are not on Colab, and folders below /home/jupyter on
Colab. Targets may have their own `paths`.

## Why

/content is Colab's working directory. On Workbench and on other machines it does not exist, and
only root may make a folder in /. /home/jupyter is the home on Workbench, where it lies on the data
disk; on Colab it can be made, and is nothing that lasts.

## How to fix

Give the target `paths` with the folder as it is called there; the finding proposes one.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.examples import EMPTY_SPEC
from provision.rules.folders import (
    COLAB_HOME,
    WORKBENCH_HOME,
    declared_folders,
    is_within,
    override_fix,
    to_target_path,
)
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.spec import ColabTarget, LocalTarget, WorkbenchTarget


def _check(context: LintContext) -> Findings:
    for folder in declared_folders(context):
        home = ""
        severity = None
        why = "/content exists on Colab only, and only root may make a folder in /."
        is_below_content = is_within(folder.path, COLAB_HOME)
        match folder.target.target:
            case ColabTarget():
                if folder.holds_results or not is_within(folder.path, WORKBENCH_HOME):
                    continue
                system = "Colab"
                home = COLAB_HOME
                severity = Severity.INFO
                why = "It can be made there, and means nothing: Colab's home is /content."
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
            f"paths.{folder.key} is {folder.path!r}, and target {name} is on {system}",
            folder.route,
            severity=severity,
            why=why,
            help=f"give target {name} its own: paths: {{{folder.key}: "
            f"{path or 'a folder that you may write to'}}}",
            related=related_at(folder.target.route, "used here"),
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
    bad=(
        Example(
            f"{EMPTY_SPEC}paths: {{data: /content/data}}\ntargets:\n  wb: {{kind: workbench, "
            f"project: my-project, bucket: gs://b-1, zones: [us-central1-a]}}\n",
            "/content/data",
            other_ids=(
                "GCP013",
                "IMG002",
            ),
        ),
        Example(f"{EMPTY_SPEC}paths: {{data: /content/data}}\n", "/content/data"),
        Example(
            f"{EMPTY_SPEC}paths: {{data: /home/jupyter/data}}\ntargets:\n  colab: {{kind: colab, "
            f'runtime: "2026.07"}}\n',
            "/home/jupyter/data",
        ),
    ),
    good=examples(
        f"{EMPTY_SPEC}paths: {{data: /content/data}}\ntargets:\n  colab: {{kind: colab, "
        f'runtime: "2026.07"}}\n',
        f"{EMPTY_SPEC}paths: {{data: /home/jupyter/data}}\ntargets:\n  wb: {{kind: "
        f"workbench, project: my-project, bucket: gs://b-1, zones: [us-central1-a]}}\n",
        f"{EMPTY_SPEC}paths: {{data: /home/jupyter/data}}\ntargets:\n  colab: {{kind: colab, "
        f'runtime: "2026.07", paths: {{data: /content/data}}}}\n'
        "  wb: {kind: workbench, project: my-project, bucket: gs://b-1, zones: "
        "[us-central1-a]}\n",
        f"{EMPTY_SPEC}paths: {{data: /contents/data}}\n",
    ),
)
