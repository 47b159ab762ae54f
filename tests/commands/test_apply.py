"""The main job on small packages: made once, kept, changed, resumed, destroyed; nothing incomplete
is taken for whole.
"""

from __future__ import annotations

import json
import shutil
import signal
import stat
import threading
import time
from pathlib import Path

import pytest

from tests.rig import MINOR, Bench, make_index, make_wheel, served, small_spec


def test_apply_makes_verifies_and_then_changes_nothing(bench: Bench) -> None:
    bench.spec(small_spec("beta"))
    first = bench.run("apply", "spec.yaml", "--yes")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "VERIFIED" in first.stdout
    assert "activate     source .provision/envs/spec.local/bin/activate" in first.stdout
    report = json.loads((bench.own / "reports/spec.local/report.json").read_text())
    assert report["verdict"]["result"] == "verified"
    assert report["subject"]["proof"] == "imports"
    assert (
        (bench.own / "reports/spec.local/report.html")
        .read_text()
        .lower()
        .startswith("<!doctype html>")
    )
    before = (bench.own / "state.json").read_text()
    second = bench.run("apply", "spec.yaml", "--yes")
    assert second.returncode == 0
    assert "No changes" in second.stdout
    assert (bench.own / "state.json").read_text() == before
    third = bench.run("apply", "spec.yaml", "--yes", "--verify")
    assert third.returncode == 0
    assert "No changes" not in third.stdout
    again = json.loads((bench.own / "reports/spec.local/report.json").read_text())
    assert again["subject"]["nonce"] != report["subject"]["nonce"]
    assert again["digests"]["identity"] == report["digests"]["identity"]


def test_own_files_are_private_and_ignored_by_git(applied: Bench) -> None:
    assert (applied.own / ".gitignore").read_text() == "*\n"
    assert stat.S_IMODE(applied.own.stat().st_mode) == 0o700
    for name in ("state.json", "reports/spec.local/report.json", "reports/spec.local/report.html"):
        assert stat.S_IMODE((applied.own / name).stat().st_mode) == 0o600, name


