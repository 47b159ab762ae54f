"""Findings as a Code Quality report of GitLab (docs.gitlab.com, Code Quality, report format)."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

from provision.diagnostics import Severity
from provision.views.diagnostics.findings_in_files import (
    CheckedFiles,
    describe_error,
    describe_finding,
)
from provision.views.diagnostics.fingerprints import fingerprint

_SEVERITIES = {
    Severity.ERROR: "major",
    Severity.WARNING: "minor",
    Severity.UNKNOWN: "info",
    Severity.INFO: "info",
}


def to_code_quality(files: CheckedFiles) -> list[dict[str, Any]]:
    """Return an item for each finding and each file that could not be read.

    Fingerprints are unique, and stay the same while lines move.
    """
    seen: Counter[tuple[str, str]] = Counter()
    items = []
    for finding, span, source in files.located():
        path, mark = files.path(span.file), fingerprint(finding, source)
        seen[path, mark] += 1
        lines = {"begin": span.start.line, "end": max(span.start.line, span.end.line)}
        items.append(
            {
                "description": describe_finding(finding),
                "check_name": finding.id,
                "fingerprint": _digest(path, mark, str(seen[path, mark])),
                "severity": _SEVERITIES[finding.severity],
                "location": {"path": path, "lines": lines},
            }
        )
    for name, error in files.unread:
        path = files.path(name)
        items.append(
            {
                "description": describe_error(error),
                "check_name": "unreadable-file",
                "fingerprint": _digest(path, error.what),
                "severity": "critical",
                "location": {"path": path, "lines": {"begin": 1, "end": 1}},
            }
        )
    return items


def _digest(*parts: str) -> str:
    text = "\0".join(parts)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]
