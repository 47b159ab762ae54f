"""A report as it is written says less and means the same."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provision.agent.probe.checks import CHECKS
from provision.agent.probe.model import Status
from provision.agent.probe.report_json import (
    canonical_digest,
    compact,
    expand,
    to_canonical_json,
    to_json_value,
)
from provision.verification import read_report

RECORDED = sorted((Path(__file__).parents[2] / "reports" / "recorded").glob("*.json"))
BY_ID = {check.id: check for check in CHECKS}
KIB = 1024


def current(path: Path) -> dict[str, Any]:
    """A recorded report as the probe makes it now: no bound where a check does not apply, no causes
    where it holds, times to the hundredth.
    """
    document: dict[str, Any] = expand(json.loads(path.read_bytes()))
    for row in document["checks"]:
        calm = row["status"] in ("pass", "skip")
        row.update(
            seconds=round(row["seconds"], 2),
            causes=[] if calm else row["causes"],
            threshold=None if row["status"] == "skip" else row["threshold"],
        )
    for stage in document["stages"]:
        stage.update(
            wall_s=round(stage["wall_s"], 2),
            cpu_s=round(stage["cpu_s"], 2),
            maxrss_mb=round(stage["maxrss_mb"]),
        )
    return document


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.integers() | st.booleans(), max_size=3)
)
ROWS = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["N01", "P06:torch", "R04", "X99"]),
        "status": st.sampled_from([status.value for status in Status]),
        "group": st.sampled_from(["numerics", "packages", "else"]),
        "required": st.booleans(),
        "expected": VALUES,
        "observed": VALUES,
        "threshold": st.none()
        | st.sampled_from(
            [to_json_value(asdict(one.threshold)) for one in CHECKS if one.threshold]
        ),
        "message": st.text(max_size=5),
        "cause": st.none() | st.text(max_size=3),
        "fix": st.none() | st.text(max_size=3),
        "causes": st.lists(st.text(max_size=3), max_size=2),
        "seconds": st.floats(0, 9),
    }
)
READINGS = st.dictionaries(
    st.text(max_size=4),
    st.tuples(VALUES, st.sampled_from(["identity", "context", "noise"])),
    max_size=5,
)


@settings(deadline=None)
@given(
    st.lists(ROWS, max_size=4),
    READINGS,
    st.lists(
        st.fixed_dictionaries(
            {"name": st.text(max_size=3), "exit": st.none() | st.just(0), "tail": st.text()}
        )
    ),
)
def test_what_is_left_out_comes_back(
    checks: list[Any], told: dict[str, Any], stages: list[Any]
) -> None:
    readings = [
        {"key": key, "value": value, "class": kind} for key, (value, kind) in sorted(told.items())
    ]
    full = [{"signal": None, "timed_out": False, **stage} for stage in stages]
    document = {"checks": checks, "readings": readings, "stages": full}
    written = to_canonical_json(compact(document))
    assert to_canonical_json(expand(json.loads(written))) == to_canonical_json(document)
    assert (
        to_canonical_json(compact(expand(json.loads(written)))) == written
    )  # so the digest over it is the same wherever it is taken


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_report_says_the_same_in_fewer_bytes(path: Path) -> None:
    document = current(path)
    written = to_canonical_json(compact(document))
    assert to_canonical_json(expand(json.loads(written))) == to_canonical_json(document)
    assert read_report(written.encode(), "x").document["checks"] == json.loads(
        to_canonical_json(document["checks"])
    )
    raw = path.read_bytes()
    as_before = isinstance(json.loads(raw)["readings"], list)
    assert len(written) < 0.66 * len(raw) if as_before else f"{written}\n".encode() == raw


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        7,
        "x",
        {"checks": 7, "stages": {}, "readings": [3]},
        {"checks": [3], "stages": [None], "readings": {"identity": 3}},
    ],
)
def test_what_is_no_report_stays_as_it_is(broken: Any) -> None:
    assert expand(broken) == broken


@pytest.mark.parametrize(
    "row",
    [
        {"id": "N06", "status": "pass", "expected": True, "observed": 1},
        {"id": "N06", "status": "pass", "expected": 3, "observed": None},
        {"id": "N06", "status": "fail", "expected": 3, "observed": 3},
        {"id": "N06", "status": "unknown", "group": "elsewhere"},
    ],
)
def test_only_what_follows_is_left_out(row: dict[str, Any]) -> None:
    said = compact({"checks": [row]})["checks"][0]
    assert {key: expand({"checks": [said]})["checks"][0][key] for key in row} == row


def test_a_reading_that_stands_twice_is_not_lost() -> None:
    twice = [
        {"key": "os.id", "value": value, "class": "identity"} for value in ("debian", "ubuntu")
    ]
    assert compact({"readings": twice})["readings"] == twice


def test_a_quick_report_of_eighty_checks_has_at_most_24_kib() -> None:
    """The real lines of a run with a Trainer, repeated under other names until there are 80 of
    them, with 120 readings and 13 stages.
    """
    document = current(Path(RECORDED[0].parent, "quickstart.json"))
    checks, readings, stages = document["checks"], document["readings"], document["stages"]
    groups = {
        row["id"]: BY_ID[row["id"].partition(":")[0]].group
        for row in checks
        if row["id"].partition(":")[0] in BY_ID
    }
    for row in checks:
        row["group"] = groups.get(row["id"], row["group"])
    more = [row for row in checks if ":" not in row["id"] and row["id"] in BY_ID]
    document["checks"] = [
        *checks,
        *(
            {**row, "id": f"{row['id']}:{n}"}
            for n, row in enumerate((more * 2)[: 80 - len(checks)])
        ),
    ]
    document["readings"] = sorted(
        [
            *readings,
            *(
                {**row, "key": f"{row['key']}_{n}"}
                for n, row in enumerate(readings[: 120 - len(readings)])
            ),
        ],
        key=lambda one: one["key"],
    )
    document["stages"] = [*stages, *({**stage, "name": f"{stage['name']}2"} for stage in stages)][
        :13
    ]
    names = (f"some-package-{n}" for n in range(48))
    document["packages"]["installed"] = dict.fromkeys(names, "2026.10.1")
    assert (len(document["checks"]), len(document["readings"]), len(document["stages"])) == (
        80,
        120,
        13,
    )
    assert len(to_canonical_json(compact(document))) <= 24 * KIB
    assert len(to_canonical_json(document)) > 24 * KIB, "so it is the brief form that does it"


def test_the_digest_of_a_report_is_that_of_its_brief_form() -> None:
    document = compact(current(RECORDED[0]))
    assert canonical_digest(document) == canonical_digest(compact(expand(document)))
