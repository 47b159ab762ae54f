"""Sample findings, sources and reports for the tests of the views: made up, and marked so in their
names and digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.diagnostics import (
    Fix,
    Insert,
    Location,
    Position,
    Replace,
    Route,
    RouteLocation,
    RoutePart,
    Span,
)
from provision.verification.report import Report
from provision.views.report import html, junit, text

GOLDEN = Path(__file__).parent / "golden"


def agree(name: str, text: str) -> None:
    """Compare `text` exactly with tests/views/golden/NAME; UPDATE_GOLDEN=1 writes it instead."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_bytes(text.encode())
    assert text.encode() == path.read_bytes()


def render_page(document: Mapping[str, Any], title: str) -> str:
    """The page of a report's document."""
    return html.render_report(Report(document), title)


def render_text(
    document: Mapping[str, Any], color: bool, width: int, verbose: bool, path: str = ""
) -> str:
    """A report's document for a terminal."""
    return text.render_report(Report(document), color, width, verbose, path)


def render_suites(documents: Iterable[Mapping[str, Any]]) -> str:
    """Documents of reports as JUnit XML."""
    return junit.render_junit(map(Report, documents))


@dataclass(frozen=True)
class Draft:
    """A stand-in for a parsed source: its texts, and the stretch that each route means (file, text
    to look for).
    """

    files: Mapping[str, str]
    places: Mapping[tuple[Route, RoutePart], Span]
    document: int = 0

    def span(self, where: Location) -> Span:
        return where if isinstance(where, Span) else self.places[where.route, where.part]

    def apply_fixes(self, fixes: Sequence[Fix]) -> dict[str, str]:
        texts = dict(self.files)
        for fix in fixes:
            for edit in fix.edits:
                if isinstance(edit, Replace):
                    span = self.span(edit.where)
                    old = self.files[span.file]
                    texts[span.file] = old[: span.start.offset] + edit.text + old[span.end.offset :]
                else:
                    self._insert(edit, texts)
        return {name: text for name, text in texts.items() if text != self.files[name]}

    def _insert(self, edit: Insert, texts: dict[str, str]) -> None:
        span = (
            self.span(RouteLocation(edit.route))
            if edit.route
            else Span(next(iter(self.files)), Position(1, 1, 0), Position(1, 1, 0))
        )
        old = texts[span.file]
        line = f"\n{' ' * (span.start.column - 1)}{edit.key}: {edit.text}"
        texts[span.file] = old[: span.end.offset] + line + old[span.end.offset :]


def draft(files: Mapping[str, str], **places: tuple[str, str]) -> Draft:
    """A Draft in which keyword `gpu__type` names the route ("gpu", "type"), and `gpu__type__KEY`
    its key.
    """
    found: dict[tuple[Route, RoutePart], Span] = {}
    for name, (file, needle) in places.items():
        at = RoutePart.KEY if name.endswith("__KEY") else RoutePart.VALUE
        route = tuple(
            int(part) if part.isdigit() else part for part in name.removesuffix("__KEY").split("__")
        )
        found[route, at] = stretch(files, file, needle)
    return Draft(files, found)


def stretch(files: Mapping[str, str], file: str, needle: str) -> Span:
    """The first place of `needle` in a file."""
    start = files[file].index(needle)
    return Span(file, position(files[file], start), position(files[file], start + len(needle)))


def position(text: str, offset: int) -> Position:
    """Line and column of an offset, counted as editors do."""
    breaks = [match.end() for match in re.finditer("\r\n|\n|\r", text[:offset])]
    return Position(len(breaks) + 1, offset - (breaks[-1] if breaks else 0) + 1, offset)


def check(id: str, group: str, title: str, status: str = "pass", **more: Any) -> dict[str, Any]:  # noqa: A002
    """One check of a report."""
    plain = {
        "required": True,
        "expected": None,
        "observed": None,
        "threshold": None,
        "message": "as declared",
        "cause": None,
        "fix": None,
        "causes": [],
    }
    return {
        "id": id,
        "group": group,
        "title": title,
        "status": status,
        **plain,
        "seconds": 0.0,
        **more,
    }


def threshold(value: float, unit: str, source: str = "made up for this sample") -> dict[str, Any]:
    return {"value": value, "unit": unit, "source": source}


