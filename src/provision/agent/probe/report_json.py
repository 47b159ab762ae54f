"""The report's JSON: one spelling, its digest, and a form in few bytes, in which it is written."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from .checks import CHECKS
from .model import Check, JsonObject, ObservedValues

_DIGITS = 6
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
"""Values of absent fields; a check's id, title, status and message are always present."""
_KNOWN = {check.id: check for check in CHECKS}


def to_canonical_json(value: Any) -> str:
    """Return the one spelling of a JSON value: 6 significant digits; NaN becomes text."""
    return json.dumps(
        to_json_value(value),
        sort_keys=True,
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    )


def to_json_value(value: Any) -> Any:
    """Return a value as `to_canonical_json` writes it."""
    if value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json_value(item) for item in value]
    return str(value)


def canonical_digest(value: Any) -> str:
    """`sha256:` and the hash of the canonical spelling."""
    text = to_canonical_json(value)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()}"


def compact(document: ObservedValues) -> JsonObject:
    """Return a report without fields at their default, and without what the catalogue implies.

    Readings are grouped by class. A check that passes and observed exactly what was expected has
    the value once.
    """
    report: JsonObject = to_json_value(document)
    _replace_rows(report, "checks", _compact_check)
    _replace_rows(report, "stages", lambda row: _without(row, _STAGE))
    if isinstance(report.get("readings"), list):
        report["readings"] = _by_class(report["readings"])
    return report


def expand(document: Any) -> Any:
    """Return a report with every field; a document that is not a report is returned as it is."""
    if not isinstance(document, dict):
        return document
    report = dict(document)
    _replace_rows(report, "checks", _expand_check)
    _replace_rows(report, "stages", lambda row: {**_STAGE, **row})
    readings = report.get("readings")
    if isinstance(readings, dict) and all(isinstance(rows, dict) for rows in readings.values()):
        rows = [
            {"key": key, "value": value, "class": kind}
            for kind, values in readings.items()
            for key, value in values.items()
        ]
        report["readings"] = sorted(rows, key=lambda row: row["key"])
    return report


def _replace_rows(
    report: JsonObject, part: str, replacement: Callable[[JsonObject], JsonObject]
) -> None:
    rows = report.get(part)
    if isinstance(rows, list):
        report[part] = [replacement(row) if isinstance(row, dict) else row for row in rows]


def _compact_check(row: JsonObject) -> JsonObject:
    brief, known = _without(row, _CHECK), _known_check(row)
    passed = row.get("status") == "pass"
    if passed and row.get("expected") is not None:
        brief["observed"] = row.get("observed")
        if to_canonical_json(row.get("observed")) == to_canonical_json(row["expected"]):
            del brief["observed"]
    if known is not None and row.get("group") == known.group:
        del brief["group"]
    if passed and known and known.threshold and isinstance(row.get("threshold"), dict):
        bound = row["threshold"]
        # A report of an earlier version may have another unit than the catalogue.
        is_implied = {**bound, "unit": known.threshold.unit} == _threshold(known)
        brief["threshold"] = _without(bound, {"source": bound["source"]}) if is_implied else bound
    return brief


def _expand_check(row: JsonObject) -> JsonObject:
    whole, known = {**_CHECK, "causes": [], **row}, _known_check(row)
    if row.get("status") == "pass" and "observed" not in row:
        whole["observed"] = whole["expected"]
    if known is not None:
        whole.setdefault("group", known.group)
        if known.threshold and whole["threshold"] and "source" not in whole["threshold"]:
            whole["threshold"] = {**_threshold(known), **whole["threshold"]}
    return whole


def _known_check(row: JsonObject) -> Check | None:
    return _KNOWN.get(str(row.get("id")).partition(":")[0])


def _threshold(check: Check) -> JsonObject:
    bound = asdict(check.threshold) if check.threshold else {}
    return {name: to_json_value(value) for name, value in bound.items()}


def _without(row: JsonObject, defaults: JsonObject) -> JsonObject:
    return {
        key: value
        for key, value in row.items()
        if key not in defaults or to_canonical_json(value) != to_canonical_json(defaults[key])
    }


def _by_class(rows: list[Any]) -> Any:
    """Return the readings by class and key; the rows if one is not as the probe writes it."""
    by_class: dict[str, JsonObject] = {}
    for row in rows:
        if not (isinstance(row, dict) and row.keys() == {"key", "value", "class"}):
            return rows
        if not (isinstance(row["key"], str) and isinstance(row["class"], str)):
            return rows
        by_class.setdefault(row["class"], {})[row["key"]] = row["value"]
    keys = [row["key"] for row in rows]
    return by_class if keys == sorted(set(keys)) else rows
