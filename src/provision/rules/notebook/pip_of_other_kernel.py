"""`!pip` installs into the shell's environment, not into the kernel's.

## What it does

Looks for `!pip install` in notebooks whose kernel is in a conda environment: its name starts with
`conda-`, or a cell runs `%conda install`. `!conda` shows nothing about the kernel, because it runs
in the shell.

## Why

`!` starts a shell, which takes the first `pip` on its PATH. If Jupyter runs in a different
environment than the kernel, the package is installed there, and the import fails. `%pip` runs the
pip of the kernel's Python.

## How to fix

Write `%pip` instead of `!pip`.
"""

from __future__ import annotations

import re

from provision.diagnostics import Applicability, Fix, Replace, Severity
from provision.imports.notebook import CellInstall, metadata_text
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.notebook_examples import notebook_example
from provision.rules.rule import Findings, Rule

_PIP = re.compile(r"![ \t]*(pip3?)(?= )")


def _check(context: NotebookContext) -> Findings:
    kernel = metadata_text(context.notebook.metadata, "kernelspec", "name") or ""
    by_conda = any(
        install.tool == "conda" and install.command.origin == "%"
        for install in context.notebook.installs
    )
    if context.is_saved_by_colab or not (kernel.startswith("conda-") or by_conda):
        return
    for install in context.installs:
        if install.command.origin != "!" or install.program not in ("pip install", "pip3 install"):
            continue
        fix = _fix(context, install)
        yield RULE.diagnostic(
            f"!{install.program} uses the shell's pip, but the kernel runs in a conda environment",
            install.span,
            why="The packages may be installed in an environment other than the kernel's.",
            help="use `%pip install`, which runs the kernel's pip",
            fix=fix,
        )


def _fix(context: NotebookContext, install: CellInstall) -> Fix | None:
    """Return the edit of a line with one command; a magic takes no further ones."""
    file = context.notebook.cell(install.cell).file()
    start = file.start_of_line(install.span.start.offset)
    line = file.content[start : file.end_of_line(start)]
    indent = len(line) - len(line.lstrip())
    match = _PIP.match(line, indent)
    if match is None or re.search(r"[;&|<>\\]", line):
        return None
    where = file.span(start + match.start(), start + match.end())
    return Fix("use %pip", (Replace(where, "%pip"),), Applicability.SAFE)


RULE = Rule(
    id="NTB009",
    name="pip-of-other-kernel",
    severity=Severity.WARNING,
    sources=(
        "IPython documentation, Built-in magic commands: %pip runs within the current kernel",
        "nb_conda_kernels, README: names of kernels",
    ),
    check=_check,
    bad=(
        notebook_example(
            "%conda install -y ffmpeg=7.1\n# %%\n!«pip install einops==0.8.0»\n",
        ),
    ),
    good=(
        notebook_example("%conda install -y ffmpeg=7.1\n# %%\n%pip install einops==0.8.0\n"),
        notebook_example("!pip install einops==0.8.0\n"),
        notebook_example("!conda install -y ffmpeg=7.1\n# %%\n!pip install einops==0.8.0\n"),
        notebook_example(
            "%conda install -y ffmpeg=7.1\n# %%\n!pip install einops==0.8.0\n", colab="T4"
        ),
    ),
)
