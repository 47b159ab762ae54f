"""A folder for results is in a location that does not outlive the work.

## What it does

Finds folders whose name suggests results (output, checkpoints, models, logs ...) in locations that
lose them: in memory, in folders that systems clean up, on a Colab runtime, outside /home/jupyter on
Workbench.

## Why

/dev/shm and /run are memory. /tmp is cleared by the system. All of a Colab runtime's disk goes with
the runtime. A Workbench container keeps /home/jupyter and nothing else; on a Workbench machine what
lies elsewhere is on the boot disk, which an upgrade replaces.

## How to fix

Write to a folder that stays: below /home/jupyter on Workbench, Drive or a bucket for Colab. Where
only copies lie there, nothing needs to be done.
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
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.spec import ColabTarget, WorkbenchTarget


def _check(context: LintContext) -> Findings:
    for folder in declared_folders(context):
        loss = _find_loss(folder)
        if loss is None or not folder.holds_results or not folder.path.startswith("/"):
            continue
        severity, how = loss
        kept = ""
        help_text = "write a folder on a disk that stays"
        if isinstance(folder.target.target, WorkbenchTarget):
            kept = to_target_path(folder.path, WORKBENCH_HOME)
            help_text = f"write {kept}"
        elif isinstance(folder.target.target, ColabTarget):
            help_text = (
                f"write {DRIVE_MOUNTS[0]}/MyDrive/{folder.key} once Drive is mounted, or copy them "
                "to a bucket"
            )
        yield RULE.diagnostic(
            f"target {folder.target.name}: what is written to paths.{folder.key} ({folder.path}) "
            f"{how}",
            folder.route,
            severity=severity,
            why="Its name says that it holds results, and they do not outlive the work there.",
            help=help_text,
            related=related_at(folder.target.route, "used here"),
            fix=override_fix(folder, kept),
        )


def _find_loss(folder: DeclaredFolder) -> tuple[Severity | None, str] | None:
    """Return the severity and how results get lost; None if they are kept."""
    path = folder.path
    target = folder.target.target
    if is_in_memory(path):
        return None, "is in memory: it takes RAM, and is gone when the machine stops"
    if isinstance(target, ColabTarget):
        return None if is_within(path, *DRIVE_MOUNTS) else (Severity.INFO, "goes with the runtime")
    if is_within(path, COLAB_HOME):
        return None  # It is not there at all: REF102.
    if isinstance(target, WorkbenchTarget) and not is_within(path, WORKBENCH_HOME):
        if is_in_container(folder.target):
            return None, f"is gone when the container starts anew: only {WORKBENCH_HOME} stays"
        if is_cleared_by_system(path):
            return None, "is cleared by the system"
        return Severity.INFO, "is on the boot disk, which an upgrade replaces"
    if is_cleared_by_system(path):
        return Severity.INFO, "is cleared by the system, at the latest when it starts anew"
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
    bad=(
        Example(f"{EMPTY_SPEC}paths: {{output: /dev/shm/out}}\n", "/dev/shm/out"),  # noqa: S108
        Example(f"{EMPTY_SPEC}paths: {{checkpoints: /tmp/checkpoints}}\n", "/tmp/checkpoints"),  # noqa: S108
        Example(
            f"{EMPTY_SPEC}paths: {{output: /content/out}}\ntargets:\n  colab: {{kind: colab, "
            f'runtime: "2026.07"}}\n',
            "/content/out",
        ),
        Example(
            f"{EMPTY_SPEC}paths: {{output: /opt/out}}\n{CONTAINER}",
            "/opt/out",
            other_ids=(
                "GCP013",
                "IMG004",
            ),
        ),
    ),
    good=examples(
        f"{EMPTY_SPEC}paths: {{output: /home/me/out, scratch: /tmp/scratch}}\n",
        f"{EMPTY_SPEC}paths: {{output: /home/jupyter/out}}\n{CONTAINER}",
        f"{EMPTY_SPEC}paths: {{data: /content/data}}\ntargets:\n  colab: {{kind: colab, "
        f'runtime: "2026.07"}}\n',
    ),
)
