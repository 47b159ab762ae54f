"""A report in few bytes, as it is written, and whole again, as everything reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .canonical_json import to_canonical_json, to_json_value
from .checks import CHECKS
from .model import Check, JsonObject, Threshold

_CHECK: JsonObject = {
    "required": False,
    "expected": None,
    "observed": None,
    "threshold": None,
    "cause": None,
    "fix": None,
    "causes": [],
    "seconds": 0.0,
}
_STAGE: JsonObject = {"signal": None, "timed_out": False, "tail": ""}
"""Values of absent fields; a check's id, title, status and message are always there."""
_KNOWN = {check.id: check for check in CHECKS}


def compact(document: Mapping[str, Any]) -> JsonObject:
    """Return a report without fields at their default, and without what the catalogue implies.

    Readings stand by class. A check that passes and observed exactly what was expected says the
    value once.
    """
    found: JsonObject = to_json_value(document)
    checks, stages, readings = (found.get(part) for part in ("checks", "stages", "readings"))
    if isinstance(checks, list):
        found["checks"] = [_brief_check(row) if isinstance(row, dict) else row for row in checks]
    if isinstance(stages, list):
        found["stages"] = [
            _without(row, _STAGE) if isinstance(row, dict) else row for row in stages
        ]
    if isinstance(readings, list) and (by_class := _by_class(readings)) is not None:
        found["readings"] = by_class
    return found


def expand(document: Any) -> Any:
    """Return a report with every field; a document that is not a report is returned as it is."""
    if not isinstance(document, dict):
        return document
    found = dict(document)
    checks, stages, readings = (found.get(part) for part in ("checks", "stages", "readings"))
    if isinstance(checks, list):
        found["checks"] = [_whole_check(row) if isinstance(row, dict) else row for row in checks]
    if isinstance(stages, list):
        found["stages"] = [{**_STAGE, **row} if isinstance(row, dict) else row for row in stages]
    if isinstance(readings, dict) and all(isinstance(rows, dict) for rows in readings.values()):
        rows = [
            {"key": key, "value": value, "class": kind}
            for kind, told in readings.items()
            for key, value in told.items()
        ]
        found["readings"] = sorted(rows, key=lambda row: row["key"])
    return found


def _brief_check(row: JsonObject) -> JsonObject:
    said = _without(row, _CHECK)
    passed, known = row.get("status") == "pass", _known(row)
    if passed and row.get("expected") is not None:
        said["observed"] = row.get("observed")
        if to_canonical_json(row.get("observed")) == to_canonical_json(row["expected"]):
            del said["observed"]
    if known is not None and row.get("group") == known.group:
        del said["group"]
    if (
        passed
        and known is not None
        and known.threshold is not None
        and row.get("threshold") == to_json_value(known.threshold.to_json())
    ):
        said["threshold"] = _without_source(known.threshold)
    return said


def _whole_check(row: JsonObject) -> JsonObject:
    told, known = {**_CHECK, "causes": [], **row}, _known(row)
    if row.get("status") == "pass" and "observed" not in row:
        told["observed"] = told["expected"]
    if known is not None:
        told.setdefault("group", known.group)
        if known.threshold is not None and told["threshold"] == _without_source(known.threshold):
            told["threshold"] = to_json_value(known.threshold.to_json())
    return told


def _known(row: JsonObject) -> Check | None:
    return _KNOWN.get(str(row.get("id")).partition(":")[0])


def _without_source(threshold: Threshold) -> JsonObject:
    return {
        key: value for key, value in to_json_value(threshold.to_json()).items() if key != "source"
    }


def _without(row: JsonObject, defaults: Mapping[str, Any]) -> JsonObject:
    return {
        key: value
        for key, value in row.items()
        if key not in defaults or to_canonical_json(value) != to_canonical_json(defaults[key])
    }


def _by_class(rows: list[Any]) -> dict[str, JsonObject] | None:
    """Return the readings by class and key; None if a row is not as the probe writes it."""
    found: dict[str, JsonObject] = {}
    keys = []
    for row in rows:
        if not (
            isinstance(row, dict)
            and row.keys() == {"key", "value", "class"}
            and isinstance(row["key"], str)
            and isinstance(row["class"], str)
        ):
            return None
        found.setdefault(row["class"], {})[row["key"]] = row["value"]
        keys.append(row["key"])
    return found if keys == sorted(set(keys)) else None
