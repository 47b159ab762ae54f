"""A variable that names a folder names one that is another everywhere, or that nobody finds.

## What it does

Looks at the variables that name folders (HF_HOME, HF_DATASETS_CACHE, TMPDIR, WANDB_DIR and others):
the path must be absolute, and may hold ~ or $NAME only where the program that reads the variable
replaces them.

## Why

A relative path is looked up from the working directory, which differs between a notebook, a
terminal and a service: models are downloaded again in each. huggingface-hub replaces ~ and $NAME,
datasets does not: with HF_DATASETS_CACHE=~/data the data is in a folder called ~, and TMPDIR=~/tmp
is ignored.

## How to fix

Write the whole path.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_variables import FolderVariable
from provision.rules.examples import EMPTY_SPEC
from provision.rules.rule import Example, Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    for name, value in context.spec.env.items():
        row = context.facts.folders.get(name)
        if row is None or not value or (problem := _problem(row, value)) is None:
            continue
        yield RULE.diagnostic(
            f"{name} is {value!r}: {problem}",
            ("env", name),
            why=f"It says where {row.holds} lie, and is taken as it stands.",
            help="write the whole path, as in /home/jupyter/cache",
        )


def _problem(row: FolderVariable, value: str) -> str | None:
    if value.startswith("~"):
        if "~" in row.expands:
            return None
        return "what reads it does not replace the ~"
    if "$" in value:
        if "$" in row.expands:
            return None
        if "~" not in row.expands:
            return "what reads it does not replace variables"
        return "not all that reads it replaces variables"
    if value.startswith("/") or value[1:3] in (":\\", ":/"):
        return None
    return "another folder wherever the working directory is another one"


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
    bad=(
        Example(f"{EMPTY_SPEC}env: {{HF_HOME: cache/hf}}\n", "cache/hf"),
        Example(f"{EMPTY_SPEC}env: {{HF_DATASETS_CACHE: ~/data}}\n", "~/data"),
        Example(f"{EMPTY_SPEC}env: {{TMPDIR: $HOME/tmp}}\n", "$HOME/tmp"),
    ),
    good=examples(
        f"{EMPTY_SPEC}env: {{HF_HOME: /data/hf, HF_HUB_CACHE: $HOME/hub, WANDB_DIR: ~/runs}}\n",
        f"{EMPTY_SPEC}env: {{MY_FOLDER: data, HF_HOME: ~/hf}}\n",
        f"{EMPTY_SPEC}env: {{HF_HOME: 'D:\\hf'}}\n",
    ),
)
