"""What the monitor makes of what it sees: series that stay short, peaks of machine and cards, and
the record.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.monitor.peaks import CardPeak, PeakUsage
from provision.agent.probe.monitor.series import Series
from provision.agent.probe.observing.resource_usage import (
    container_memory,
    machine_ram_bytes,
    process_tree_memory,
    shared_memory_usage,
)
from provision.agent.probe.report_json import canonical_digest
from tests.agent.probe.machines import HERE
from tests.support import require

SOURCE = Path(__file__).resolve().parents[3] / "src"
CARD = {
    "name": "L4",
    "total_bytes": 100,
    "used_bytes": 40,
    "busy_percent": 50,
    "temperature_c": 60,
    "power_mw": 55500,
    "reasons": 4,
}


def test_a_series_stays_short_and_keeps_its_peaks_and_order() -> None:
    series = Series(most=8)
    for second in range(1000):
        series.add(
            {
                "t": second,
                "ram_bytes": 999 if second == 500 else second % 7,
                **({"late": 1} if second > 900 else {}),
            }
        )
    columns = series.columns()
    assert 8 <= len(columns["t"]) <= 17
    assert columns["t"] == sorted(columns["t"])
    assert columns["t"][-1] == 999
    assert max(columns["ram_bytes"]) == 999
    assert columns["late"][0] is None
    assert columns["late"][-1] == 1


def test_peaks_of_a_card_and_of_its_throttling() -> None:
    card = CardPeak("L4", 100, 10)
    for used, reasons in ((40, 4), (90, 0x48), (20, 0), (20, None)):
        card.add({**CARD, "used_bytes": used, "reasons": reasons})
    told = card.to_json(1.0)
    assert (told["peak_bytes"], told["busy_percent"], told["power_w"], told["throttled_s"]) == (
        90,
        50,
        55,
        1.0,
    )
    assert told["throttled_by"] == ["hardware slowdown", "hardware thermal slowdown"]
    unknown = CardPeak(None, None, None)
    unknown.add(dict.fromkeys(CARD))
    assert unknown.to_json(1.0)["peak_bytes"] is None


def test_peaks_of_a_program_that_is_gone_stay() -> None:
    peaks = PeakUsage()
    for members in ([5, 7], [1], []):
        peaks.add(members, None, [])
    assert (peaks.ram_bytes, peaks.process_bytes, peaks.processes, peaks.shm_bytes) == (
        12,
        7,
        2,
        None,
    )


def stat(pid: int, parent: int, pages: int, name: str = "a (b) c") -> str:
    fields = ["S", str(parent), *["0"] * 19, str(pages), *["0"] * 20]
    return f"{pid} ({name}) {' '.join(fields)}\n"


def test_the_family_is_a_process_and_all_below_it(tmp_path: Path) -> None:
    for pid, parent, pages in ((10, 1, 1), (11, 10, 2), (12, 11, 4), (13, 1, 8)):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/stat").write_text(stat(pid, parent, pages))
    (tmp_path / "proc/14").mkdir()  # it ended meanwhile
    page = os.sysconf("SC_PAGE_SIZE")
    assert sorted(process_tree_memory(10, tmp_path)) == [page, 2 * page, 4 * page]
    assert process_tree_memory(99, tmp_path) == []


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {
                "memory.max": "4096",
                "memory.peak": "2048",
                "memory.events": "low 0\noom 3\noom_kill 2\n",
            },
            (4096, 2048, 2),
        ),
        ({"memory.max": "max", "memory.events": "oom_kill 0\n"}, (None, None, 0)),
        ({}, (None, None, 5)),
    ],
)
def test_a_container_tells_its_limit_peak_and_kills(
    tmp_path: Path, files: dict[str, str], told: tuple[Any, ...]
) -> None:
    group = tmp_path / "sys/fs/cgroup/job"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/job\n")
    (tmp_path / "proc/vmstat").write_text("nr 1\noom_kill 5\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal: 2 kB\n")
    for name, text in files.items():
        (group / name).write_text(text)
    assert tuple(container_memory(tmp_path).values()) == told
    assert machine_ram_bytes(tmp_path) == 2048
    assert shared_memory_usage(tmp_path) is None


def sampled(tmp_path: Path, *words: dict[str, Any], **variables: str) -> dict[str, Any]:
    """Run the sampler as it is shipped, without site-packages, and return the record it writes."""
    about = {
        "out": str(tmp_path / "r.json"),
        "notes": str(tmp_path),
        "secrets": ["TOKEN"],
        "tool": {},
        "subject": {},
        "program": {"name": "x s3cret-word"},
    }
    code = (
        "import sys; sys.path.append(sys.argv[1]); from provision.agent.probe.monitor.sampler "
        "import main; sys.exit(main())"
    )
    told = "".join(json.dumps(word) + "\n" for word in (about, *words))
    environment = {**os.environ, "TOKEN": "s3cret-word", **variables}
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(SOURCE)],
        input=told,
        text=True,
        timeout=600,
        check=True,
        env=environment,
    )
    found: dict[str, Any] = json.loads((tmp_path / "r.json").read_text())
    return found


def test_a_record_is_canonical_without_secrets_and_carries_its_digest(tmp_path: Path) -> None:
    found = sampled(
        tmp_path,
        {"pid": os.getpid()},
        {"code": 3, "signal": None, "largest_bytes": 2**50, "seconds": 1.5},
    )
    assert found.pop("digest") == canonical_digest(found)
    assert found["program"]["name"] == "x <redacted>"
    assert (found["ended"]["code"], found["ended"]["seconds"]) == (3, 1.5)
    assert found["peaks"]["process_bytes"] == 2**50, (
        "the kernel knows better than looks a second apart"
    )


def test_the_arrays_of_the_largest_process_are_recorded(tmp_path: Path) -> None:
    rows = [{"name": "images", "dtype": "float64", "bytes": 2**30}]
    (tmp_path / "arrays-1.json").write_text(json.dumps({"pid": 1, "arrays": rows}))
    small = [{**rows[0], "name": "s3cret-word", "bytes": 5}]
    (tmp_path / "arrays-2.json").write_text(json.dumps({"pid": 2, "arrays": small}))
    assert sampled(tmp_path, {"pid": os.getpid()}, {"code": 0, "signal": None})["arrays"] == rows
    (tmp_path / "arrays-1.json").unlink()
    (found,) = sampled(tmp_path, {"pid": os.getpid()}, {"code": 0, "signal": None})["arrays"]
    assert found["name"] == "<redacted>"


def test_the_last_records_are_kept(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"0{number:02}.json").write_text("{}")
    sampled(tmp_path, {"pid": os.getpid()})
    assert len(list(tmp_path.glob("*.json"))) == 20
    assert (tmp_path / "r.json").exists()


def test_cards_are_read_through_nvml(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    require("cc", compiler is not None, "there is no C compiler here to make a libnvidia-ml with")
    folder = tmp_path / "nvml"
    folder.mkdir()
    built = [
        str(compiler),
        "-shared",
        "-fPIC",
        "-Wl,-soname,libnvidia-ml.so.1",
        "-o",
        str(folder / "libnvidia-ml.so.1"),
        str(HERE / "fake_nvml.c"),
    ]
    subprocess.run(built, check=True, capture_output=True)
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        found = watched_for_a_moment(
            tmp_path,
            program.pid,
            LD_LIBRARY_PATH=str(folder),
            FAKE_NVML="reasons=8;busy=73;used_mib=1000;temperature=81",
        )
    finally:
        program.kill()
        program.wait()
    (card,) = found["cards"]
    assert (
        card["name"],
        card["busy_percent"],
        card["peak_bytes"],
        card["temperature_c"],
        card["power_w"],
    ) == ("NVIDIA L4", 73, 1000 * 2**20, 81, 55)
    assert card["throttled_by"] == ["hardware slowdown"]
    assert found["series"]["card0_throttled"][0] == 1
    assert found["monitor"]["nvml_error"] is None


def watched_for_a_moment(tmp_path: Path, pid: int, **variables: str) -> dict[str, Any]:
    code = (
        "import sys; sys.path.append(sys.argv[1]); from provision.agent.probe.monitor.sampler "
        "import main; sys.exit(main())"
    )
    about = {
        "out": str(tmp_path / "r.json"),
        "notes": str(tmp_path),
        "secrets": [],
        "tool": {},
        "subject": {},
        "program": {},
    }
    sampler = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, str(SOURCE)],
        stdin=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
    assert sampler.stdin is not None
    sampler.stdin.write(json.dumps(about) + "\n" + json.dumps({"pid": pid}) + "\n")
    sampler.stdin.flush()
    try:
        sampler.wait(1.6)
    except subprocess.TimeoutExpired:
        sampler.stdin.write('{"code": 0, "signal": null, "seconds": 1.6}\n')
    sampler.stdin.close()
    assert sampler.wait(300) == 0
    found: dict[str, Any] = json.loads((tmp_path / "r.json").read_text())
    return found