def test_apply_needs_a_yes_without_a_terminal(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    done = bench.run("apply", "spec.yaml")
    assert done.returncode == 2
    assert "add --yes" in done.stderr
    assert not (bench.own / "envs").exists()


def test_a_changed_spec_replaces_the_environment_and_removes_the_old_one(bench: Bench) -> None:
    bench.spec(small_spec("alpha==1.0"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    old = (bench.own / "envs/spec.local").readlink().name
    bench.spec(small_spec("alpha==2.0"))
    assert bench.run("lock", "spec.yaml", "--check").returncode == 1
    refused = bench.run("apply", "spec.yaml", "--yes", "--locked")
    assert refused.returncode == 1
    assert "packages: + alpha==2.0" in refused.stderr
    assert (bench.own / "envs" / old).exists()
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0
    assert "-/+" in done.stderr
    new = (bench.own / "envs/spec.local").readlink().name
    assert new != old
    assert sorted(p.name for p in (bench.own / "envs").iterdir()) == sorted(["spec.local", new])


def test_a_package_changed_by_hand_is_found_and_put_right(bench: Bench) -> None:
    bench.spec(small_spec("alpha", "beta"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    packages = bench.own / f"envs/spec.local/lib/python{MINOR}/site-packages"
    shutil.rmtree(packages / "beta-1.0.dist-info")
    plan = bench.run("plan", "spec.yaml", "--detailed-exitcode")
    assert plan.returncode == 2
    assert "changed after it was created: beta is missing" in plan.stdout
    assert bench.run("status", "spec.yaml").returncode == 1
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    assert bench.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 0


def test_plan_changes_nothing_and_a_saved_plan_goes_stale(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    assert bench.run("plan", "spec.yaml").returncode == 0
    assert sorted(p.name for p in bench.folder.iterdir()) == ["home", "spec.yaml", "uv-cache"]
    assert bench.run("plan", "spec.yaml", "--out", "plan.json").returncode == 2
    assert bench.run("lock", "spec.yaml").returncode == 0
    assert bench.run("plan", "spec.yaml", "--out", "plan.json").returncode == 0
    assert bench.run("apply", "spec.yaml", "--plan", "plan.json", "--yes").returncode == 0
    stale = bench.run("apply", "spec.yaml", "--plan", "plan.json", "--yes")
    assert stale.returncode == 2
    assert "stale" in stale.stderr
    (bench.folder / "plan.json").write_text("not a plan")
    assert bench.run("apply", "spec.yaml", "--plan", "plan.json", "--yes").returncode == 2


def test_failed_verification_is_exit_1_and_is_repeated_by_the_next_apply(bench: Bench) -> None:
    missing = bench.folder / "data"
    bench.spec(small_spec("alpha", extra=f"paths: {{data: {missing}}}\n"))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 1
    assert "NOT AS DECLARED" in done.stdout
    assert (
        "quick verification on this device: the last verification failed on 20"
        in bench.run("plan", "spec.yaml").stdout
    )
    again = json.loads(bench.run("apply", "spec.yaml", "--yes", "--output-format", "json").stdout)[
        "results"
    ][0]
    assert (again["verdict"], again["fresh"], again["changed"]) == ("failed", True, False)
    assert "but" not in bench.run("status", "spec.yaml").stdout
    missing.mkdir()
    done = bench.run("apply", "spec.yaml", "--yes")
    assert (done.returncode, "stored verdict" in done.stdout) == (0, False)
    assert bench.run("status", "spec.yaml").returncode == 0
    assert "stored verdict" in bench.run("apply", "spec.yaml", "--yes").stdout


@pytest.mark.long(after=1)
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_interrupted_during_the_install_it_goes_on_afterwards(
    bench: Bench, tmp_path: Path, blow: signal.Signals
) -> None:
    make_index(
        tmp_path / "index", (make_wheel(tmp_path / "wheels", "heavy", "1.0", size=4_000_000),)
    )
    asked, go_on = threading.Event(), threading.Event()

    def wait(path: str) -> None:
        if path.endswith("heavy-1.0-py3-none-any.whl") and not go_on.is_set():
            asked.set()
            go_on.wait(300)

    with served(tmp_path / "index", wait) as address:
        bench.spec(small_spec("heavy"))
        # The lock needs the wheel's metadata, which uv reads from the file itself on such an index:
        # let that pass, then start with a cold cache.
        go_on.set()
        assert bench.run("lock", "spec.yaml", PROVISION_INDEX_PYPI=address).returncode == 0
        go_on.clear()
        shutil.rmtree(bench.folder / "uv-cache")
        running = bench.start("apply", "spec.yaml", "--yes", PROVISION_INDEX_PYPI=address)
        assert asked.wait(300)
        running.send_signal(blow)
        code = running.wait(300)
        said = running.stderr.read() if running.stderr else ""
        assert (
            code == {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130, signal.SIGTERM: 143}[blow]
        ), said
        assert "Traceback" not in said
        assert (
            json.loads((bench.own / "journal.json").read_text())["intents"][0]["part"]
            == "environment"
        )
        assert _children_gone(bench)
        go_on.set()
        status = bench.run("status", "spec.yaml")
        assert "incomplete" in status.stdout
        refused = bench.run("run", "spec.yaml", "--", "python", "-c", "pass")
        assert refused.returncode == 2
        resumed = bench.run("apply", "spec.yaml", "--yes", PROVISION_INDEX_PYPI=address)
    assert resumed.returncode == 0, resumed.stderr
    assert "an interrupted run left it incomplete" in resumed.stderr
    assert "VERIFIED" in resumed.stdout


@pytest.mark.long
def test_destroy_after_an_interrupted_apply_leaves_nothing(bench: Bench, tmp_path: Path) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def wait(path: str) -> None:
        if path.endswith(".whl") and not go_on.is_set():
            asked.set()
            go_on.wait(300)

    with served(tmp_path / "index", wait) as address:
        bench.spec(small_spec("alpha==1.0"))
        go_on.set()
        assert bench.run("lock", "spec.yaml", PROVISION_INDEX_PYPI=address).returncode == 0
        go_on.clear()
        shutil.rmtree(bench.folder / "uv-cache")
        running = bench.start("apply", "spec.yaml", "--yes", PROVISION_INDEX_PYPI=address)
        assert asked.wait(300)
        running.kill()
        running.wait(300)
        go_on.set()
    done = bench.run("destroy", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert not bench.own.exists()


def test_destroy_removes_exactly_what_apply_made(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    bench.spec(small_spec("alpha"), "other.yaml")
    (bench.folder / "mine.txt").write_text("mine")
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    assert bench.run("apply", "other.yaml", "--yes").returncode == 0
    assert bench.run("destroy", "spec.yaml").returncode == 2
    assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert not (bench.own / "envs/spec.local").exists()
    assert (bench.own / "envs/other.local/bin/python").exists()
    assert bench.run("destroy", "spec.yaml", "--yes").stdout.startswith("nothing to remove")
    assert bench.run("destroy", "other.yaml", "--yes").returncode == 0
    assert sorted(p.name for p in bench.folder.iterdir()) == [
        "home",
        "mine.txt",
        "other.lock",
        "other.yaml",
        "spec.lock",
        "spec.yaml",
        "uv-cache",
    ]


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "damaged"),
        ('{"version": 4, "terraform_version": "1.9"}', "is not a provision state file"),
        ('{"schema": "provision.state/2"}', "was written by a"),
        ("", "damaged"),
    ],
)
def test_a_damaged_or_foreign_state_is_refused_and_nothing_is_lost(
    applied: Bench, content: str, words: str
) -> None:
    state = applied.own / "state.json"
    state.write_text(content)
    for verb in ("apply", "destroy", "status", "plan"):
        done = applied.run(verb, "spec.yaml", *(["--yes"] if verb in ("apply", "destroy") else []))
        assert done.returncode == 2, (verb, done.stderr)
        assert words in done.stderr
    assert state.read_text() == content
    assert (applied.own / "envs/spec.local/bin/python").exists()
    state.unlink()
    adopted = applied.run("apply", "spec.yaml", "--yes")
    assert adopted.returncode == 0
    assert "a complete environment of this lock already exists" in adopted.stderr


def test_a_state_edited_by_hand_is_refused(applied: Bench) -> None:
    state = applied.own / "state.json"
    state.write_text(state.read_text().replace("envs/spec.local", "envs/../../elsewhere"))
    done = applied.run("destroy", "spec.yaml", "--yes")
    assert done.returncode == 2
    assert "checksum" in done.stderr


def test_a_second_apply_waits_or_names_the_holder(bench: Bench, tmp_path: Path) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def wait(path: str) -> None:
        if path.endswith(".whl") and not go_on.is_set():
            asked.set()
            go_on.wait(300)

    with served(tmp_path / "index", wait) as address:
        bench.spec(small_spec("alpha==1.0"))
        go_on.set()
        assert bench.run("lock", "spec.yaml", PROVISION_INDEX_PYPI=address).returncode == 0
        go_on.clear()
        shutil.rmtree(bench.folder / "uv-cache")
        running = bench.start("apply", "spec.yaml", "--yes", PROVISION_INDEX_PYPI=address)
        assert asked.wait(300)
        loser = bench.run("apply", "spec.yaml", "--yes", PROVISION_INDEX_PYPI=address)
        assert loser.returncode == 2
        assert f"process {running.pid}" in loser.stderr
        threading.Timer(1, go_on.set).start()
        patient = bench.run(
            "apply", "spec.yaml", "--yes", "--lock-timeout", "60", PROVISION_INDEX_PYPI=address
        )
        assert patient.returncode == 0, patient.stderr
        assert "No changes" in patient.stdout
        assert running.wait(300) == 0


@pytest.mark.long
def test_a_moved_folder_is_not_taken_for_a_whole_environment(applied: Bench) -> None:
    moved = Bench(applied.folder.with_name("moved"), applied.index)
    applied.folder.rename(moved.folder)
    plan = moved.run("plan", "spec.yaml")
    assert "-/+" in plan.stdout, plan.stdout
    assert moved.run("apply", "spec.yaml", "--yes").returncode == 0
    prefix = moved.run(
        "run", "spec.yaml", "--", "python", "-c", "import sys; print(sys.prefix)"
    ).stdout.strip()
    assert Path(prefix).is_relative_to(moved.folder)


def test_a_kernel_is_registered_on_request_and_removed(bench: Bench, tmp_path: Path) -> None:
    data = tmp_path / "jupyter"
    text = small_spec(
        "alpha",
        extra="targets: {local: {kind: local, kernel: true}}\nenv: {A: b}\nsecrets: {TOKEN: {env: "
        "MY_TOKEN}}\n",
    )
    bench.spec(text)
    refused = bench.run("apply", "spec.yaml", "--yes", JUPYTER_DATA_DIR=str(data))
    assert refused.returncode == 1
    assert "ipykernel" in refused.stdout + refused.stderr
    wheels = tmp_path / "wheels"
    make_index(tmp_path / "index", (make_wheel(wheels, "ipykernel", "7.0"),))
    bench.spec(text.replace("  - alpha\n", "  - alpha\n  - ipykernel\n"))
    done = bench.run(
        "apply", "spec.yaml", "--yes", JUPYTER_DATA_DIR=str(data), MY_TOKEN="not-written-down"
    )
    assert done.returncode == 0, done.stderr + done.stdout
    (kernel,) = (data / "kernels").glob("provision-spec.local-*/kernel.json")
    document = json.loads(kernel.read_text())
    assert document["argv"][0] == str(bench.own / "envs/spec.local/bin/python")
    assert document["env"]["TOKEN"] == "${MY_TOKEN}"
    assert document["env"]["A"] == "b"
    for path in bench.folder.rglob("*"):
        if path.is_file() and "uv-cache" not in path.parts:
            assert b"not-written-down" not in path.read_bytes(), path
    bench.spec(
        text.replace("  - alpha\n", "  - alpha\n  - ipykernel\n").replace(", kernel: true", "")
    )
    assert (
        bench.run(
            "apply", "spec.yaml", "--yes", JUPYTER_DATA_DIR=str(data), MY_TOKEN="x"
        ).returncode
        == 0
    )
    assert not kernel.parent.exists()


def test_run_gives_the_program_env_paths_and_secrets(bench: Bench) -> None:
    data = bench.folder / "data"
    data.mkdir()
    bench.spec(
        small_spec(
            "alpha",
            extra=f"env: {{A: b}}\npaths: {{data: {data}}}\nsecrets: {{TOKEN: {{env: "
            f"MY_TOKEN}}}}\n",
        )
    )
    assert bench.run("apply", "spec.yaml", "--yes", MY_TOKEN="s3cret-value").returncode == 0
    show = (
        "import os, alpha; print(alpha.__version__, os.environ['A'], "
        "os.environ['PROVISION_PATH_DATA'], os.environ['TOKEN'])"
    )
    done = bench.run("run", "spec.yaml", "--", "python", "-c", show, MY_TOKEN="s3cret-value")
    assert done.stdout.split() == ["2.0", "b", str(data), "s3cret-value"]
    unset = bench.run("run", "spec.yaml", "--", "python", "-c", "pass")
    assert unset.returncode == 2
    assert "MY_TOKEN" in unset.stderr
    assert (
        bench.run(
            "run", "spec.yaml", "--", "python", "-c", "raise SystemExit(7)", MY_TOKEN="x"
        ).returncode
        == 7
    )
    assert (
        bench.run(
            "run",
            "spec.yaml",
            "--",
            "python",
            "-c",
            "import os; os.kill(os.getpid(), 15)",
            MY_TOKEN="x",
        ).returncode
        == -signal.SIGTERM
    )
    assert bench.run("run", "spec.yaml", "--target", "nowhere", "--", "python").returncode == 2
    assert (
        bench.run(
            "run", "spec.yaml", "--target", "local", "--", "python", "-c", "pass", MY_TOKEN="x"
        ).returncode
        == 0
    )


def _children_gone(bench: Bench) -> bool:
    """No uv that was started for this bench is still at work: tells by the scratch folders it would
    hold as working directory.
    """
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        held = [
            p
            for p in Path("/proc").glob("[0-9]*/environ")
            if _reads(p, f"UV_CACHE_DIR={bench.folder / 'uv-cache'}")
        ]
        if not held:
            return True
        time.sleep(0.1)
    return False


def _reads(path: Path, needle: str) -> bool:
    try:
        return needle.encode() in path.read_bytes()
    except OSError:
        return False
