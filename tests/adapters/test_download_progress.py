"""The progress of downloads: what uv and py-rattler report, as events with counts and bytes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from provision.adapters.conda import prefixes
from provision.adapters.uv import toolchain
from provision.effects.system import DownloadProgress

PRINTED = r"""#!/bin/sh
cat >&2 <<'END'
Using Python 3.11.7 environment at: env
Resolved 5 packages in 275ms
Downloading numpy (16.0MiB)
Downloading pandas (1.5GiB)
 Downloaded numpy
 Downloaded pandas
Prepared 5 packages in 1.82s
error: something else
END
exit 1
"""


def counts(event: DownloadProgress) -> tuple[object, ...]:
    return (
        event.phase,
        event.packages_done,
        event.packages_total,
        event.bytes_done,
        event.bytes_total,
    )


def test_downloads_of_uv_are_events_and_its_errors_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "uv"
    program.write_text(PRINTED)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    events: list[str] = []
    run = toolchain._runner(events.append)
    result = run([str(program), "--quiet"], {"PATH": "/usr/bin:/bin"}, tmp_path)
    assert (result.code, result.stderr) == (1, "error: something else")
    numpy, both = 16 * 2**20, 16 * 2**20 + 3 * 2**29
    assert [counts(event) for event in events if isinstance(event, DownloadProgress)] == [
        ("downloading", 0, 1, 0, numpy),
        ("downloading", 0, 2, 0, both),
        ("downloading", 1, 2, numpy, both),
        ("downloading", 2, 2, both, both),
        ("installing", 0, 5, None, None),
    ]
    assert events[2] == "downloading 1 of 2 packages, 0.0 of 1.6 GB"
    assert events[0] == "downloading 0 of 1 package, 0.0 of 16.8 MB"


def test_other_programs_of_the_installer_run_as_they_are(tmp_path: Path) -> None:
    run = toolchain._runner(lambda _: pytest.fail("nothing is downloaded"))
    result = run(["/bin/sh", "-c", "echo out; echo err >&2"], {}, tmp_path)
    assert (result.stdout, result.stderr) == ("out\n", "err\n")


def test_downloads_of_conda_packages_are_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefixes, "_REPORT_INTERVAL_S", 0)
    events: list[str] = []
    reporter = prefixes._DownloadReporter(events.append)
    reporter.on_transaction_start(3)
    reporter.on_populate_cache_complete(0)
    assert events == [], "nothing is downloaded"
    first, second = reporter.on_download_start(1), reporter.on_download_start(2)
    reporter.on_download_progress(first, 1_000_000, 3_000_000)
    reporter.on_download_progress(second, 500_000, None)
    reporter.on_populate_cache_complete(0)
    assert events == [
        "downloading 1 of 3 packages, 1.0 MB",
        "downloading 1 of 3 packages, 1.5 MB",
        "downloading 2 of 3 packages, 1.5 MB",
    ]
