"""What an error means: its text is looked up among the symptoms, and the spec and the report say which of them are true here."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from provision.commands.lint import edits_of
from provision.commands.loading import Judged, Loaded, judge, judge_resolved
from provision.commands.lock import read_lock
from provision.diagnostics import Diagnostic
from provision.effects import Tell, World, WriteFile
from provision.errors import UsageError, WorldError
from provision.facts import load as load_facts
from provision.facts.parts import symptoms
from provision.verification import read_report
from provision.verification.report import LIMIT as REPORT_LIMIT
from provision.verification.symptoms import Explanation, explain

LIMIT = 32 * 2**20
"""Bytes of a text, or of a notebook with its outputs."""
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class Answer(NamedTuple):
    """The explanations, the likeliest first; the spec and the report they were held against, and the files that were mended (name to diff)."""

    explanations: tuple[Explanation, ...]
    spec: str
    report: str
    changed: Mapping[str, str]


def why(text: str, spec: Path | None, report: Path | None, world: World, tell: Tell, *, fix: bool = False) -> Answer:
    """Return what an error's text means, held against a spec with its lock, and a report, where these are named.

    With `fix`, the safe fixes of the findings that explain it are applied to the spec. Raises SourceError and WorldError for what cannot be read.
    """
    judged = _judged(spec, world) if spec is not None else None
    stored = read_report(world.read(report, REPORT_LIMIT), str(report)) if report is not None else None
    findings = _findings(judged, spec, world) if judged is not None and spec is not None else ()
    found = explain(text, symptoms(), findings, stored)
    changed = _mended(judged, [finding for one in found for finding in one.findings], world, tell) if fix and judged is not None else {}
    return Answer(found, str(spec or ""), str(report or ""), changed)


def text_of(content: bytes, name: str) -> str:
    """Return the text that is looked through: of a notebook its saved outputs, without colours. Raises UsageError when there is none."""
    text = content.decode("utf-8", "replace")
    if name.endswith(".ipynb"):
        text = "\n".join(_outputs(text, name))
        if not text.strip():
            raise UsageError(f"{name} holds no output", why="an error is looked for in what its cells have printed", hint="save the notebook after the error")
    if not text.strip():
        raise UsageError(f"{name} is empty", hint="give the text of the error: provision why trace.txt, or pipe it into provision why -")
    return _ANSI.sub("", text)


def _outputs(text: str, name: str) -> Iterator[str]:
    try:
        cells = json.loads(text)["cells"]
        outputs = [output for cell in cells if isinstance(cell, dict) for output in cell.get("outputs", ()) if isinstance(output, dict)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WorldError(f"{name} is no notebook", why="it is not JSON with cells", hint="copy the error into a text file") from None
    for output in outputs:
        parts = output.get("traceback") or output.get("text") or ()
        yield parts if isinstance(parts, str) else "\n".join(str(part) for part in parts)


def _judged(spec: Path, world: World) -> Judged:
    documents = judge(spec, world, load_facts())
    if len(documents) != 1:
        raise UsageError(f"{spec} holds {len(documents)} specs", why="an error is of one", hint="put each into a file of its own")
    return documents[0]


def _findings(judged: Judged, path: Path, world: World) -> tuple[Diagnostic, ...]:
    """Return what the rules say of the spec, and of its locked versions where there is a lock."""
    if judged.spec is None:
        return judged.diagnostics
    loaded = Loaded(path, judged.source, judged.spec, load_facts(), judged.diagnostics)
    lock = read_lock(loaded, world)
    resolved = judge_resolved(loaded, lock) if lock is not None else ()
    return tuple({(one.id, one.message): one for one in (*judged.diagnostics, *resolved)}.values())


def _mended(judged: Judged, findings: list[Diagnostic], world: World, tell: Tell) -> dict[str, str]:
    changed = {}
    for name, (old, new) in edits_of((judged._replace(diagnostics=tuple(findings)),)).items():
        world.perform(WriteFile(Path(name), new, mode=None), tell)
        changed[name] = "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name))
    return changed
