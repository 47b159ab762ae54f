"""The probe's report as it came back: foreign text until its form, its nonce and its digest have
been checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.agent.probe.canonical_json import canonical_digest
from provision.agent.probe.compact import compact, expand
from provision.agent.probe.model import Verdict
from provision.effects.system import Reader
from provision.errors import ExternalError

SCHEMA = "provision.report/1"
MAX_REPORT_BYTES = 8 * 2**20
EXIT_CODES = {"verified": 0, "simulated": 3, "failed": 1, "unverified": 3, "error": 2}
"""Outside a sandbox `simulated` is no proof; a sandbox takes it for 0 (`exit_code_in_sandbox`)."""
_PARTS = {
    "subject": dict,
    "verdict": dict,
    "checks": list,
    "readings": list,
    "stages": list,
    "digests": dict,
    "spec": dict,
    "lock": dict,
}


@dataclass(frozen=True, slots=True)
class Report:
    """A verification's outcome: the verdict word, its sentence, the identity digest, and the whole
    document.
    """

    verdict: str
    sentence: str
    identity: str
    document: Mapping[str, Any]

    @property
    def exit_code(self) -> int:
        """The exit code that the verdict stands for."""
        return EXIT_CODES[self.verdict]

    @property
    def exit_code_in_sandbox(self) -> int:
        """The exit code in a sandbox, where nothing but `simulated` can be expected."""
        return 0 if self.verdict == "simulated" else self.exit_code

    @property
    def readings(self) -> list[Mapping[str, Any]]:
        """The readings that are rows with a key; a report is foreign text, and may hold anything
        else beside them.
        """
        return [
            row
            for row in self.document["readings"]
            if isinstance(row, Mapping) and isinstance(row.get("key"), str)
        ]

    @property
    def differences(self) -> list[Mapping[str, Any]]:
        """The locked packages that were found in another version, as far as they are rows."""
        packages = self.document.get("packages")
        rows = packages.get("differences") if isinstance(packages, Mapping) else None
        return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []

    @property
    def provenance(self) -> dict[str, int]:
        """How many packages were there in which way ("hash-checked", "preinstalled", "reinstalled")
        when the device was asked; {} when it did not tell.
        """
        readings = {one["key"]: one.get("value") for one in self.readings}
        told = readings.get("packages.provenance")
        return (
            {str(way): count for way, count in told.items() if isinstance(count, int)}
            if isinstance(told, dict)
            else {}
        )

    @property
    def displayed_document(self) -> dict[str, Any]:
        """The document as views take it: where something in it was changed after the probe wrote
        it, its verdict is that nothing is proven.
        """
        wrong = find_tampering(self)
        if not wrong:
            return dict(self.document)
        sentence = f"this report proves nothing: {wrong}; it says {self.verdict}"
        return {
            **self.document,
            "verdict": {
                **self.document["verdict"],
                "result": Verdict.UNVERIFIED.value,
                "sentence": sentence,
            },
        }


def find_tampering(report: Report) -> str:
    """Return why a report is not as the probe wrote it, by the digest that it carries; "" when it
    is.
    """
    told, rest = (
        report.document["digests"].get("report"),
        {key: value for key, value in report.document.items() if key != "digests"},
    )
    # Before reports were written brief, the digest was that of the whole.
    return (
        ""
        if told in (canonical_digest(compact(rest)), canonical_digest(rest))
        else "its digest does not fit its content: something in it was changed after the probe "
        "wrote it"
    )


def read_report_file(path: Path, reader: Reader) -> Report:
    """Return the report in a file; raises WorldError as `read_report` does, and where the file
    cannot be read.
    """
    return read_report(read_report_bytes(path, reader), str(path))


def read_report_bytes(path: Path, reader: Reader) -> bytes:
    """Return the bytes of a report's file; raises WorldError with a way out."""
    try:
        return reader.read(path, MAX_REPORT_BYTES)
    except ExternalError as error:
        hint = (
            error.hint
            or "name a report.json: `provision apply` and `provision verify` write one and "
            "say where"
        )
        raise ExternalError(error.what, why=error.why, hint=hint) from error


def read_report(content: bytes, name: str, *, nonce: str | None = None) -> Report:
    """Return the report that `content` holds; `name` is how messages call it.

    Raises WorldError when it is damaged, of another schema, or does not answer the question that
    carried `nonce` (None: any question).
    """
    again = "run `provision verify` again"
    try:
        document = expand(json.loads(content.decode("utf-8")))
    except (ValueError, RecursionError) as error:
        raise ExternalError(
            f"the report {name} is damaged", why=f"it is not JSON: {error}", hint=again
        ) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise ExternalError(
            f"{name} is no report of provision",
            why=f"its schema is {schema!r}, expected {SCHEMA}",
            hint="name a report.json written by a verification",
        )
    wrong = [key for key, kind in _PARTS.items() if not isinstance(document.get(key), kind)]
    if not wrong and not all(isinstance(check, Mapping) for check in document["checks"]):
        wrong = ["checks"]
    if (
        wrong
        or not isinstance(document["verdict"].get("result"), str)
        or document["verdict"]["result"] not in EXIT_CODES
    ):
        raise ExternalError(
            f"the report {name} is damaged",
            why=f"a part is missing or of the wrong kind: {', '.join(wrong) or 'verdict'}",
            hint=again,
        )
    if nonce is not None and document["subject"].get("nonce") != nonce:
        raise ExternalError(
            f"the report {name} answers another run",
            why="its nonce is not the one that was sent",
            hint=again,
        )
    verdict = document["verdict"]
    return Report(
        verdict["result"],
        str(verdict.get("sentence", "")),
        str(document["digests"].get("identity", "")),
        document,
    )
