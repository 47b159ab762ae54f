"""What must hold whatever happens between two runs: no stale verdict, no forgotten leftovers,
nothing foreign touched, nothing working lost.
"""

from __future__ import annotations

import json
import shutil
import signal
import threading
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.errors import StateError
from provision.state_store import LocalStore
from tests.rig import MINOR, Bench, make_index, make_wheel, served, small_spec


def site_packages(bench: Bench) -> Path:
    return bench.own / f"envs/spec.local/lib/python{MINOR}/site-packages"


@pytest.mark.long
def test_a_remade_environment_is_not_taken_for_verified(bench: Bench, tmp_path: Path) -> None:
    nap = tmp_path / "nap"
    code = f"import pathlib, time\ntime.sleep(60 if pathlib.Path({str(nap)!r}).exists() else 0)\n"
    make_index(tmp_path / "index", (make_wheel(tmp_path / "wheels", "sleepy", "1.0", code=code),))
    bench.spec(small_spec("sleepy"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    shutil.rmtree(site_packages(bench) / "sleepy-1.0.dist-info")
    nap.touch()
    running = bench.start("apply", "spec.yaml", "--yes")
    said = ""
    while "verifying: imports" not in said:
        said = running.stderr.readline() if running.stderr else ""
    running.send_signal(signal.SIGKILL)
    running.wait(300)
    nap.unlink()
    status = bench.run("status", "spec.yaml")
    assert status.returncode == 1
    assert "not verified" in status.stdout
    again = bench.run("apply", "spec.yaml", "--yes")
    assert again.returncode == 0
    assert "stored verdict" not in again.stdout


def test_verify_refuses_a_moved_spec_and_a_half_made_environment(applied: Bench) -> None:
    applied.spec(small_spec("alpha", "gamma"))
    moved = applied.run("verify", "spec.yaml")
    assert moved.returncode == 1
    assert "packages: + gamma" in moved.stderr
    applied.spec(small_spec("alpha"))
    (applied.own / "envs/spec.local/provision.json").unlink()
    half = applied.run("verify", "spec.yaml")
    assert half.returncode == 2
    assert "is missing or incomplete" in half.stderr


def test_status_does_not_count_a_verdict_on_other_promises(applied: Bench) -> None:
    assert applied.run("status", "spec.yaml").returncode == 0
    applied.spec(small_spec("alpha", extra="requires: {ram: 900TiB}\n"))
    status = applied.run("status", "spec.yaml")
    assert status.returncode == 1
    assert "the spec or the lock has changed" in status.stdout


def test_what_a_failed_install_left_is_removed_by_the_next_apply(
    bench: Bench, tmp_path: Path
) -> None:
    with served(tmp_path / "index") as address:
        bench.spec(small_spec("alpha==1.0"))
        bench.spec(small_spec("alpha"), "other.yaml")
        assert bench.run("lock", "spec.yaml", PROVISION_INDEX_PYPI=address).returncode == 0
    shutil.rmtree(bench.folder / "uv-cache")
    assert bench.run("apply", "spec.yaml", "--yes", PROVISION_INDEX_PYPI=address).returncode == 2
    (left,) = (bench.own / "envs").iterdir()
    assert bench.run("apply", "other.yaml", "--yes").returncode == 0
    assert not left.exists()
    assert sorted(path.name.split("-")[0] for path in (bench.own / "envs").iterdir()) == [
        "other.local",
        "other.local",
    ]


def test_a_changed_environment_is_kept_until_it_can_be_put_right(applied: Bench) -> None:
    shutil.rmtree(site_packages(applied) / "alpha-2.0.dist-info")
    cut = applied.run(
        "apply",
        "spec.yaml",
        "--yes",
        UV_CACHE_DIR=str(applied.folder / "empty"),
        PROVISION_INDEX_PYPI="http://127.0.0.1:9/simple",
    )
    assert cut.returncode == 2, cut.stderr
    assert (site_packages(applied) / "alpha/__init__.py").exists()
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0


def test_a_saved_plan_is_refused_when_another_run_moved_the_state_meanwhile(
    bench: Bench, tmp_path: Path
) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def wait(path: str) -> None:
        if path.endswith(".whl") and not go_on.is_set():
            asked.set()
            go_on.wait(300)

    with served(tmp_path / "index", wait) as address:
        bench.spec(small_spec("alpha==1.0"))
        go_on.set()
        assert bench.run("lock", "spec.yaml", PROVISION_INDEX_PYPI=address).returncode == 0
        assert bench.run("plan", "spec.yaml", "--out", "plan.json").returncode == 0
        go_on.clear()
        shutil.rmtree(bench.folder / "uv-cache")
        running = bench.start("apply", "spec.yaml", "--yes", PROVISION_INDEX_PYPI=address)
        assert asked.wait(300)
        threading.Timer(1, go_on.set).start()
        late = bench.run(
            "apply", "spec.yaml", "--plan", "plan.json", "--yes", "--lock-timeout", "60"
        )
        assert running.wait(300) == 0
    assert late.returncode == 2
    assert "stale" in late.stderr


def test_a_waiter_does_not_hold_a_lock_file_that_was_removed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / ".provision", RealSystem())
    waiting, both = threading.Event(), []

    def late() -> None:
        with LocalStore(tmp_path / ".provision", RealSystem()).exclusive(
            10, lambda _: waiting.set()
        ):
            both.append("late")

    with store.exclusive(0, lambda _: None):
        thread = threading.Thread(target=late)
        thread.start()
        assert waiting.wait(300)
        (tmp_path / ".provision/lock").unlink()
        with LocalStore(tmp_path / ".provision", RealSystem()).exclusive(0, lambda _: None):
            pass
    with store.exclusive(5, lambda _: None):
        both.append("mine")
    thread.join(10)
    assert sorted(both) == ["late", "mine"]


@pytest.mark.parametrize(
    "name", [".provision", ".provision/envs", ".provision/reports", ".provision/lock"]
)
def test_a_link_in_place_of_our_folders_is_refused(bench: Bench, tmp_path: Path, name: str) -> None:
    bench.spec(small_spec("alpha"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.txt").write_text("mine")
    (bench.folder / name).parent.mkdir(exist_ok=True)
    (bench.folder / name).symlink_to(elsewhere / "mine.txt" if name.endswith("lock") else elsewhere)
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 2, done.stderr
    assert (elsewhere / "mine.txt").read_text() == "mine"
    assert [path.name for path in elsewhere.iterdir()] == ["mine.txt"]


def test_a_state_that_came_from_elsewhere_removes_nothing_of_the_users(
    applied: Bench, tmp_path: Path
) -> None:
    from provision.state import dumps, loads

    treasure = tmp_path / "treasure"
    treasure.mkdir()
    path = applied.own / "state.json"
    state = loads(path.read_text(), "state.json")
    for record in (
        {"title": "x", "outside": [str(treasure)]},
        {"title": "x", "paths": ["envs/../../treasure"]},
        {"title": "x", "paths": ["/etc"]},
    ):
        path.write_text(dumps(state.with_record("spec/local", "kernel", record)))
        done = applied.run("destroy", "spec.yaml", "--yes")
        assert done.returncode == 2, done.stderr
        assert "did not write this" in done.stderr
        assert treasure.exists()


def test_names_that_would_share_a_lock_are_refused(bench: Bench) -> None:
    bench.spec(small_spec("alpha"), "x.yaml")
    bench.spec(small_spec("alpha"), "x.yml")
    bench.spec(small_spec("alpha"), "spec")
    assert bench.run("lock", "x.yaml").returncode == 2
    assert "share a lock" in bench.run("apply", "x.yml", "--yes").stderr
    assert bench.run("apply", "spec", "--yes").returncode == 2
    assert bench.run("lint", "x.yaml", "spec").returncode == 0


@pytest.mark.long
def test_odd_names_are_made_and_destroyed(bench: Bench) -> None:
    for name in ("a#b.yaml", "with space.yaml", "ünï.yaml", "a.b.c.yaml"):
        bench.spec(small_spec("alpha"), name)
        assert bench.run("apply", name, "--yes").returncode == 0, name
        assert bench.run("run", name, "--", "python", "-c", "import alpha").returncode == 0, name
        assert bench.run("destroy", name, "--yes").returncode == 0, name
    assert not bench.own.exists()


def test_a_folder_that_path_cannot_hold_is_refused(bench: Bench) -> None:
    odd = Bench(bench.folder / "a:b", bench.index)
    odd.folder.mkdir()
    odd.spec(small_spec("alpha"))
    done = odd.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 2
    assert "cannot be in PATH" in done.stderr


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "name",
    [
        "spec.lock",
        ".provision/state.json",
        ".provision/journal.json",
        ".provision/envs/spec.local/provision.json",
    ],
)
def test_deeply_nested_json_is_damage_and_no_crash(applied: Bench, name: str) -> None:
    (applied.folder / name).write_text("[" * 100_000)
    for verb in (("status",), ("apply", "--yes")):
        done = applied.run(verb[0], "spec.yaml", *verb[1:])
        assert done.returncode in (0, 1, 2), (verb, done.stderr)
        assert "this is a bug" not in done.stderr


def test_a_damaged_stored_report_is_made_again(applied: Bench) -> None:
    (applied.own / "reports/spec.local/report.json").write_text(
        '{"schema": "provision.report/1", "verdict": {"result": []}}'
    )
    assert applied.run("report", "spec.yaml").returncode == 2
    done = applied.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0
    assert "stored verdict" not in done.stdout
    assert applied.run("report", "spec.yaml").returncode == 0


@pytest.mark.long
def test_a_vanished_interpreter_is_named_as_the_reason(applied: Bench) -> None:
    python = applied.own / "envs/spec.local/bin/python"
    python.unlink()
    plan = applied.run("plan", "spec.yaml")
    assert "its Python is missing" in plan.stdout
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0


@pytest.mark.parametrize(
    "extra",
    [
        "env: {PATH: /nope}\n",
        "env: {PROVISION_PATH_X: a}\n",
        "secrets: {VIRTUAL_ENV: {env: X}}\n",
        "requires: {disk: 99999999999TiB}\n",
        "verify: {timeout: 0s}\n",
        "indexes: {private: {url: 'https://packages.example.com/simple?token=abc'}}\n",
    ],
)
def test_what_could_only_go_wrong_later_is_a_finding(bench: Bench, extra: str) -> None:
    bench.spec(small_spec("alpha", extra=extra))
    done = bench.run("lint", "spec.yaml")
    assert done.returncode == 1, done.stdout
    assert "spec.yaml:" in done.stdout
    assert "token=abc" not in done.stderr


def test_an_empty_secret_is_no_secret(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra="secrets: {TOKEN: {env: MY_TOKEN}}\n"))
    assert bench.run("apply", "spec.yaml", "--yes", MY_TOKEN="x").returncode == 0
    assert bench.run("run", "spec.yaml", "--", "python", "-c", "pass", MY_TOKEN="").returncode == 2


def test_a_card_without_torch_is_refused(bench: Bench) -> None:
    bench.spec(small_spec("alpha").replace("gpu: none", "gpu: L4\ncuda: '12.8'"))
    done = bench.run("plan", "spec.yaml")
    assert done.returncode == 2
    assert "can only be tested through torch" in done.stderr


def test_destroy_says_what_it_does_not_know(applied: Bench) -> None:
    assert applied.run("destroy", "spec.yaml", "--target", "typo", "--yes").returncode == 2
    wrong = applied.run("destroy", "typo.yaml", "--yes")
    assert wrong.returncode == 2
    assert "spec/local" in wrong.stderr


def test_a_target_named_twice_is_made_once(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    done = bench.run(
        "apply",
        "spec.yaml",
        "--target",
        "local",
        "--target",
        "local",
        "--yes",
        "--output-format",
        "json",
    )
    assert len(json.loads(done.stdout)["results"]) == 1


def test_the_ledger_refuses_to_overwrite_what_it_has_not_seen(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / ".provision", RealSystem())
    with store.exclusive(0, lambda _: None):
        state = store.load().with_record("spec/local", "environment", {"paths": []})
        store.save(state, expecting=0)
        with pytest.raises(StateError):
            store.save(state, expecting=0)


def test_a_lineage_is_on_disk_once_it_is_asked_for_and_stays(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / ".provision", RealSystem())
    with store.exclusive(0, lambda _: None):
        assert store.load_ledger().state.lineage != store.load_ledger().state.lineage
        founded = store.load_or_create_ledger().state
        assert store.load_or_create_ledger().state == founded
    assert LocalStore(tmp_path / ".provision", RealSystem()).load_ledger().state == founded
