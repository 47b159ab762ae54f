"""A folder on Google Drive, which a Colab runtime has only after it was mounted.

## What it does

Finds folders below /content/drive at Colab targets, those of `env` too.

## Why

A new runtime has no Drive until someone runs `drive.mount("/content/drive")` and agrees in the
browser. A program that runs earlier creates the folder on the machine's own disk: what it writes
there is lost, and mounting then fails with "Mountpoint must not already contain files". Below the
mount, files are under MyDrive or Shareddrives.

## How to fix

Mount Drive in the first cell. Or work on the machine's disk and copy what is to stay; Drive is slow
with many small files.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import colab_targets
from provision.rules.examples import COLAB_TARGETS, EMPTY_SPEC
from provision.rules.folders import DRIVE_MOUNTS, declared_folders, is_within
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at

DRIVE_FOLDERS = tuple(
    f"{drive}/{name}"
    for drive in DRIVE_MOUNTS
    for name in ("MyDrive", "My Drive", "Shareddrives", "Shared drives", "Othercomputers")
)


def _check(context: LintContext) -> Findings:
    variables = context.spec.env.keys() & context.facts.folders.keys()
    for colab in colab_targets(context):
        folders = {
            folder.route: folder.path
            for folder in declared_folders(context)
            if folder.target is colab.facts
        }
        folders |= {("env", name): context.spec.env[name] for name in variables}
        is_driven = colab.target.via == "colab-cli"
        for route, path in folders.items():
            if not is_within(path, *DRIVE_MOUNTS):
                continue
            is_outside = not is_within(path, *DRIVE_FOLDERS)
            why = (
                "What is made before lies on the machine's own disk, and mounting then fails: "
                "Mountpoint must not already contain files."
            )
            if is_driven:
                why = "Colab's command line has no browser to agree in."
            if is_outside:
                why += " Files of a Drive lie in MyDrive or Shareddrives below the mount."
            yield RULE.diagnostic(
                f"{'.'.join(map(str, route))} lies on Google Drive, which target {colab.name} has "
                "only after it was mounted",
                route,
                severity=None if is_driven or is_outside or route[0] == "env" else Severity.INFO,
                why=why,
                help="run drive.mount in the first cell, or write a folder below /content and copy "
                "what is to stay",
                related=related_at(colab.facts.route, "this runtime"),
            )


RULE = Rule(
    id="REF104",
    name="drive-not-mounted",
    severity=Severity.WARNING,
    sources=("googlecolab/colabtools, google/colab/drive.py",),
    check=_check,
    bad=(
        Example(
            f"{EMPTY_SPEC}paths: {{output: /content/drive/MyDrive/out}}\n{COLAB_TARGETS}",
            "/content/drive/MyDrive/out",
        ),
        Example(
            f"{EMPTY_SPEC}paths: {{data: /content/drive/data}}\n{COLAB_TARGETS}",
            "/content/drive/data",
        ),
        Example(
            f"{EMPTY_SPEC}env: {{HF_HOME: /content/drive/MyDrive/hf}}\n{COLAB_TARGETS}",
            "/content/drive/MyDrive/hf",
        ),
        Example(
            f"{EMPTY_SPEC.replace('3.12', '3.13')}paths: {{data: "
            f"/content/drive/MyDrive/d}}\ntargets:\n  colab: {{kind: colab, via: "
            f"colab-cli}}\n",
            "/content/drive/MyDrive/d",
        ),
    ),
    good=examples(
        f"{EMPTY_SPEC}paths: {{data: /content/data}}\n{COLAB_TARGETS}",
        f"{EMPTY_SPEC}env: {{BUCKET: /content/drive/MyDrive/hf}}\n{COLAB_TARGETS}",
    ),
)
