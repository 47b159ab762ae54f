"""One record of all machines of a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from provision.adapters import RealSystem
from provision.commands.shared.run_records import read_run_record
from provision.targets.vertex_job.run_record import merge_records


def record(ram: int | None, code: int, card: int | None = None) -> dict[str, Any]:
    cards = [{"name": "L4", "total_bytes": 24, "peak_bytes": card, "power_w": None}]
    return {
        "schema": "provision.run/1",
        "subject": {"spec": "s", "target": "cluster"},
        "program": {"name": "python"},
        "ended": {"code": code},
        "limits": {},
        "peaks": {"ram_bytes": ram, "shm_bytes": None},
        "cards": cards if card is not None else [],
        "monitor": {},
        "series": {"ram_bytes": [ram]},
        "torch": [],
        "digest": "another",
    }


def test_peaks_are_those_of_the_largest_machine_and_the_end_is_the_primary_ones(
    tmp_path: Path,
) -> None:
    machines = {
        "workerpool0-0": record(10, 3, 20),
        "workerpool1-0": record(30, 0, 5),
        "workerpool1-1": {"schema": "another"},
    }
    content = merge_records(machines)
    assert content is not None
    merged = json.loads(content)
    assert merged["peaks"] == {"ram_bytes": 30, "shm_bytes": None}
    assert (merged["ended"], merged["series"]) == ({"code": 3}, {"ram_bytes": [30]})
    assert [card["peak_bytes"] for card in merged["cards"]] == [20]
    assert list(merged["replicas"]) == ["workerpool0-0", "workerpool1-0"]
    path = tmp_path / "record.json"
    path.write_bytes(content)
    assert read_run_record(path, RealSystem())["replicas"] == merged["replicas"]


def test_a_job_without_records_has_none() -> None:
    assert merge_records({}) is None
    assert merge_records({"workerpool0-0": {"schema": "provision.run/1", "cards": 3}}) is None