def stage(name: str, wall: float, **more: Any) -> dict[str, Any]:
    plain = {"exit": 0, "signal": None, "timed_out": False, "tail": ""}
    return {
        "name": name,
        "wall_s": wall,
        "cpu_s": round(wall * 0.9, 2),
        "maxrss_mb": 120.0,
        **plain,
        **more,
    }


def sample(result: str, checks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A whole report around `checks`."""
    counts = {
        status: sum(one["status"] == status for one in checks)
        for status in ("pass", "fail", "warn", "skip", "unknown")
    }
    first = next((one["id"] for one in checks if one["status"] == "fail"), None)
    stages = [
        ("host", 0.1),
        ("packages", 0.4),
        ("imports", 9.2),
        ("torch", 4.1),
        ("loaders", 6.3),
        ("training", 11.8),
        ("resume", 5.2),
    ]
    return {
        "schema": "provision.report/1",
        "tool": {
            "name": "provision",
            "version": "0.1.0",
            "probe_sha256": _digest("probe").removeprefix("sha256:"),
        },
        "subject": {
            "target": "here",
            "kind": "local",
            "created_utc": "2026-01-02T03:04:05Z",
            "nonce": "5a3f",
            "proof": "hf-trainer",
            "simulated": [],
        },
        "spec": {"name": "sample-trainer", "digest": _digest("spec")},
        "lock": {"digest": _digest("lock"), "environment_digest": _digest("environment")},
        "tier": "quick",
        "readings": [
            {"key": "python.minor", "value": "3.12", "class": "identity"},
            {"key": "host.ram_bytes", "value": 25276514304, "class": "context"},
        ],
        "checks": checks,
        "stages": [stage(name, wall) for name, wall in stages],
        "packages": {"locked": 48, "matching": 48, "differences": []},
        "verdict": {
            "result": result,
            "counts": counts,
            "first_cause": first,
            "sentence": f"sample: {result}",
        },
        "digests": {"identity": _digest("identity"), "report": _digest(json.dumps(checks))},
        **more,
    }


def verified() -> dict[str, Any]:
    """A report in which everything holds, with a warning and some measurements."""
    return sample("verified", [*_host(), *_packages(), *_torch(), *_training()])


def failed() -> dict[str, Any]:
    """A report with two failures, a required unknown and a warning."""
    wrong = check(
        "P02",
        "packages",
        "locked packages",
        "fail",
        expected="torch 2.13.0+cu130",
        observed="torch 2.13.0+cpu",
        message="1 of 48 packages is not the locked one",
        cause="another index was asked first when torch was installed, so its CPU build was taken",
        fix="provision apply sample-trainer.yaml --target here",
    )
    device = check(
        "T02",
        "torch",
        "device",
        "fail",
        expected="1 CUDA device",
        observed="0 CUDA devices",
        message="torch sees no GPU",
        cause="this torch is built without CUDA (P02)",
        fix="fix P02 first, then run provision verify sample-trainer.yaml again",
    )
    unseen = check(
        "T03",
        "torch",
        "GPU architecture",
        "unknown",
        message="not observed: it needs T02, which failed",
        fix="fix T02 first",
    )
    checks = [
        *_host(),
        wrong,
        *_packages()[1:],
        *_torch()[:1],
        device,
        unseen,
        *_torch()[1:],
        *_training(),
    ]
    packages = {
        "locked": 48,
        "matching": 47,
        "differences": [{"name": "torch", "expected": "2.13.0+cu130", "observed": "2.13.0+cpu"}],
    }
    return sample("failed", checks, packages=packages)


def crowded(failures: int = 40) -> dict[str, Any]:
    """A report with many failures in many groups, each with long texts."""
    long = "a long reason that goes on " * 12
    checks = [
        check(
            f"X{n:02}",
            f"group-{n % 12}",
            "wide check",
            "fail",
            expected=long,
            observed=long,
            message=long,
            cause=long,
            fix=long,
        )
        for n in range(failures)
    ]
    return sample("failed", checks)


def hostile() -> dict[str, Any]:
    """A report whose every string attacks a terminal or a page."""
    bad = (
        "\x1b[2J\x1b]0;pwned\x07\r\x9b31m\u202e\u200b</script><img src=x "
        "onerror=alert(1)><script>alert(1)</script>javascript:alert(1) {{7*7}} &lt;"
    )
    checks = [
        check(
            bad,
            bad,
            bad,
            "fail",
            expected={bad: [bad]},
            observed=[bad],
            message=bad,
            cause=bad,
            fix=bad,
            threshold=threshold(1, bad, bad),
        ),
        check(bad + "2", bad, bad, bad, message=bad),
        check(bad + "3", bad, bad, "pass", observed=3.5, threshold=threshold(2, bad, bad)),
        check(bad + "4", bad, bad, "warn", message=bad, fix=bad),
    ]
    evil = {"name": bad, "digest": bad}
    subject = {
        "target": bad,
        "kind": bad,
        "created_utc": bad,
        "nonce": bad,
        "proof": bad,
        "simulated": [bad],
    }
    difference = {"name": bad, "expected": bad, "observed": bad}
    return {
        **sample("failed", checks),
        "spec": evil,
        "subject": subject,
        "tier": bad,
        "lock": {"digest": bad, "environment_digest": bad},
        "tool": {"name": bad, "version": bad, "probe_sha256": bad},
        "stages": [{**stage(bad, 1.0), "signal": bad, "tail": bad + "\n" + bad}],
        "packages": {"locked": 2, "matching": 1, "differences": [difference]},
        "digests": {"identity": bad, "report": bad},
        "verdict": {"result": "failed", "counts": {}, "first_cause": bad, "sentence": bad},
    }


def _host() -> list[dict[str, Any]]:
    return [
        check(
            "H01",
            "host",
            "operating system",
            expected="linux-x86_64",
            observed="debian 12, linux-x86_64",
        ),
        check("H02", "host", "C library", expected=">= 2.28", observed="2.36"),
        check(
            "H05",
            "host",
            "memory",
            expected=17179869184,
            observed=25276514304,
            threshold=threshold(17179869184, "bytes"),
        ),
        check(
            "H07",
            "host",
            "shared memory",
            "warn",
            required=False,
            observed=67108864,
            threshold=threshold(1073741824, "bytes"),
            message="64 MiB of shared memory",
            fix="start the container with --shm-size=1g",
        ),
        check("W01", "paths", "declared paths", expected="data, output", observed="data, output"),
        check(
            "E02",
            "environment",
            "declared variables",
            expected="TOKENIZERS_PARALLELISM=false",
            observed="TOKENIZERS_PARALLELISM=false",
        ),
        check(
            "Y01", "secrets", "declared secrets", "skip", required=False, message="none is declared"
        ),
    ]


def _packages() -> list[dict[str, Any]]:
    return [
        check("P02", "packages", "locked packages", expected="48 packages", observed="48 packages"),
        check("P01", "packages", "python", expected="3.12", observed="3.12.1"),
        check("P04", "packages", "requirements of packages", message="all are met"),
        check("P06:torch", "packages", "import torch", seconds=3.1),
        check("P06:transformers", "packages", "import transformers", seconds=5.2),
    ]


def _torch() -> list[dict[str, Any]]:
    return [
        check("T01", "torch", "torch build", expected="2.13.0+cpu", observed="2.13.0+cpu"),
        check(
            "N01",
            "numerics",
            "matrix products are right",
            observed=3.1e-07,
            threshold=threshold(2e-06, "relative Frobenius error"),
            seconds=0.4,
        ),
        check("N06", "numerics", "same product twice", message="bit for bit the same"),
        check("L01", "loaders", "DataLoader, fork", seconds=2.4),
        check("L02", "loaders", "DataLoader, spawn", seconds=3.9),
    ]


def _training() -> list[dict[str, Any]]:
    return [
        check("R01", "training", "imports and arguments", seconds=4.2),
        check(
            "R02",
            "training",
            "learns",
            observed=0.13,
            threshold=threshold(0.5, "mean of the last 5 losses / mean of the first 5"),
            seconds=5.1,
        ),
        check(
            "R05",
            "training",
            "resumes exactly in a fresh process",
            expected="weights ab12",
            observed="weights ab12",
            seconds=5.2,
        ),
    ]


def _digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(f"sample {text}".encode()).hexdigest()
