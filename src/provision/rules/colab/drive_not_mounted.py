"""A folder on Google Drive does not exist until Drive is mounted.

## What it does

Finds folders below a mount point of Drive on Colab targets that the cell does not mount: variables
in `env` without a folder of Drive under `paths`, mount points other than /content/drive, folders
outside MyDrive and Shareddrives, and all of them with `via: colab-cli`.

## Why

A new runtime has no Drive until someone runs `drive.mount("/content/drive")` and agrees in the
browser. The cell does so if `paths` name a folder of Drive. A program that runs earlier creates the
folder on the machine's own disk: the files that it writes there are lost, and mounting then fails
with "Mountpoint must not already contain files". Below the mount point, files are under MyDrive or
Shareddrives.

## How to fix

Name a folder of Drive under `paths`, as drive:/FOLDER. Or work on the machine's disk and copy the
results that you want to keep; Drive is slow with many small files.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds.drive import find_mount
from provision.rules.examples import colab_spec
from provision.rules.folders import DRIVE_MOUNTS, declared_folders, is_within
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.spec import ColabTarget

DRIVE_FOLDERS = tuple(
    f"{drive}/{name}"
    for drive in DRIVE_MOUNTS
    for name in ("MyDrive", "My Drive", "Shareddrives", "Shared drives", "Othercomputers")
)


def _check(context: LintContext) -> Findings:
    variables = context.spec.env.keys() & context.facts.folders.keys()
    for target, fields in context.targets_of(ColabTarget):
        folders = {
            folder.route: folder.path
            for folder in declared_folders(context)
            if folder.target is target
        }
        folders |= {("env", name): context.spec.env[name] for name in variables}
        is_driven = fields.via == "colab-cli"
        mount = find_mount({**context.spec.paths, **fields.paths})
        mounted = "" if is_driven or mount is None else mount
        for route, path in folders.items():
            if not is_within(path, *DRIVE_MOUNTS):
                continue
            is_outside = not is_within(path, *DRIVE_FOLDERS)
            if mounted and is_within(path, mounted) and not is_outside:
                continue
            why = (
                "Files written before mounting stay on the machine's own disk, and mounting "
                "then fails with: Mountpoint must not already contain files."
            )
            if is_driven:
                why = "Mounting Drive requires a browser, which `via: colab-cli` does not have."
            if is_outside:
                why += " The files on a Drive are in MyDrive or Shareddrives under the mount point."
            yield RULE.diagnostic(
                f"{'.'.join(map(str, route))} is on Google Drive, which target `{target.name}` "
                "must mount first",
                route,
                severity=None if is_driven or is_outside or route[0] == "env" else Severity.INFO,
                why=why,
                help=(
                    "set `paths: {data: drive:/FOLDER}`, which makes the cell mount Drive, or "
                    "use a folder under /content and copy the results you want to keep"
                ),
                related=related_at(target.route, "target defined here"),
            )


RULE = Rule(
    id="REF104",
    name="drive-not-mounted",
    severity=Severity.WARNING,
    sources=("googlecolab/colabtools, google/colab/drive.py",),
    check=_check,
    reads_settings=True,
    bad=examples(
        colab_spec(top="gpu: none\npaths: {output: «/content/gdrive/MyDrive/out»}\n"),
        colab_spec(top="gpu: none\npaths: {data: «/content/drive/data»}\n"),
        colab_spec(top="gpu: none\nenv: {HF_HOME: «/content/drive/MyDrive/hf»}\n"),
        'gpu: none\npython: "3.13"\npackages: []\npaths: {data: «/content/drive/MyDrive/d»}\n'
        "targets:\n  colab: {kind: colab, via: colab-cli}\n",
    ),
    good=examples(
        colab_spec(top="gpu: none\npaths: {data: /content/data}\n"),
        colab_spec(top="gpu: none\npaths: {output: /content/drive/MyDrive/out}\n"),
        colab_spec(
            top="gpu: none\npaths: {output: drive:/out}\n"
            "env: {HF_HOME: /content/drive/MyDrive/hf}\n"
        ),
        colab_spec(top="gpu: none\nenv: {BUCKET: /content/drive/MyDrive/hf}\n"),
    ),
)
