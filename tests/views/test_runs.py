"""A run's record as lines and as a page."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any
from xml.etree import ElementTree

import pytest

from provision.views import run_record_html, run_record_text

GIB = 2**30
RECORD: dict[str, Any] = {
    "schema": "provision.run/1",
    "tool": {"name": "provision", "version": "0"},
    "subject": {"spec": "quickstart", "target": "here", "created_utc": "2026-11-21T21:56:01Z"},
    "program": {"name": "python", "script": "train.py", "arguments": 2},
    "ended": {"code": 0, "signal": None, "memory_kills": 0, "seconds": 4.0},
    "limits": {"ram_bytes": 16 * GIB, "container_bytes": 4 * GIB, "shm_bytes": GIB},
    "peaks": {
        "ram_bytes": 3 * GIB,
        "process_bytes": 2 * GIB,
        "processes": 3,
        "shm_bytes": 2**20,
        "container_bytes": None,
    },
    "cards": [
        {
            "name": "NVIDIA L4",
            "total_bytes": 24 * GIB,
            "before_bytes": GIB,
            "peak_bytes": 20 * GIB,
            "busy_percent": 87,
            "temperature_c": 81,
            "power_w": 72,
            "throttled_s": 1.0,
            "throttled_by": ["hardware slowdown"],
        }
    ],
    "monitor": {"interval_s": 1.0, "looks": 4, "cpu_s": 0.1, "nvml_error": None},
    "series": {
        "t": [0.0, 1.0, 2.0, 3.0],
        "ram_bytes": [GIB, 2 * GIB, 3 * GIB, 0],
        "shm_bytes": [0, 0, 2**20, 0],
        "card0_used_bytes": [GIB, 10 * GIB, 20 * GIB, None],
        "card0_busy_percent": [0, 100, 100, None],
        "card0_throttled": [0, 0, 1, None],
    },
    "torch": [
        {
            "version": "2.13.0",
            "cards": [
                {
                    "name": "L4",
                    "allocated_bytes": 18 * GIB,
                    "reserved_bytes": 19 * GIB,
                    "summary": "| Allocated <b> |",
                }
            ],
        }
    ],
}


def record(**changes: Any) -> dict[str, Any]:
    found = deepcopy(RECORD)
    for key, value in changes.items():
        part, _, name = key.partition("__")
        if name:
            found[part][name] = value
        else:
            found[part] = value
    return found


def test_the_line_at_the_end_has_every_peak() -> None:
    assert run_record_text.render_ending(RECORD) == [
        (
            "peak RAM 3 GiB of 4 GiB; shared memory 1 MiB of 1 GiB; GPU 0 20 GiB of 24 GiB, "
            "busy 87%, throttled 1.0 s; 4.0 s"
        )
    ]


@pytest.mark.parametrize(
    ("ended", "says"),
    [
        (
            {"code": 137, "signal": "SIGKILL", "memory_kills": 1},
            "the kernel killed it because memory ran out: 3 GiB of 4 GiB; use less",
        ),
        (
            {"code": 1, "signal": None, "memory_kills": 2},
            "the kernel killed 2 processes because memory ran out: 3 GiB of 4 GiB",
        ),
        (
            {"code": 137, "signal": "SIGKILL", "memory_kills": 0},
            "it was killed with SIGKILL: by a person, by a time limit",
        ),
        ({"code": 137, "signal": "SIGKILL", "memory_kills": None}, "it was killed with SIGKILL"),
        ({"code": None, "signal": None, "memory_kills": None}, "its exit code is unknown"),
    ],
)
def test_an_end_that_is_not_the_programs_own_is_explained(ended: dict[str, Any], says: str) -> None:
    first, second = run_record_text.render_ending(record(ended=ended))
    assert first.startswith(says)
    assert second.startswith("peak RAM")


def test_a_program_that_ended_before_the_first_look_is_told_so() -> None:
    unseen = {
        "ram_bytes": None,
        "process_bytes": None,
        "processes": 0,
        "shm_bytes": None,
        "container_bytes": None,
    }
    short = record(
        peaks=unseen,
        cards=[],
        monitor__looks=0,
        ended={"code": 137, "signal": "SIGKILL", "memory_kills": 0, "seconds": 0.02},
    )
    first, second = run_record_text.render_ending(short)
    assert first.endswith("(this kernel does not report which)"), (
        "no empty brackets where no figure is known"
    )
    assert second == "peak RAM not measured (the program finished too quickly); 0.02 s"
    assert run_record_text.render_ending(record(peaks=unseen, cards=[])) == [
        "peak RAM unknown; 4.0 s"
    ]


def test_the_text_has_figures_and_a_line_for_each_curve() -> None:
    lines = run_record_text.render_lines(RECORD, 100)
    assert lines[0] == "python train.py, target here of quickstart, 2026-11-21T21:56:01Z"
    told = "\n".join(lines)
    assert re.search(r"GPU 0 throttled +1.0 s \(hardware slowdown\)", told)
    assert re.search(r"torch reserved +19 GiB", told)
    assert re.search(r"RAM +▃▆█▁ to 3 GiB", told)
    assert re.search(r"GPU 0 busy +▁█!\. to 100%", told), (
        "where it was throttled a mark stands, where nothing is known a dot"
    )


def test_what_torch_took_in_several_processes_is_told_once_a_card() -> None:
    def note(*taken: int) -> dict[str, Any]:
        return {
            "version": "2.13.0",
            "cards": [
                {"name": "L4", "allocated_bytes": one, "reserved_bytes": one, "summary": ""}
                for one in taken
            ],
        }

    told = [
        (row.name, row.value)
        for row in run_record_text.list_figures(
            record(torch=[note(2 * GIB, 0), note(0, 3 * GIB), note()])
        )
        if row.name.startswith("torch")
    ]
    assert told == [
        ("torch", "2.13.0 in 3 processes"),
        ("torch allocated, cuda:0", "2 GiB"), ("torch reserved, cuda:0", "2 GiB"),
        ("torch allocated, cuda:1", "3 GiB"), ("torch reserved, cuda:1", "3 GiB"),
    ]  # fmt: skip


def test_the_page_is_whole_without_scripts_and_each_chart_has_its_words() -> None:
    page = run_record_html.render_page(RECORD)
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) == 4
    for chart in charts:
        drawn = ElementTree.fromstring(chart)
        assert drawn.get("role") == "img"
        named = {element.get("id"): element.text for element in drawn.iter() if element.get("id")}
        assert all(named[name] for name in str(drawn.get("aria-labelledby")).split())
    assert page.count('class="slow"') == 2, (
        "memory and utilisation of the card, where it was throttled"
    )
    assert "Throttled in 1 of 4 samples" in page
    assert "| Allocated &lt;b&gt; |" in page
    assert page.count("<details>") == 4


HOSTILE = "<script>alert(1)</script>\x1b[31m"


@pytest.mark.parametrize(
    "changes",
    [
        {"program__name": HOSTILE, "subject__target": HOSTILE, "ended__signal": HOSTILE},
        {"cards": [{"name": HOSTILE, "throttled_by": [HOSTILE], "throttled_s": 1}, 7, None]},
        {"torch": [{"version": HOSTILE, "cards": [{"summary": HOSTILE}, 3]}, "x", {"cards": 4}]},
        {"series": {"t": "x", "ram_bytes": [HOSTILE, True, None, -5, 1e300]}},
        {"series": {}, "cards": [], "torch": [], "peaks": {}, "limits": {}, "ended": {}},
        {
            "peaks__ram_bytes": HOSTILE,
            "limits__ram_bytes": [],
            "ended__seconds": HOSTILE,
            "ended__code": HOSTILE,
        },
        {"peaks__ram_bytes": -1, "limits__ram_bytes": 0},
        {"program__script": 7, "peaks__processes": 1e308},
    ],
)
def test_a_record_of_anyone_does_no_harm(changes: dict[str, Any]) -> None:
    found = record(**changes)
    told = "\n".join(
        [
            *run_record_text.render_ending(found),
            *run_record_text.render_lines(found, 40),
            run_record_html.render_page(found),
        ]
    )
    assert "<script" not in run_record_html.render_page(found)
    assert "\x1b" not in told
