"""How far an installation is, told while the real uv is at it, in few writes."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import replace
from pathlib import Path

from provision.agent.workbench.environment import Environment
from provision.agent.workbench.install_progress import report_install_progress
from provision.agent.workbench.status import MAX_PROGRESS_WRITES, MAX_STATUS_WRITES, PHASES
from provision.verification.device_files import installer_zipapp
from tests.agent.workbench.conftest import Bench
from tests.rig import make_index, served
from tests.support import with_bytecode


def test_packages_are_counted_as_they_come(bench: Bench, tmp_path: Path) -> None:
    names = ("alpha", "beta", "ipykernel")
    released, told = threading.Event(), list[int]()

    def hear(count: int) -> None:
        told.append(count)
        if count == 2:
            released.set()

    def held(path: str) -> None:
        if path.endswith(".whl") and "ipykernel" in path:
            assert released.wait(300), "two of three are there, and nobody said so"

    make_index(tmp_path / "held", tuple(bench.cloud.wheels[name] for name in names))
    with served(tmp_path / "held", held) as address:
        document = bench.document(*names)
        document = replace(document, install={**document.install, "indexes": {"pypi": address}})
        (bench.machine.work / "installer.pyz").write_bytes(with_bytecode(installer_zipapp()))
        Environment(document, bench.machine).create(
            Environment(document, bench.machine).find_uv(), sys.executable, hear
        )
    assert 2 in told
    assert told == sorted(told)


def test_what_is_linked_counts_too(tmp_path: Path) -> None:
    site = tmp_path / "env/lib/python3.12/site-packages"
    (site / "a-1.dist-info").mkdir(parents=True)
    (site / "a").mkdir()
    heard, told = threading.Event(), list[int]()
    with report_install_progress(
        tmp_path / "env",
        tmp_path / "cache",
        lambda count: (told.append(count), heard.set())[1],
        every_s=0.01,
    ):
        assert heard.wait(300)
    assert set(told) == {1}


def test_an_installation_of_hours_is_told_in_few_writes(bench: Bench) -> None:
    teller = bench.teller(bench.document("alpha", "beta", "ipykernel"))
    seconds = 0.0
    teller.clock = lambda: seconds
    for phase in PHASES:
        teller.begin_phase(phase)
        seconds += 60
        if phase == "packages":
            for second in range(3600):
                seconds += 1
                teller.report_count(second // 1000)
    teller.end_run()
    written = [
        json.loads(value) for key, value in bench.cloud.store.history if key == "provision/status"
    ]
    assert [one["i"] for one in written if one["p"] == "packages"] == [0, 1, 2, 3]
    assert len(written) <= MAX_STATUS_WRITES + MAX_PROGRESS_WRITES


def test_counts_that_come_fast_are_spaced(bench: Bench) -> None:
    document = bench.document("alpha")
    teller = bench.teller(replace(document, install={**document.install, "packages": [{}] * 1000}))
    seconds = 0.0
    teller.clock = lambda: seconds
    teller.begin_phase("packages")
    times = []
    for second in range(3600):
        seconds = float(second)
        before = len(bench.cloud.store.history)
        teller.report_count(min(second, 1000))
        times += [second] * (len(bench.cloud.store.history) - before)
    assert times == [5, 15, 35, 75, 155, 315]
