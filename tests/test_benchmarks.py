"""The harness of benchmarks/ on trivial programs: it times, compares, judges and repeats uv's
calls. Nothing here depends on how fast the machine is.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.measuring import PROMISES, measure
from benchmarks.promise import Figure, Outcome, Promise, exit_code, table
from benchmarks.timing import Call, Cost, Unmeasured, alternate, cost, median, total
from benchmarks.workshop import ROOT, Workshop
from tests.rig import Bench, small_spec

OURS = Cost(1, 1)
BURN = "import time\nwhile time.process_time() < 0.2: pass"


def python(code: str) -> Call:
    return Call((sys.executable, "-c", code), os.environ)


def outcome(
    bound: float | None, ours: Cost | None = OURS, figure: Figure = Figure.CPU_RATIO
) -> Outcome:
    return Outcome(
        Promise("one", "ours", "theirs", figure, bound),
        ours,
        Cost(2, 4),
        "" if ours else "it did not start",
    )


def test_the_cpu_of_children_counts() -> None:
    nested = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])"
    measured = cost(python(nested))
    assert measured.cpu_s >= 0.2
    assert measured.wall_s >= 0.2


def test_waiting_is_wall_and_not_cpu() -> None:
    measured = cost(python("import time; time.sleep(0.3)"))
    assert measured.wall_s >= 0.3
    assert measured.cpu_s < measured.wall_s


def test_a_program_that_fails_is_not_a_measurement() -> None:
    with pytest.raises(Unmeasured, match=r"(?s)exit code 3.*out of luck"):
        cost(python("import sys; print('out of luck'); sys.exit(3)"))


def test_both_sides_take_turns_after_a_round_that_does_not_count() -> None:
    order: list[str] = []

    def side(name: str) -> Cost:
        order.append(name)
        return Cost(len(order), 0)

    ours, peer = alternate(lambda: side("a"), lambda: side("b"), rounds=3)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab"
    assert (ours, peer) == (Cost(6, 0), Cost(5, 0))


def test_median_and_total() -> None:
    assert median([Cost(3, 1), Cost(1, 9), Cost(2, 5)]) == Cost(2, 5)
    assert total([]) == Cost(0, 0)
    assert total([python(BURN), python(BURN)]).cpu_s >= 0.4


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        (Figure.CPU_RATIO, 0.25),
        (Figure.WALL_RATIO, 0.5),
        (Figure.CPU_ADDED, -3),
        (Figure.WALL_ADDED, -1),
        (Figure.CPU, 1),
        (Figure.WALL, 1),
    ],
)
def test_a_figure_is_made_of_both_costs(figure: Figure, value: float) -> None:
    assert outcome(None, figure=figure).value == value


def test_a_bound_that_does_not_hold_is_said_and_exits_1() -> None:
    kept, broken, free = outcome(0.25), outcome(0.24), outcome(None)
    assert (kept.holds, broken.holds, free.holds) == (True, False, None)
    assert exit_code([kept, free]) == 0
    assert exit_code([kept, broken]) == 1
    lines = table([kept, broken, free]).splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["yes", "NO", "-"]


def test_what_was_not_measured_is_neither_kept_nor_broken() -> None:
    unknown = outcome(1, ours=None)
    assert unknown.holds is None
    assert exit_code([unknown]) == 2
    assert exit_code([unknown, outcome(0.1)]) == 1
    assert "one was not measured: it did not start" in table([unknown])


def test_every_promise_has_a_name_of_its_own_and_can_be_asked_for() -> None:
    names = [promise.name for promise in PROMISES]
    assert len(set(names)) == len(names)
    listed = subprocess.run(
        [sys.executable, "-m", "benchmarks", "nothing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert listed.returncode == 2
    assert all(name in listed.stderr for name in names)


def test_make_and_the_pages_name_benchmarks_that_there_are() -> None:
    names = {promise.name for promise in PROMISES}
    (recipe,) = re.findall(
        r"^bench-lock:.*\n.* -m benchmarks (.+)", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    listed = re.findall(r"^\| `([a-z-]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert listed == recipe.split()
    assert set(listed) <= names


@pytest.mark.long(after=1)
@pytest.mark.parametrize("name", ["rules", "lock-check"])
def test_a_promise_is_measured_from_end_to_end(tmp_path: Path, name: str) -> None:
    (one,) = measure([name], Workshop(tmp_path))
    assert one.trouble == ""
    assert one.ours is not None
    assert one.ours.cpu_s > 0


def test_a_side_that_fails_leaves_the_promise_unmeasured(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    broken = tmp_path / "broken.yaml"
    broken.write_text("gpu: [")
    broken.with_suffix(".lock").write_text("")
    (unknown,) = measure(["no-change"], Workshop(work, broken))
    assert unknown.ours is None
    assert "broken" in unknown.trouble or "spec.yaml" in unknown.trouble


def test_bytecode_is_wanted_whatever_the_caller_says(tmp_path: Path) -> None:
    caller = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPYCACHEPREFIX": str(tmp_path),
        "UV_CACHE_DIR": "kept",
    }
    environment = Workshop(tmp_path, variables=caller).environment
    assert not {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"} & environment.keys()
    assert environment["UV_CACHE_DIR"] == "kept"


def test_nothing_outside_the_folder_is_removed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "other").mkdir()
    with pytest.raises(ValueError, match="is not in"):
        Workshop(tmp_path / "work").clear(tmp_path / "other")
    assert (tmp_path / "other").is_dir()


@pytest.mark.long
def test_the_calls_of_uv_are_made_again_by_hand(bench: Bench, tmp_path: Path) -> None:
    original = bench.spec(small_spec("beta"))
    assert bench.run("lock", original.name).returncode == 0
    work = tmp_path / "work"
    work.mkdir()
    workshop = Workshop(work, original, bench.environment())

    lock = workshop.lock_by_hand
    assert [call.argv[1] for call in lock.prepare()] == ["lock", "export"]
    total(lock.prepare())
    assert "beta" in next(lock.folder.glob("*/pylock.toml")).read_text()

    apply = workshop.apply_by_hand
    calls = apply.prepare()
    assert [call.argv[1:3] for call in calls] == [("venv", "--quiet"), ("pip", "sync")]
    assert not any(str(apply.environment_path) in word for call in calls for word in call.argv)
    total(calls)
    installed = next((apply.folder / "env/lib").glob("python*/site-packages"))
    assert (installed / "beta").is_dir()
    assert (installed / "alpha").is_dir()


def test_the_command_line_ends_where_verification_would_begin(bench: Bench, tmp_path: Path) -> None:
    spec = bench.spec(small_spec("alpha"))
    call = Workshop(tmp_path, variables=bench.environment()).shortened("apply", str(spec), "--yes")
    done = subprocess.run(
        call.argv, env=dict(call.environment), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert (bench.own / "envs/spec.local/provision.json").exists()
    assert not list(bench.own.rglob("report.json"))
    state = json.loads((bench.own / "state.json").read_text())
    assert "environment" in json.dumps(state)
