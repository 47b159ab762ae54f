"""`provision apply` with `via: colab-cli`, end to end: the real command, Google's own program, the
real cell and probe in a real kernel.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.colab_cli.rig import Account
from tests.rig import Bench

SPEC = """\
gpu: none
python: "3.12"
packages: []
training: {framework: none}
targets:
  colab: {kind: colab, via: colab-cli, runtime: latest, isolation: venv}
"""


@pytest.fixture
def place(account: Account, tmp_path: Path) -> Bench:
    """A folder with a spec, and an account."""
    folder = tmp_path / "project"
    (folder / "home").mkdir(parents=True)
    made = Bench(folder, "https://nothing.invalid/simple", account.variables())
    made.spec(SPEC)
    return made


def resources(place: Bench) -> dict[str, dict[str, object]]:
    return dict(json.loads((place.own / "state.json").read_text())["resources"])


def follow(process: subprocess.Popen[str], words: str) -> None:
    """Read what a command says until it says that."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if words in line:
            return
    raise AssertionError("".join(said))


def test_verified_then_stored(place: Bench, account: Account) -> None:
    planned = place.run("plan", "spec.yaml")
    assert "always with the newest runtime" in planned.stdout
    assert (
        "then quick verification on a Colab machine: it has not been verified yet" in planned.stdout
    )
    assert account.plane.calls == []
    done = place.run("apply", "spec.yaml", "--yes", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VERIFIED" in done.stdout
    assert (len(account.plane.returned), account.plane.running) == (1, {})
    assert "spec/colab#session" not in resources(place)
    assert "verified" in place.run("status", "spec.yaml").stdout

    again = place.run("apply", "spec.yaml", "--yes", timeout=600)
    assert "this is the stored verdict" in again.stdout
    assert len(account.plane.granted) == 1


@pytest.mark.long
def test_kept_then_given_back(place: Bench, account: Account) -> None:
    kept = place.run("apply", "spec.yaml", "--yes", "--keep", timeout=600)
    assert kept.returncode == 0, kept.stdout + kept.stderr
    assert (len(account.plane.granted), len(account.plane.running)) == (1, 1)
    session = resources(place)["spec/colab#session"]["session"]
    assert f"running      {session} on Colab" in kept.stdout
    gone = place.run("destroy", "spec.yaml", "--yes", timeout=600)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert account.plane.running == {}
    assert not place.own.exists()


@pytest.mark.long
def test_killed_while_the_cell_runs_then_run_again(place: Bench, account: Account) -> None:
    process = place.start("apply", "spec.yaml", "--yes")
    follow(process, "Colab: running the cell")
    assert len(account.plane.running) == 1
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=600)
    assert len(account.plane.running) == 1
    told = place.run("status", "spec.yaml")
    assert "may be running on Colab and costing money" in told.stdout
    again = place.run("apply", "spec.yaml", "--yes", timeout=600)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "an earlier run was interrupted: stopping" in again.stderr
    assert (len(account.plane.granted), len(account.plane.returned), account.plane.running) == (
        2,
        2,
        {},
    )
    assert (place.own / "journal.json").read_text() == ""


@pytest.mark.long
def test_killed_while_a_machine_is_asked_for_then_destroyed(place: Bench, account: Account) -> None:
    process = place.start("apply", "spec.yaml", "--yes")
    account.plane.arrived.wait(300)
    process.kill()
    process.communicate(timeout=600)
    gone = place.run("destroy", "spec.yaml", "--yes", timeout=600)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert "Colab session provision-" in gone.stderr
    assert account.plane.running == {}


@pytest.mark.long
def test_interrupted_while_the_cell_runs(place: Bench, account: Account) -> None:
    process = place.start("apply", "spec.yaml", "--yes")
    follow(process, "Colab: running the cell")
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=600)
    assert process.returncode == 130
    assert account.plane.running == {}


@pytest.mark.long
def test_what_stands_in_the_way_leaves_no_intent(
    place: Bench, account: Account, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("sh", "git", "uv"):
        if (
            found := next(
                (
                    Path(part) / name
                    for part in os.environ["PATH"].split(os.pathsep)
                    if (Path(part) / name).exists()
                ),
                None,
            )
        ) is not None:
            (bare / name).symlink_to(found)
    missing = place.run("apply", "spec.yaml", "--yes", PATH=str(bare))
    assert missing.returncode == 2
    assert "uv tool install google-colab-cli" in missing.stderr
    assert (place.own / "journal.json").read_text() == ""
    account.plane.refuse = 412
    refused = place.run("apply", "spec.yaml", "--yes")
    assert refused.returncode == 2
    assert "Colab refused the request for a CPU machine" in refused.stderr
    assert (place.own / "journal.json").read_text() == ""
    assert "Traceback" not in missing.stderr + refused.stderr


def test_secrets_of_colabs_own_store_are_refused(place: Bench) -> None:
    place.spec(SPEC + "secrets: {HF_TOKEN: {colab: HF_TOKEN}}\n")
    planned = place.run("plan", "spec.yaml")
    assert planned.returncode == 2
    assert "provides secrets only to notebooks in a browser" in planned.stderr


@pytest.mark.long
def test_verify_takes_a_machine_of_its_own(place: Bench, account: Account) -> None:
    place.run("lock", "spec.yaml")
    done = place.run("verify", "spec.yaml", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (len(account.plane.granted), account.plane.running) == (1, {})
    told, report = (
        json.loads((account.base / name).read_text()) for name in ("status.json", "report.json")
    )
    assert (told["nonce"], told["outcome"]) == (report["subject"]["nonce"], "verified")
