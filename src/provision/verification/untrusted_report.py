"""A report from outside: external text until its size, its form and its digest are checked."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from provision.agent.probe.model import Status
from provision.agent.probe.report_json import compact, expand, to_canonical_json
from provision.errors import Refused
from provision.sanitize import escape_line
from provision.verification.report import (
    EXIT_CODES,
    MAX_REPORT_BYTES,
    SCHEMA,
    Report,
    find_tampering,
)

_MAX_DEPTH = 50
"""Objects and lists within each other.

A report nests six deep; what a spec declares under training.arguments may be deeper. Our choice.
"""
_MAX_TEXT_LENGTH = 2**16
"""Characters. The longest text of a probe is the end of a stage's output, 2 KiB. Our choice."""
_MAX_NUMBER = 2.0**64
_STATUS_SCHEMA = "provision.agent.notebook-status"
_DOWNLOAD_AGAIN = (
    "download report.json again (the notebook's last cell offers it), and do not edit it"
)

_Form = dict[str, type | tuple[type, ...]]
_NUMBER = (int, float)
_OPTIONAL_TEXT = (str, type(None))
_TOP_LEVEL: _Form = {"tier": str, "readings": list, "checks": list, "stages": list}
_BLOCKS: dict[str, _Form] = {
    "tool": {"name": str, "probe_sha256": str},
    "subject": {
        "target": str,
        "kind": str,
        "created_utc": str,
        "nonce": str,
        "proof": str,
        "simulated": list,
    },
    "spec": {"name": str, "digest": str},
    "lock": {"digest": str, "environment_digest": str},
    "packages": {"locked": int, "differences": list},
    "verdict": {"result": str, "counts": dict, "first_cause": _OPTIONAL_TEXT, "sentence": str},
    "digests": {"identity": str, "report": str},
}
_ROWS: dict[str, _Form] = {
    "readings": {"key": str, "value": object, "class": str},
    "checks": {
        "id": str,
        "group": str,
        "title": str,
        "status": str,
        "required": bool,
        "message": str,
        "causes": list,
        "seconds": _NUMBER,
    },
    "stages": {
        "name": str,
        "wall_s": _NUMBER,
        "cpu_s": _NUMBER,
        "maxrss_mb": _NUMBER,
        "timed_out": bool,
        "tail": str,
    },
}


def read_untrusted_report(content: bytes, name: str) -> Report:
    """Return the report in `content`; `find_contradictions` judges it again.

    Raises:
        Refused: it is too big, damaged, of another schema, or was changed after it was written.
    """
    raw = _decode(content, name)
    _refuse_oversized_values(raw, name)
    _refuse_other_schema(raw, name)
    document = expand(raw)
    if problem := next(_malformed_parts(document), ""):
        raise _damaged_report(name, problem)
    report = Report(document)
    if problem := find_tampering(report):
        raise Refused(f"{name} was edited or damaged", why=problem, hint=_DOWNLOAD_AGAIN)
    return report


def serialize_report(report: Report) -> bytes:
    """Return a report's bytes as the probe writes them, the same for each copy."""
    return (to_canonical_json(compact(report.document)) + "\n").encode("utf-8", "backslashreplace")


