"""A folder for results is in a location that does not keep them.

## What it does

Finds folders whose name suggests results (output, checkpoints, models, logs ...) in locations that
lose them: in memory, in folders that systems clean up, on a Colab runtime, outside /home/jupyter on
Workbench.

## Why

/dev/shm and /run are memory. The system clears /tmp. The disk of a Colab runtime is deleted with
the runtime. A Workbench container keeps only /home/jupyter; on a Workbench machine everything else
is on the boot disk, which an upgrade replaces.

## How to fix

Write to a persistent folder: below /home/jupyter on Workbench, on Drive or in a bucket for Colab.
If the folder only contains copies, nothing needs to change.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.examples import EMPTY_SPEC
from provision.rules.folders import (
    COLAB_HOME,
    DRIVE_MOUNTS,
    WORKBENCH_HOME,
    DeclaredFolder,
    declared_folders,
    is_cleared_by_system,
    is_in_container,
    is_in_memory,
    is_within,
    override_fix,
    to_target_path,
)
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_at
from provision.spec import ColabTarget, WorkbenchTarget


def _check(context: LintContext) -> Findings:
    for folder in declared_folders(context):
        loss = _find_loss(folder)
        if loss is None or not folder.holds_results or not folder.path.startswith("/"):
            continue
        severity, how = loss
        kept = ""
        help_text = "use a folder on a persistent disk"
        if isinstance(folder.target.target, WorkbenchTarget):
            kept = to_target_path(folder.path, WORKBENCH_HOME)
            help_text = f"use {kept}"
        elif isinstance(folder.target.target, ColabTarget):
            help_text = (
                f"use drive:/{folder.key} (a folder on Google Drive), or copy the results to a "
                "bucket"
            )
        yield RULE.diagnostic(
            f"paths.{folder.key} ({folder.path}) on target `{folder.target.name}` {how}",
            folder.route,
            severity=severity,
            why="The folder's name suggests that it is for results, which would be lost.",
            help=help_text,
            related=related_at(folder.target.route, "target defined here"),
            fix=override_fix(folder, kept),
        )


def _find_loss(folder: DeclaredFolder) -> tuple[Severity | None, str] | None:
    """Return the severity and how results get lost; None if they are kept."""
    path = folder.path
    target = folder.target.target
    if is_in_memory(path):
        return None, "is in memory, so it uses RAM and is lost when the machine stops"
    if isinstance(target, ColabTarget):
        return (
            None
            if is_within(path, *DRIVE_MOUNTS)
            else (Severity.INFO, "is deleted with the runtime")
        )
    if is_within(path, COLAB_HOME):
        return None  # The folder does not exist: REF102.
    if isinstance(target, WorkbenchTarget) and not is_within(path, WORKBENCH_HOME):
        if is_in_container(folder.target):
            return None, f"is lost when the container restarts (only {WORKBENCH_HOME} persists)"
        if is_cleared_by_system(path):
            return None, "is cleared by the system"
        return Severity.INFO, "is on the boot disk, which an upgrade replaces"
    if is_cleared_by_system(path):
        return Severity.INFO, "is cleared by the system, at the latest when it restarts"
    return None


CONTAINER = (
    "targets:\n  wb: {kind: workbench, project: my-project, bucket: gs://b-1, zones: "
    "[us-central1-a], image: workbench-container-2606}\n"
)
RULE = Rule(
    id="REF105",
    name="results-not-kept",
    severity=Severity.WARNING,
    sources=(
        (
            "docs.cloud.google.com, Workbench instances, create a custom container: only "
            "/home/jupyter persists"
        ),
        "Colab FAQ, research.google.com/colaboratory/faq.html",
        "Filesystem Hierarchy Standard 3.0: /tmp, /run",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: []\npaths: {output: «/dev/shm/out»}\n',
        'gpu: none\npython: "3.12"\npackages: []\npaths: {checkpoints: «/tmp/checkpoints»}\n',
        'gpu: none\npython: "3.12"\npackages: []\npaths: {output: «/content/out»}\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
        example(
            f"{EMPTY_SPEC}paths: {{output: «/opt/out»}}\n{CONTAINER}",
            other_ids=(
                "GCP013",
                "IMG004",
            ),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\n'
        "paths: {output: /home/me/out, scratch: /tmp/scratch}\n",
        f"{EMPTY_SPEC}paths: {{output: /home/jupyter/out}}\n{CONTAINER}",
        'gpu: none\npython: "3.12"\npackages: []\npaths: {data: /content/data}\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
    ),
)
