"""torch rejects the configuration of its allocator.

## What it does

Parses PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF: comma-separated OPTION:VALUE pairs, True and
False capitalized, numbers within the limits of each option.

## Why

torch reads the variable when the program first uses the GPU, and then fails: "Expected 'True' or
'False'", "max_split_size_mb too small". With = instead of : it fails with an internal error that
names neither the variable nor the option.

## How to fix

Use the form `expandable_segments:True,max_split_size_mb:128`.
"""

from __future__ import annotations

import re

from provision.diagnostics import Severity
from provision.facts.schema_variables import AllocatorOption
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spelling import nearest_word

NAMES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def _check(context: LintContext) -> Findings:
    for name in NAMES:
        for part in re.split(r",(?![^\[]*\])", context.spec.env.get(name, "")):
            problem = _find_problem(context, part.strip())
            if problem is None:
                continue
            message, help_text, severity = problem
            yield RULE.diagnostic(
                f"{name}: {message}",
                ("env", name),
                severity=severity,
                why="torch reads the value when the program first uses the GPU, and then fails.",
                help=help_text,
            )


def _find_problem(context: LintContext, part: str) -> tuple[str, str, Severity | None] | None:
    """Return the message, the fix in words and the severity if torch does not accept a part."""
    option, colon, value = map(str.strip, part.partition(":"))
    if part and not colon:
        form = part.replace("=", ":") if "=" in part else "OPTION:VALUE"
        return f"{part} does not have the form OPTION:VALUE", f"use {form}", None
    options = context.facts.allocator_options
    row = options.get(option)
    if row is not None:
        limits = _violated_limit(row, value)
        severity = row.evidence.cap_severity(Severity.ERROR)
        message = f"{option} must be {limits}, not {value}"
        return (message, f"set it to {limits}", severity) if limits else None
    meant = nearest_word(option, options, 3) if option else None
    if meant is None:
        return None
    return f"unknown option {option}; did you mean {meant}?", f"use {meant}", Severity.WARNING


def _violated_limit(row: AllocatorOption, value: str) -> str | None:
    """Return what the option accepts if the value does not fit, else None."""
    match row.takes:
        case "flag" if value not in ("True", "False"):
            return "True or False (capitalized)"
        case "number" if value.isdecimal() and int(value) < row.least:
            return f"a number of at least {row.least}"
        case "ratio" if re.fullmatch(r"\d+(\.\d*)?", value) and not 0 < float(value) <= 1:
            return "a number between 0 and 1"
    return None


RULE = Rule(
    id="ENV014",
    name="allocator-refused",
    severity=Severity.ERROR,
    sources=(
        "torch 2.13.0, c10/core/AllocatorConfig.h, each value tested with torch",
        "docs.pytorch.org, CUDA semantics: memory management",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.12"\npackages: []\n'
        'env: {PYTORCH_ALLOC_CONF: «"expandable_segments:true"»}\n',
        'gpu: L4\npython: "3.12"\npackages: []\n'
        "env: {PYTORCH_CUDA_ALLOC_CONF: «expandable_segments=True»}\n",
        'gpu: L4\npython: "3.12"\npackages: []\n'
        'env: {PYTORCH_ALLOC_CONF: «"max_split_size_mb:16"»}\n',
        'gpu: L4\npython: "3.12"\npackages: []\nenv: {PYTORCH_ALLOC_CONF: «"max_split_size:64"»}\n',
    ),
    good=examples(
        'gpu: L4\npython: "3.12"\npackages: []\n'
        "env: {PYTORCH_ALLOC_CONF: "
        '"expandable_segments:True,max_split_size_mb:20,garbage_collection_threshold:0.8"}\n',
        'gpu: L4\npython: "3.12"\npackages: []\n'
        "env: {PYTORCH_CUDA_ALLOC_CONF: "
        '"roundup_power2_divisions:[256:1,512:2,>:8],backend:native"}\n',
    ),
)
