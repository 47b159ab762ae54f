"""The configuration of torch's allocator is written as torch does not take it.

## What it does

Reads PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF: pairs of OPTION:VALUE with commas between
them, True and False with a capital letter, numbers within the limits of each option.

## Why

torch reads it when the GPU is first used, and ends the program there: "Expected 'True' or 'False'",
"max_split_size_mb too small". With = in place of : it fails with an internal error that names
neither the variable nor the option.

## How to fix

Write it as in `expandable_segments:True,max_split_size_mb:128`.
"""

from __future__ import annotations

import re

from provision.diagnostics import Severity
from provision.facts.schema_variables import AllocatorOption
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
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
                why="torch reads it when the GPU is first used, and ends the program there.",
                help=help_text,
            )


def _find_problem(context: LintContext, part: str) -> tuple[str, str, Severity | None] | None:
    """Return the message, the fix in words and the severity if torch does not accept a part."""
    option, colon, value = map(str.strip, part.partition(":"))
    if part and not colon:
        form = part.replace("=", ":") if "=" in part else "OPTION:VALUE"
        return f"{part} is not of the form OPTION:VALUE", f"write {form}", None
    options = context.facts.allocator_options
    row = options.get(option)
    if row is not None:
        limits = _violated_limit(row, value)
        severity = row.evidence.cap_severity(Severity.ERROR)
        message = f"{option} takes {limits}, and {value} is given"
        return (message, f"give it {limits}", severity) if limits else None
    meant = nearest_word(option, options, 3) if option else None
    if meant is None:
        return None
    message = f"the facts know no option {option}; the nearest is {meant}"
    return message, f"write {meant}, if that is meant", Severity.WARNING


def _violated_limit(row: AllocatorOption, value: str) -> str | None:
    """Return what the option accepts if the value does not fit, else None."""
    match row.takes:
        case "flag" if value not in ("True", "False"):
            return "True or False, with a capital letter"
        case "number" if value.isdecimal() and int(value) < row.least:
            return f"a number of at least {row.least}"
        case "ratio" if re.fullmatch(r"\d+(\.\d*)?", value) and not 0 < float(value) <= 1:
            return "a number between 0 and 1"
    return None


HEAD = 'gpu: L4\npython: "3.12"\npackages: []\n'
RULE = Rule(
    id="ENV014",
    name="allocator-refused",
    severity=Severity.ERROR,
    sources=(
        "torch 2.13.0, c10/core/AllocatorConfig.h, each value given to torch",
        "docs.pytorch.org, CUDA semantics: memory management",
    ),
    check=_check,
    bad=(
        Example(
            f'{HEAD}env: {{PYTORCH_ALLOC_CONF: "expandable_segments:true"}}\n',
            '"expandable_segments:true"',
        ),
        Example(
            f"{HEAD}env: {{PYTORCH_CUDA_ALLOC_CONF: expandable_segments=True}}\n",
            "expandable_segments=True",
        ),
        Example(
            f'{HEAD}env: {{PYTORCH_ALLOC_CONF: "max_split_size_mb:16"}}\n', '"max_split_size_mb:16"'
        ),
        Example(f'{HEAD}env: {{PYTORCH_ALLOC_CONF: "max_split_size:64"}}\n', '"max_split_size:64"'),
    ),
    good=examples(
        f"{HEAD}env: {{PYTORCH_ALLOC_CONF: "
        f'"expandable_segments:True,max_split_size_mb:20,garbage_collection_threshold:0.8"}}\n',
        f"{HEAD}env: {{PYTORCH_CUDA_ALLOC_CONF: "
        f'"roundup_power2_divisions:[256:1,512:2,>:8],backend:native"}}\n',
    ),
)
