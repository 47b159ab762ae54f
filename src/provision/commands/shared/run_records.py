"""The record of a run: found, and read as strictly as a stranger's file."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote
from typing import Any

from provision.agent.probe.monitor.sampler import SCHEMA
from provision.agent.probe.report_json import canonical_digest
from provision.commands.shared.load import LoadedSpec
from provision.effects.system import Reader
from provision.errors import ProvisionError, Refused

_LIMIT = 4 * 2**20
_PARTS = {
    "subject": dict,
    "program": dict,
    "ended": dict,
    "limits": dict,
    "peaks": dict,
    "cards": list,
    "monitor": dict,
    "series": dict,
    "torch": list,
}


def run_records_folder(loaded: LoadedSpec, target: str) -> Path:
    """Return the folder of the records of a target's runs."""
    return loaded.folder / "reports" / f"{loaded.stem}.{target}" / "runs"


def latest_run_record(loaded: LoadedSpec, target: str, reader: Reader) -> Path:
    """Return the path of a target's last record; raise Refused if there is none."""
    folder = run_records_folder(loaded, target)
    names = [
        name
        for name in reader.list_folder(folder)
        if name.endswith(".json") and not name.startswith(".")
    ]
    if not names:
        hint = (
            f"make one with `provision run {quote(str(loaded.path))} --target {quote(target)} "
            "-- PROGRAM`"
        )
        raise Refused(
            f"there is no record of a run on {target}", why=f"looked in {folder}", hint=hint
        )
    return folder / max(names)


def read_run_record(path: Path, reader: Reader) -> dict[str, Any]:
    """Return a record; raises ProvisionError when it is none, is damaged, or was changed."""
    try:
        document = json.loads(reader.read(path, _LIMIT))
    except (ValueError, RecursionError):
        raise ProvisionError(
            f"{path} is not a record of a run",
            why="it is not valid JSON",
            hint="run the program again",
        ) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        hint = "`provision report` shows reports; records are in .provision/reports/*/runs/"
        raise ProvisionError(
            f"{path} is not a record of a run",
            why=f"its schema is {schema!r:.60}, not {SCHEMA!r}",
            hint=hint,
        )
    body = {key: value for key, value in document.items() if key != "digest"}
    wrong = next(
        (name for name, kind in _PARTS.items() if not isinstance(document.get(name), kind)), None
    )
    if wrong or document.get("digest") != canonical_digest(body):
        why = (
            f"{wrong} is missing or of another type"
            if wrong
            else "its digest is not that of its content"
        )
        raise ProvisionError(
            f"the record {path} is damaged or was changed", why=why, hint="run the program again"
        )
    return body
