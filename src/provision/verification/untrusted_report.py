"""A report that was brought by hand: foreign text until its size, its form and its own digest have
been checked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from provision.agent.probe.canonical_json import canonical_digest, to_canonical_json
from provision.agent.probe.compact import compact, expand
from provision.agent.probe.model import Status
from provision.errors import Refused
from provision.sanitize import escape_line
from provision.verification.report import EXIT_CODES, MAX_REPORT_BYTES, SCHEMA, Report

_DEEPEST = 50
"""Objects and lists within each other. A report nests six deep; what a spec declares under
training.arguments may be deeper. Our choice.
"""
_LONGEST = 2**16
"""Characters of one text. The longest that the probe writes is the end of a stage's output, 2 KiB.
Our choice.
"""
_LARGEST = 2.0**64
_STATUS_SCHEMA = "provision.agent.notebook-status/"
_DOWNLOAD_AGAIN = (
    "take report.json again from where it was made (a notebook offers it for download), and "
    "leave it as it is"
)

_Form = dict[str, type | tuple[type, ...]]
_NUMBER = (int, float)
_MAYBE_TEXT = (str, type(None))
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
    "verdict": {"result": str, "counts": dict, "first_cause": _MAYBE_TEXT, "sentence": str},
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
    """Return the report that `content` holds; raises Refused when it is too big, damaged, of
    another schema, or was changed after it was written.

    That it follows from its own checks, and answers a question of ours, is not said by that: see
    `following` and its callers.
    """
    raw = _decoded(content, name)
    _refuse_oversized_values(raw, name)
    _refuse_other_schema(raw, name)
    document = expand(raw)
    if wrong := next(_malformed_parts(document), ""):
        raise _damaged_report(name, wrong)
    told, found = (
        document["digests"]["report"],
        canonical_digest(
            compact({key: value for key, value in document.items() if key != "digests"})
        ),
    )
    # Earlier probes took the digest over every field.
    if told not in (
        found,
        canonical_digest({key: value for key, value in raw.items() if key != "digests"}),
    ):
        why = (
            f"its own digest is {escape_line(told[:80])}, and its content has {found}: "
            "something in it was changed after the probe wrote it"
        )
        raise Refused(f"{name} was edited or damaged", why=why, hint=_DOWNLOAD_AGAIN)
    verdict = document["verdict"]
    return Report(verdict["result"], verdict["sentence"], document["digests"]["identity"], document)


def serialize_report(report: Report) -> bytes:
    """Return the bytes in which the probe writes a report: the same for each copy, however it came
    here.
    """
    return (to_canonical_json(compact(report.document)) + "\n").encode("utf-8", "backslashreplace")


def _decoded(content: bytes, name: str) -> Any:
    if len(content) > MAX_REPORT_BYTES:
        raise Refused(
            f"{name} is too big for a report",
            why=f"it has more than {MAX_REPORT_BYTES} bytes",
            hint="name the report.json that the notebook offered",
        )
    if not content.strip():
        raise _damaged_report(name, "it is empty")
    if content.startswith(b"PK\x03\x04"):
        raise Refused(
            f"{name} is an archive",
            why="it begins as a zip file does",
            hint="unpack it, and name the report.json in it",
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
            raise _damaged_report(
                name, f"it is no text: byte {error.start + 1} is not UTF-8"
            ) from None
        cut = (
            " (it ends too early: the download was cut short)"
            if not content.rstrip().endswith(b"}")
            else ""
        )
        raise _damaged_report(
            name, f"it is not JSON: {escape_line(str(error)[:200])}{cut}"
        ) from None


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:60]!r} stands twice in one object")
        found[key] = value
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _refuse_oversized_values(document: Any, name: str) -> None:
    """Refuse what no probe writes and what would burden whoever reads it: without recursion, so
    that depth is no danger here.
    """
    pending: list[tuple[Any, int]] = [(document, 1)]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, dict | list):
            if depth > _DEEPEST:
                raise _damaged_report(name, f"it is nested more than {_DEEPEST} deep")
            pending += [
                (item, depth + 1)
                for item in (value if isinstance(value, list) else (*value, *value.values()))
            ]
        elif isinstance(value, str) and len(value) > _LONGEST:
            raise _damaged_report(
                name,
                f"it holds a text of {len(value)} characters, and a report has none longer "
                f"than {_LONGEST}",
            )
        elif isinstance(value, int | float) and not (
            math.isfinite(value) and abs(value) <= _LARGEST
        ):
            raise _damaged_report(name, "it holds a number that is out of all measure")


def _refuse_other_schema(document: Any, name: str) -> None:
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == SCHEMA:
        return
    said = escape_line(repr(schema)[:80])
    if isinstance(schema, str) and schema.startswith(_STATUS_SCHEMA):
        raise Refused(
            f"{name} is the cell's status, not its report",
            why=f"its schema is {said}",
            hint="download report.json, which lies beside it",
        )
    if isinstance(schema, str) and schema.startswith(SCHEMA.rpartition("/")[0] + "/"):
        hint = (
            "use the version of provision that rendered the notebook, or render it again with "
            "this one"
        )
        raise Refused(
            f"{name} was written by another version of provision",
            why=f"its schema is {said}, and this version reads {SCHEMA}",
            hint=hint,
        )
    hint = "name the report.json that the notebook offered"
    raise Refused(
        f"{name} is no report of provision",
        why=f"its schema is {said}, expected {SCHEMA}",
        hint=hint,
    )


def _malformed_parts(document: dict[str, Any]) -> Iterator[str]:
    yield from _malformed_fields(document, _TOP_LEVEL, "")
    for block, form in _BLOCKS.items():
        yield from _malformed_fields(document.get(block), form, block)
    for part, form in _ROWS.items():
        for number, row in enumerate(document[part]):
            yield from _malformed_fields(row, form, f"{part}[{number}]")
    strange = [
        row["status"]
        for row in document["checks"]
        if row["status"] not in [status.value for status in Status]
    ]
    yield from (f"a check has the status {status[:40]!r}" for status in strange)
    if document["verdict"]["result"] not in EXIT_CODES:
        yield f"its verdict is {document['verdict']['result'][:40]!r}"
    if not all(
        isinstance(text, str)
        for text in (
            *document["subject"]["simulated"],
            *(cause for row in document["checks"] for cause in row["causes"]),
        )
    ):
        yield "a list of texts in it holds something else"


def _malformed_fields(block: Any, form: _Form, where: str) -> Iterator[str]:
    if not isinstance(block, dict):
        yield f"{where} is missing or no object"
        return
    for key, kinds in form.items():
        value = block.get(key)
        if (
            key not in block
            or not isinstance(value, kinds)
            or (isinstance(value, bool) and kinds not in (bool, object))
        ):
            yield f"{where}{'.' if where else ''}{key} is missing or of the wrong kind"


def _damaged_report(name: str, why: str) -> Refused:
    return Refused(f"the report {name} is damaged", why=escape_line(why), hint=_DOWNLOAD_AGAIN)
