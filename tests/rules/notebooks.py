"""Notebooks from the text of examples, and what the rules find in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.diagnostics import Diagnostic
from provision.facts import Facts
from provision.imports.notebook import read_notebook
from provision.imports.notebook_source import NotebookSource
from provision.rules import ResolvedSet, run_rules_on_notebook
from provision.rules.notebook.context import NotebookContext
from provision.rules.rule import Example
from tests.rules.conftest import judge_text


def to_cells(text: str) -> list[dict[str, Any]]:
    """Cells of a text in which lines with "# %%" separate them."""
    return [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": source.strip("\n").splitlines(True),
        }
        for source in text.split("# %%\n")
    ]


def to_notebook(text: str, colab: str = "", **metadata: Any) -> str:
    """The JSON of a notebook that Jupyter, or Colab with a card, saved."""
    if colab:
        metadata["colab"] = {"provenance": []}
    if colab not in ("", "none"):
        metadata |= {"accelerator": "GPU", "colab": {"provenance": [], "gpuType": colab}}
    document = {"cells": to_cells(text), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1) + "\n"


@dataclass(frozen=True)
class JudgedNotebook:
    """A notebook and what the rules find in it."""

    source: NotebookSource
    findings: tuple[Diagnostic, ...]

    @property
    def ids(self) -> list[str]:
        return [finding.id for finding in self.findings]

    def one(self, identity: str) -> Diagnostic:
        (found,) = [finding for finding in self.findings if finding.id == identity]
        return found

    def at(self, finding: Diagnostic) -> str:
        """The characters that a finding points at."""
        span = self.source.span(finding.where)
        return self.source.files[span.file][span.start.offset : span.end.offset]


def judge_notebook(
    raw: str,
    facts: Facts,
    folder: Path,
    spec: str = "",
    locked: ResolvedSet | None = None,
) -> JudgedNotebook:
    """What the rules find in the JSON of a notebook, with a spec if there is one."""
    notebook = read_notebook(Path("train.ipynb"), raw)
    context = NotebookContext(notebook, facts)
    if spec:
        loaded = judge_text(spec, folder, facts).case.spec
        versions: Mapping[str, str] = locked.versions if locked else {}
        by_target = dict.fromkeys(loaded.targets, versions) if locked else {}
        context = NotebookContext(notebook, facts, loaded, by_target)
    return JudgedNotebook(NotebookSource(notebook), run_rules_on_notebook(context))


def judge_example(example: Example, facts: Facts, folder: Path) -> JudgedNotebook:
    raw = to_notebook(example.notebook, example.colab)
    return judge_notebook(raw, facts, folder, example.spec, example.resolved)
