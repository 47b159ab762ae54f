"""A variable names a folder by a path that is not absolute or not expanded.

## What it does

Checks the variables that name folders (HF_HOME, HF_DATASETS_CACHE, TMPDIR, WANDB_DIR and others):
the path must be absolute, and may contain ~ or $NAME only if the program that reads the variable
expands them.

## Why

A relative path depends on the working directory, which differs between a notebook, a terminal and a
service: models are downloaded again in each. huggingface-hub expands ~ and $NAME, datasets does
not: with HF_DATASETS_CACHE=~/data the data is in a folder called ~, and TMPDIR=~/tmp is ignored.

## How to fix

Use an absolute path.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_variables import FolderVariable
from provision.rules.rule import Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    for name, value in context.spec.env.items():
        row = context.facts.folders.get(name)
        if row is None or not value or (problem := _problem(row, value)) is None:
            continue
        yield RULE.diagnostic(
            f"{name} is {value}, but {problem}",
            ("env", name),
            why=f"The variable sets the folder for {row.holds}; its value is used as written.",
            help="use an absolute path, such as /home/jupyter/cache",
        )


def _problem(row: FolderVariable, value: str) -> str | None:
    if value.startswith("~"):
        if "~" in row.expands:
            return None
        return "the program that reads it does not expand ~"
    if "$" in value:
        if "$" in row.expands:
            return None
        if "~" not in row.expands:
            return "the program that reads it does not expand variables"
        return "not every program that reads it expands variables"
    if value.startswith("/") or value[1:3] in (":\\", ":/"):
        return None
    return "a relative path depends on the working directory"


RULE = Rule(
    id="ENV011",
    name="folder-not-absolute",
    severity=Severity.WARNING,
    sources=(
        "huggingface-hub 2.4.0 constants.py",
        "datasets 5.2.0 config.py",
        "CPython, Lib/tempfile.py",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: []\nenv: {HF_HOME: «cache/hf»}\n',
        'gpu: none\npython: "3.12"\npackages: []\nenv: {HF_DATASETS_CACHE: «~/data»}\n',
        'gpu: none\npython: "3.12"\npackages: []\nenv: {TMPDIR: «$HOME/tmp»}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\n'
        "env: {HF_HOME: /data/hf, HF_HUB_CACHE: $HOME/hub, WANDB_DIR: ~/runs}\n",
        'gpu: none\npython: "3.12"\npackages: []\nenv: {MY_FOLDER: data, HF_HOME: ~/hf}\n',
        "gpu: none\npython: \"3.12\"\npackages: []\nenv: {HF_HOME: 'D:\\hf'}\n",
    ),
)
