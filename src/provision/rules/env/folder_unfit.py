"""A variable sends gigabytes to a folder that is in memory, not persistent or missing.

## What it does

Checks, for every target, the paths in HF_HOME, TMPDIR and other variables that name folders for
models, datasets and temporary files.

## Why

/dev/shm is memory: a model that is downloaded there takes RAM twice. A Workbench container keeps
only /home/jupyter, so models are downloaded at every start. On a Workbench machine everything
outside /home/jupyter is on the boot disk, next to the system. /content exists only on Colab.

## How to fix

Use a folder on the large, persistent disk: below /home/jupyter on Workbench. `env` applies to all
targets: if they differ, remove the variable, and each target uses its own home folder.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_variables import FolderVariable
from provision.kinds.base import TargetFacts
from provision.rules.examples import EMPTY_SPEC
from provision.rules.folders import (
    COLAB_HOME,
    WORKBENCH_HOME,
    is_cleared_by_system,
    is_in_container,
    is_in_memory,
    is_within,
)
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_at
from provision.spec import LocalTarget, WorkbenchTarget


def _check(context: LintContext) -> Findings:
    for name, path in context.spec.env.items():
        row = context.facts.folders.get(name)
        if row is None or not row.big or not path.startswith("/"):
            continue
        for target in context.targets:
            problem = _find_problem(row, path, target)
            if problem is None:
                continue
            severity, what = problem
            proposed = "a folder on disk"
            if isinstance(target.target, WorkbenchTarget):
                proposed = f"{WORKBENCH_HOME}/.cache/{name.lower().replace('_', '-')}"
            yield RULE.diagnostic(
                f"{name} is {path}, which {what} on target `{target.name}`",
                ("env", name),
                severity=severity,
                why=f"The variable sets the folder for {row.holds}, which can take up gigabytes.",
                help=(
                    f"set it to {proposed}, or remove the variable; each target then uses its "
                    "default folder"
                ),
                related=related_at(target.route, "target defined here"),
            )
            break


def _find_problem(
    row: FolderVariable, path: str, target: TargetFacts
) -> tuple[Severity | None, str] | None:
    is_workbench = isinstance(target.target, WorkbenchTarget)
    if is_in_memory(path):
        return None, "is stored in RAM"
    if is_within(path, COLAB_HOME) and (is_workbench or isinstance(target.target, LocalTarget)):
        return None, "exists only on Colab"
    if not is_workbench or is_within(path, WORKBENCH_HOME):
        return None
    if row.variable == "TMPDIR" and is_cleared_by_system(path):
        return None
    if is_in_container(target):
        return None, f"is lost when the container restarts (only {WORKBENCH_HOME} persists)"
    what = f"is on the boot disk instead of the data disk ({WORKBENCH_HOME})"
    return Severity.INFO, what


WORKBENCH = (
    "targets:\n  wb: {kind: workbench, project: my-project, bucket: gs://b-1, zones: "
    "[us-central1-a]}\n"
)
CONTAINER = (
    "targets:\n  wb: {kind: workbench, project: my-project, bucket: gs://b-1, zones: "
    "[us-central1-a], image: workbench-container-2606}\n"
)
RULE = Rule(
    id="ENV012",
    name="folder-unfit",
    severity=Severity.WARNING,
    sources=(
        "docs.cloud.google.com, Workbench instances: boot disk, data disk, custom containers",
        "Filesystem Hierarchy Standard 3.0",
        "shm_overview(7)",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: []\nenv: {HF_HOME: «/dev/shm/hf»}\n',
        example(
            f"{EMPTY_SPEC}env: {{HF_HOME: «/opt/hf»}}\n{CONTAINER}",
            other_ids=(
                "GCP013",
                "IMG004",
            ),
        ),
        example(
            f"{EMPTY_SPEC}env: {{HF_HOME: «/opt/hf»}}\n{WORKBENCH}",
            other_ids=(
                "GCP013",
                "IMG002",
            ),
        ),
        'gpu: none\npython: "3.12"\npackages: []\nenv: {HF_HUB_CACHE: «/content/hub»}\n',
    ),
    good=examples(
        f"{EMPTY_SPEC}env: {{HF_HOME: /home/jupyter/hf, TMPDIR: /tmp}}\n{WORKBENCH}",
        'gpu: none\npython: "3.12"\npackages: []\nenv: {HF_HOME: /content/hf}\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
        'gpu: none\npython: "3.12"\npackages: []\n'
        "env: {HF_HOME: /opt/hf, WANDB_DIR: /dev/shm/runs}\n",
    ),
)
