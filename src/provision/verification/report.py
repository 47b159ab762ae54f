"""The probe's report: external text until its form, its nonce and its digest have been checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

from provision.agent.probe.model import Status, Threshold, Verdict
from provision.agent.probe.report_json import canonical_digest, compact, expand
from provision.effects.system import Reader
from provision.errors import ExternalError

SCHEMA = "provision.report/1"
MAX_REPORT_BYTES = 8 * 2**20
EXIT_CODES = {"verified": 0, "simulated": 3, "failed": 1, "unverified": 3, "error": 2}
"""Outside a sandbox `simulated` proves nothing; in a sandbox it is 0 (`exit_code_in_sandbox`)."""
_MAX_NUMBER = 1e300
_STATUSES = {status.value: status for status in Status}
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
    training_proof: str = ""
    """The earlier report that the training proof is from; "" if this run trained."""


@dataclass(frozen=True, slots=True)
class ReportedCheck:
    """One check of a report; a missing or malformed value is empty, a status then unknown."""

    id: str
    group: str
    title: str
    status: Status
    required: bool
    message: str
    cause: str
    fix: str
    causes: tuple[str, ...]
    expected: Any
    observed: Any
    threshold: Threshold | None
    seconds: float

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the check in a row of a report."""
        text = partial(_text, row)
        return cls(
            id=text("id"),
            group=text("group"),
            title=text("title"),
            status=_STATUSES.get(text("status"), Status.UNKNOWN),
            required=row.get("required") is True,
            message=text("message"),
            cause=text("cause"),
            fix=text("fix"),
            causes=_texts(row, "causes"),
            expected=row.get("expected"),
            observed=row.get("observed"),
            threshold=_threshold(_block(row, "threshold")),
            seconds=to_number(row.get("seconds")) or 0.0,
        )

    @property
    def base_id(self) -> str:
        """The id without the package of a repeated check."""
        return self.id.partition(":")[0]


@dataclass(frozen=True)
class Report:
    """A verification's outcome, read from its document.

    A report is external text: rows and values of another form than the probe's are left out, not
    refused.
    """

    document: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        """The verdict; `error` if the report has another word for it."""
        result = self.text("verdict", "result")
        return result if result in EXIT_CODES else Verdict.ERROR.value

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        return self.text("verdict", "sentence")

    @property
    def identity(self) -> str:
        """The digest of the identity readings."""
        return self.text("digests", "identity")

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
        subject = self.part("subject")
        text = partial(_text, subject)
        return Subject(
            text("target"),
            text("kind"),
            text("nonce"),
            text("created_utc"),
            text("proof"),
            _texts(subject, "simulated"),
            text("training_proof"),
        )

    @property
    def counts(self) -> Mapping[str, Any]:
        """The numbers of checks by status."""
        return _block(self.part("verdict"), "counts")

    @property
    def spec_name(self) -> str:
        """The name of the spec."""
        return self.text("spec", "name")

    @property
    def environment_digest(self) -> str:
        """The digest of the locked environment."""
        return self.text("lock", "environment_digest")

    @cached_property
    def checks(self) -> tuple[ReportedCheck, ...]:
        """The checks."""
        return tuple(map(ReportedCheck.from_json, rows_of(self.document, "checks")))

    @property
    def readings(self) -> list[Mapping[str, Any]]:
        """The rows of the readings that have a key."""
        return [row for row in rows_of(self.document, "readings") if _text(row, "key")]

    @cached_property
    def values(self) -> dict[str, Any]:
        """The values of the readings, by key."""
        return {row["key"]: row.get("value") for row in self.readings}

    @property
    def differences(self) -> list[Mapping[str, Any]]:
        """The locked packages that are installed in another version."""
        return rows_of(self.part("packages"), "differences")

    @property
    def installed(self) -> dict[str, str] | None:
        """The versions of the packages that `packages.digest` covers; None if it lists none."""
        versions = self.part("packages").get("installed")
        if not isinstance(versions, Mapping):
            return None
        return {name: version for name, version in versions.items() if isinstance(version, str)}

    @property
    def lists_all_packages(self) -> bool:
        """True if `installed` has every package, not only the locked ones of an image."""
        installed = self.installed
        return installed is not None and len(installed) == self.values.get("packages.count")

    @property
    def provenance(self) -> dict[str, int]:
        """Counts of packages by how they were installed: hash-checked, preinstalled, reinstalled.

        Empty if the device did not report it.
        """
        counts = _block(self.values, "packages.provenance")
        return {str(way): count for way, count in counts.items() if isinstance(count, int)}

    @property
    def displayed(self) -> Report:
        """The report for views: after tampering its verdict is `unverified`."""
        reason = find_tampering(self)
        if not reason:
            return self
        verdict = {
            **self.document["verdict"],
            "result": Verdict.UNVERIFIED.value,
            "sentence": f"not a proof: {reason} (reported verdict: {self.verdict})",
        }
        return Report({**self.document, "verdict": verdict})

    def part(self, name: str) -> Mapping[str, Any]:
        """Return a part of the report, empty if it is missing or malformed."""
        return _block(self.document, name)

    def text(self, part: str, key: str) -> str:
        """Return a text in a part of the report, "" if there is none."""
        return _text(self.part(part), key)

    def count(self, part: str, key: str) -> int:
        """Return a number in a part of the report, 0 if there is none."""
        return int(to_number(self.part(part).get(key)) or 0)


def to_number(value: object) -> float | None:
    """Return a number of foreign JSON; None for anything else and for numbers out of measure."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _MAX_NUMBER else None


def rows_of(block: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the objects in a list of foreign JSON."""
    rows = block.get(key)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


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
        "the report's digest does not match its content, so the report was modified after the "
        "probe wrote it"
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
            "use the path of a report.json; `provision apply` and `provision verify` write one "
            "and print its path"
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
            f"the report {name} is damaged", why=f"it is not valid JSON: {error}", hint=again
        ) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise ExternalError(
            f"{name} is not a provision report",
            why=f"its schema is {schema or 'missing'}; expected {SCHEMA}",
            hint="use a report.json written by a verification run",
        )
    if malformed := _malformed_parts(document):
        raise ExternalError(
            f"the report {name} is damaged",
            why=f"fields that are missing or have the wrong type: {', '.join(malformed)}",
            hint=again,
        )
    if nonce is not None and document["subject"].get("nonce") != nonce:
        raise ExternalError(
            f"the report {name} is from a different run",
            why="its nonce does not match this run's nonce",
            hint=again,
        )
    return Report(document)


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


def _texts(block: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = block.get(key)
    return tuple(map(str, values)) if isinstance(values, list) else ()


def _block(block: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = block.get(key)
    return value if isinstance(value, Mapping) else {}


def _threshold(row: Mapping[str, Any]) -> Threshold | None:
    value = to_number(row.get("value"))
    return None if value is None else Threshold(value, _text(row, "unit"), _text(row, "source"))
