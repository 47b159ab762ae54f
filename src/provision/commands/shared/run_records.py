"""Finds and validates the records that `provision run` writes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from provision.agent.probe.monitor import SCHEMA
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
    return loaded.report_folder(target) / "runs"


def latest_run_record(loaded: LoadedSpec, target: str, reader: Reader) -> Path:
    """Return the path of a target's last record; raise Refused if there is none."""
    records = list_run_records(loaded, (target,), reader)
    if not records:
        raise Refused(
            f"target `{target}` has no recorded run",
            why=f"there are no records in {run_records_folder(loaded, target)}",
            hint=f"record one with `{loaded.command('run', target)} -- PROGRAM`",
        )
    return records[0]


def list_run_records(
    loaded: LoadedSpec, targets: Iterable[str], reader: Reader
) -> tuple[Path, ...]:
    """Return the paths of the records of some targets, the newest first."""
    folders = (run_records_folder(loaded, target) for target in targets)
    paths = [
        folder / name
        for folder in folders
        for name in reader.list_folder(folder)
        if name.endswith(".json") and not name.startswith(".")
    ]
    # names begin with the time
    return tuple(sorted(paths, key=lambda path: path.name, reverse=True))


def read_run_record(path: Path, reader: Reader) -> dict[str, Any]:
    """Return a record; raise ProvisionError if it is another document, damaged or changed."""
    again = "run the program again"
    try:
        document = json.loads(reader.read(path, _LIMIT))
    except (ValueError, RecursionError):
        raise ProvisionError(
            f"{path} is not a run record", why="it is not valid JSON", hint=again
        ) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if str(schema).startswith(f"{SCHEMA.partition('/')[0]}/") and schema != SCHEMA:
        raise ProvisionError(
            f"{path} was written by a different version of provision",
            why=f"its schema is {str(schema)[:60]}; this version reads {SCHEMA}",
            hint=f"update `provision`, or {again} with this version of it",
        )
    if schema != SCHEMA:
        hint = "view reports with `provision report`; records are in .provision/reports/*/runs/"
        raise ProvisionError(
            f"{path} is not a run record",
            why=f"its schema is {str(schema or 'missing')[:60]}, not {SCHEMA}",
            hint=hint,
        )
    body = {key: value for key, value in document.items() if key != "digest"}
    wrong = [name for name, kind in _PARTS.items() if not isinstance(document.get(name), kind)]
    why = f"{wrong[0]} is missing or has the wrong type" if wrong else ""
    if not wrong and document.get("digest") != canonical_digest(body):
        why = "its digest does not match its content"
    if why:
        raise ProvisionError(f"the record {path} is damaged or was changed", why=why, hint=again)
    return body