def _decode(content: bytes, name: str) -> Any:
    if len(content) > MAX_REPORT_BYTES:
        raise Refused(
            f"{name} is too large to be a report",
            why=f"it is larger than {MAX_REPORT_BYTES // 2**20} MiB",
            hint="use the report.json that you downloaded from the notebook",
        )
    if not content.strip():
        raise _damaged_report(name, "it is empty")
    if content.startswith(b"PK\x03\x04"):
        raise Refused(
            f"{name} is an archive",
            why="it starts with the signature of a zip file",
            hint="unpack it, and use the report.json in it",
        )
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_refuse_duplicate_keys,
            parse_constant=_refuse_constant,
        )
    except RecursionError:
        raise _damaged_report(name, "it is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, UnicodeDecodeError) and error.reason != "unexpected end of data":
            problem = f"it is not UTF-8 text (byte {error.start + 1})"
        else:
            problem = f"it is not valid JSON: {escape_line(str(error)[:200])}"
            ends_early = isinstance(error, json.JSONDecodeError) and error.pos >= len(
                error.doc.rstrip()
            )
            if ends_early or not content.rstrip().endswith(b"}"):
                problem += " (it is incomplete: the download was interrupted)"
        raise _damaged_report(name, problem) from None


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    block: dict[str, Any] = {}
    for key, value in pairs:
        if key in block:
            raise ValueError(f"duplicate key {key[:60]!r}")
        block[key] = value
    return block


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _refuse_oversized_values(document: Any, name: str) -> None:
    """Refuse values that no probe writes and that burden their reader.

    Without recursion, so that a deep document is harmless here.
    """
    pending: list[tuple[Any, int]] = [(document, 1)]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, dict | list):
            if depth > _MAX_DEPTH:
                raise _damaged_report(name, f"it is nested more than {_MAX_DEPTH} levels deep")
            items = value if isinstance(value, list) else (*value, *value.values())
            pending += [(item, depth + 1) for item in items]
        elif isinstance(value, str) and len(value) > _MAX_TEXT_LENGTH:
            raise _damaged_report(
                name,
                f"a string in it has {len(value):,} characters (limit: {_MAX_TEXT_LENGTH:,})",
            )
        elif isinstance(value, int | float) and not (
            math.isfinite(value) and abs(value) <= _MAX_NUMBER
        ):
            raise _damaged_report(name, "it contains a number that is too large")


def _refuse_other_schema(document: Any, name: str) -> None:
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == SCHEMA:
        return
    shown, family = escape_line(str(schema or "missing")[:80]), str(schema).partition("/")[0]
    if family == _STATUS_SCHEMA:
        raise Refused(
            f"{name} is the status file of the notebook cell, not a report",
            why=f"its schema is {shown}",
            hint="download report.json from the same folder",
        )
    if family == SCHEMA.partition("/")[0]:
        raise Refused(
            f"{name} was written by a different version of provision",
            why=f"its schema is {shown}, but this version reads {SCHEMA}",
            hint="use the version of provision that rendered the notebook, or render the notebook "
            "again with this version",
        )
    raise Refused(
        f"{name} is not a provision report",
        why=f"its schema is {shown}; expected {SCHEMA}",
        hint="use the report.json that you downloaded from the notebook",
    )


def _malformed_parts(document: dict[str, Any]) -> Iterator[str]:
    yield from _malformed_fields(document, _TOP_LEVEL, "")
    for block, form in _BLOCKS.items():
        yield from _malformed_fields(document.get(block), form, block)
    for part, form in _ROWS.items():
        for number, row in enumerate(document[part]):
            yield from _malformed_fields(row, form, f"{part}[{number}]")
    statuses = {status.value for status in Status}
    texts = [*document["subject"]["simulated"]]
    for row in document["checks"]:
        if row["status"] not in statuses:
            yield f"a check has the status {row['status'][:40]!r}"
        texts += row["causes"]
    if document["verdict"]["result"] not in EXIT_CODES:
        yield f"its verdict is {document['verdict']['result'][:40]!r}"
    if not all(isinstance(text, str) for text in texts):
        yield "a list of strings in it contains another type"


def _malformed_fields(block: Any, form: _Form, part: str) -> Iterator[str]:
    if not isinstance(block, dict):
        yield f"{part} is missing or not an object"
        return
    for key, kinds in form.items():
        value = block.get(key)
        stray_bool = isinstance(value, bool) and kinds not in (bool, object)
        if key not in block or stray_bool or not isinstance(value, kinds):
            yield f"{part}{'.' if part else ''}{key} is missing or of the wrong type"


def _damaged_report(name: str, why: str) -> Refused:
    return Refused(f"the report {name} is damaged", why=escape_line(why), hint=_DOWNLOAD_AGAIN)
