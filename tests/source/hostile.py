"""Reads each file of a folder in a forked child under limits, and prints what became of it as JSON:
run as a program by test_hostile.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

from provision import source
from provision.errors import ExternalError, SourceError

CPU_SECONDS = 5
ADDRESS_SPACE = 2 << 30


class Disk:
    """Reads real files within a limit."""

    def read(self, path: Path, limit: int) -> bytes:
        raw = path.read_bytes()
        if len(raw) > limit:
            raise ExternalError(f"{path} is larger than {limit} bytes")
        return raw

    def exists(self, path: Path) -> bool:
        return path.exists()


def examine(path: Path) -> dict[str, object]:
    """Return the names of all findings about a file, and the longest message."""
    try:
        documents = source.read_spec_file(path, Disk())
    except SourceError as error:
        return {"names": ["SourceError"], "longest": len(error.what), "bad": ""}
    findings = []
    for document in documents:
        _, more = source.validate_source(document)
        findings += [*document.diagnostics, *more]
        for finding in findings:
            span = document.span(finding.where)
            assert 0 <= span.start.offset <= span.end.offset <= len(document.files[span.file])
        document.apply_fixes(finding.fix for finding in findings[:20] if finding.fix)
    said = [
        finding.message
        + finding.why
        + finding.help
        + "".join(other.text for other in finding.related)
        for finding in findings
    ]
    bad = "".join(sorted({c for text in said for c in text if not c.isprintable()}))
    return {
        "names": sorted({finding.name for finding in findings}),
        "longest": max(map(len, said), default=0),
        "bad": bad,
    }


def contain(path: Path) -> dict[str, object]:
    """Examine a file in a child and return what it said, its exit status, CPU seconds and peak
    memory.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        status = 1
        try:
            os.write(writing, json.dumps(examine(path)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read()
    begun = time.monotonic()
    _, status, usage = os.wait4(pid, 0)
    return {
        "said": json.loads(said or b"{}"),
        "status": status,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "rss_kib": usage.ru_maxrss,
        "wait_s": time.monotonic() - begun,
    }


if __name__ == "__main__":
    # Once for all children: the first document builds the models.
    examine(Path(__file__).parents[2] / "specs/quickstart.yaml")
    print(json.dumps({path.name: contain(path) for path in sorted(Path(sys.argv[1]).iterdir())}))
