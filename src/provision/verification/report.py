"""The probe's report: external text until its form, its nonce and its digest have been checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from provision.agent.probe.model import Verdict
from provision.agent.probe.report_json import canonical_digest, compact, expand
from provision.effects.system import Reader
from provision.errors import ExternalError

SCHEMA = "provision.report/1"
MAX_REPORT_BYTES = 8 * 2**20
EXIT_CODES = {"verified": 0, "simulated": 3, "failed": 1, "unverified": 3, "error": 2}
"""Outside a sandbox `simulated` is no proof; in a sandbox it is 0 (`exit_code_in_sandbox`)."""
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
class Subject:
    """The verification that a report answers; a missing or malformed value is empty."""

    target: str
    kind: str
    nonce: str
    created_utc: str
    proof: str
    simulated: tuple[str, ...]

    @classmethod
    def from_json(cls, block: Mapping[str, Any]) -> Self:
        """Return the subject that a report's `subject` holds."""
        simulated = block.get("simulated")
        return cls(
            _text(block, "target"),
            _text(block, "kind"),
            _text(block, "nonce"),
            _text(block, "created_utc"),
            _text(block, "proof"),
            tuple(map(str, simulated)) if isinstance(simulated, list) else (),
        )


@dataclass(frozen=True, slots=True)
class Report:
    """A verification's outcome, and the document that it was read from.

    A report is external text: rows and values of another form than the probe's are left out by
    the properties, not refused.
    """

    verdict: str
    sentence: str
    identity: str
    document: Mapping[str, Any]

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the report in a document whose parts have been checked."""
        verdict = document["verdict"]
        return cls(
            verdict["result"],
            str(verdict.get("sentence", "")),
            str(document["digests"].get("identity", "")),
            document,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the document as the probe wrote it."""
        return dict(self.document)

    @property
    def exit_code(self) -> int:
        """The exit code of the verdict."""
        return EXIT_CODES[self.verdict]

    @property
    def exit_code_in_sandbox(self) -> int:
        """The exit code in a sandbox, where nothing but `simulated` can be expected."""
        return 0 if self.verdict == "simulated" else self.exit_code

    @property
    def tier(self) -> str:
        """The tier of the verification."""
        return _text(self.document, "tier")

    @property
    def subject(self) -> Subject:
        """The verification that the report answers."""
        return Subject.from_json(self.document["subject"])

    @property
    def spec_name(self) -> str:
        """The name of the spec."""
        return _text(self.document["spec"], "name")

    @property
    def environment_digest(self) -> str:
        """The digest of the locked environment."""
        return _text(self.document["lock"], "environment_digest")

    @property
    def checks(self) -> list[Mapping[str, Any]]:
        """The rows of the checks."""
        return [row for row in self.document["checks"] if isinstance(row, Mapping)]

    @property
    def readings(self) -> list[Mapping[str, Any]]:
        """The rows of the readings that have a key."""
        rows = (row for row in self.document["readings"] if isinstance(row, Mapping))
        return [row for row in rows if isinstance(row.get("key"), str)]

    @property
    def values(self) -> dict[str, Any]:
        """The values of the readings, by key."""
        return {row["key"]: row.get("value") for row in self.readings}

    @property
    def differences(self) -> list[Mapping[str, Any]]:
        """The locked packages that are installed in another version."""
        packages = self.document.get("packages")
        rows = packages.get("differences") if isinstance(packages, Mapping) else None
        return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []

    @property
    def provenance(self) -> dict[str, int]:
        """Counts of packages by how they were installed: hash-checked, preinstalled, reinstalled.

        Empty if the device did not report it.
        """
        counts = self.values.get("packages.provenance")
        if not isinstance(counts, dict):
            return {}
        return {str(way): count for way, count in counts.items() if isinstance(count, int)}

    @property
    def displayed_document(self) -> dict[str, Any]:
        """The document for views: after tampering its verdict is `unverified`."""
        reason = find_tampering(self)
        if not reason:
            return self.to_json()
        verdict = {
            **self.document["verdict"],
            "result": Verdict.UNVERIFIED.value,
            "sentence": f"this report proves nothing: {reason}; it says {self.verdict}",
        }
        return {**self.document, "verdict": verdict}


def find_tampering(report: Report) -> str:
    """Return why a report is not as the probe wrote it, by its own digest; "" if it is."""
    content = {key: value for key, value in report.document.items() if key != "digests"}
    # Probes before the compact form took the digest of the whole.
    if report.document["digests"].get("report") in (
        canonical_digest(compact(content)),
        canonical_digest(content),
    ):
        return ""
    return (
        "its digest does not fit its content: something in it was changed after the probe wrote it"
    )


def read_report_file(path: Path, reader: Reader) -> Report:
    """Return the report in a file.

    Raises:
        ExternalError: the file cannot be read, or as `read_report`.
    """
    return read_report(read_report_bytes(path, reader), str(path))


def read_report_bytes(path: Path, reader: Reader) -> bytes:
    """Return the bytes of a report's file.

    Raises:
        ExternalError: the file cannot be read.
    """
    try:
        return reader.read(path, MAX_REPORT_BYTES)
    except ExternalError as error:
        hint = (
            "name a report.json: `provision apply` and `provision verify` write one and say where"
        )
        raise ExternalError(error.what, why=error.why, hint=error.hint or hint) from error


def read_report(content: bytes, name: str, *, nonce: str | None = None) -> Report:
    """Return the report in `content`.

    Args:
        content: The bytes of a report, in the compact or in the whole form.
        name: The report's name in messages.
        nonce: The nonce that the report must carry; None accepts any.

    Raises:
        ExternalError: the report is damaged, of another schema, or answers another run.
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
    if malformed := _malformed_parts(document):
        raise ExternalError(
            f"the report {name} is damaged",
            why=f"a part is missing or of the wrong kind: {', '.join(malformed)}",
            hint=again,
        )
    if nonce is not None and document["subject"].get("nonce") != nonce:
        raise ExternalError(
            f"the report {name} answers another run",
            why="its nonce is not the one that was sent",
            hint=again,
        )
    return Report.from_json(document)


def _malformed_parts(document: Mapping[str, Any]) -> list[str]:
    malformed = [key for key, kind in _PARTS.items() if not isinstance(document.get(key), kind)]
    if malformed:
        return malformed
    if not all(isinstance(check, Mapping) for check in document["checks"]):
        return ["checks"]
    result = document["verdict"].get("result")
    return [] if isinstance(result, str) and result in EXIT_CODES else ["verdict"]


def _text(block: Mapping[str, Any], key: str) -> str:
    value = block.get(key)
    return value if isinstance(value, str) else ""
