"""Fleets through the real command: many targets at once, against the emulator with devices that
answer by script, and on this machine.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from provision.adapters import RealSystem
from provision.commands.apply import ApplyOptions
from provision.commands.fleets.members import load_fleet
from provision.commands.fleets.parallel_run import ParallelRun
from provision.commands.fleets.planning import plan_fleet
from provision.commands.shared.load import load_spec
from provision.commands.shared.sandbox_spec import build_sandbox_spec
from provision.sandbox.faults import Faults
from provision.sandbox.serve import Sandbox, serve
from provision.sandbox.store import Store
from tests import fork_server
from tests.cli.test_terminal import at_terminal, ended
from tests.commands.test_workbench import SPEC, Device
from tests.rig import Bench, small_spec

pytest.importorskip("google.cloud.notebooks_v2")

PRICED = SPEC.replace(
    "    max_lifetime", "    machine_type: n1-standard-4\n    max_lifetime"
).format(packages="alpha", on_failure="keep")


class Devices(Device):
    """Devices of which those with `broken` in their name fail, and those with `silent` send
    nothing.
    """

    broken: str = ""
    silent: str = ""

    def start(self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults) -> None:
        self.verdict = "simulated"
        if self.silent and self.silent in name:
            self.verdict = None
        if self.broken and self.broken in name:
            self.verdict = "error"
        super().start(store, name, endpoints, faults)


@contextmanager
def fleet(bench: Bench, devices: Device, *faults: str, names: str = "abc") -> Iterator[Sandbox]:
    """Run an emulator for the folder `specs`, whose specs are locked once for all."""
    for name in names:
        bench.spec(PRICED, f"specs/{name}.yaml")
    with serve(bench.folder / "specs/.provision/sandbox", faults, booter=devices) as running:
        yield running


def run(bench: Bench, *words: str, code: int = 0) -> Any:
    """Run a command on the folder in the emulator, and return its document."""
    done = bench.run(*words, "--sandbox", "--output-format", "json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def outcomes(document: Any) -> dict[str, str]:
    return {each["target"]: each["outcome"] for each in document["targets"]}


def instances(running: Sandbox) -> dict[str, str]:
    assert running.store is not None
    found = running.store.snapshot()["instances"]
    return {name.rpartition("/")[2][10:14]: name.split("/")[3] for name in found}


def test_a_fleet_is_listed_made_in_part_finished_and_removed(bench: Bench) -> None:
    devices = Devices()
    devices.broken = "-b-wb-"
    with fleet(bench, devices, "stockout:us-central1-a") as running:
        listed = bench.run("apply", "specs", "--sandbox")
        assert listed.returncode == 2
        assert "error: specs contains 3 targets in 3 specs" in listed.stderr
        assert "a/wb  workbench  $0.19 per hour in us-central1" in listed.stderr
        assert "in total $0.57 per hour for 3 machines" in listed.stderr
        assert "select all of them with --all, or one spec: provision apply specs/a.yaml" in (
            listed.stderr
        )
        assert instances(running) == {}

        made = bench.run("apply", "specs", "--all", "--yes", "--sandbox", "--parallel", "1")
        assert made.returncode == 1, made.stderr
        assert "Cost: $0.57 per hour for 3 machines" in made.stderr
        assert "Plan: 3 to create, 0 to change, 0 to destroy; 3 verifications." in made.stderr
        # Only the first target tries the zone without capacity.
        assert made.stderr.count("a/wb: request: provision-a-wb-") == 2
        assert made.stderr.count("request: provision-b-wb-") == 1
        assert "b/wb: us-central1-a: capacity: not tried: provision-a-wb-" in made.stderr
        assert made.stdout.splitlines()[-1] == "3 targets: 2 simulated, 1 failed"
        assert "b/wb:\nerror: provision-b-wb-" in made.stderr
        assert (
            "1 of 3 targets left: `provision apply --all specs --sandbox` continues with it"
            in made.stderr
        )

        devices.broken, boots = "", len(devices.boots)
        again = run(bench, "apply", "specs", "--all", "--yes")
        assert outcomes(again) == dict.fromkeys(("a/wb", "b/wb", "c/wb"), "simulated")
        assert [each["changed"] for each in again["targets"]] == [False, True, False]
        assert len(devices.boots) == boots + 1, "only the rest is done"

        (bench.folder / "specs/c.yaml").unlink()
        refused = bench.run("destroy", "specs", "--sandbox")
        assert (refused.returncode, "c/wb: instance provision-c-wb-" in refused.stderr) == (2, True)
        declined = bench.run("destroy", "specs", "--all", "--sandbox")
        price = "$0.19 per hour in us-central1"
        assert declined.returncode == 2, declined.stderr
        assert f"  a/wb  {price}\n  b/wb  {price}\nCost while they run: $0.38" in declined.stderr
        gone = run(bench, "destroy", "specs", "--all", "--yes")
        assert len([title for title in gone["removed"] if title.startswith("instance")]) == 3
        assert instances(running) == {}
        assert not (bench.folder / "specs/.provision/sandbox/state/state.json").exists()


@pytest.mark.long
def test_the_other_commands_take_a_folder_as_well(bench: Bench) -> None:
    with fleet(bench, Devices()):
        assert len(run(bench, "apply", "specs", "--all", "--yes")["targets"]) == 3
        assert run(bench, "plan", "specs", "--all")["summary"].startswith("0 to create")
        status = run(bench, "status", "specs")
        assert [each["targets"][0]["condition"] for each in status["specs"]] == ["current"] * 3
        assert outcomes(run(bench, "verify", "specs", "--all"))["c/wb"] == "simulated"
        (bench.folder / "specs/d.yaml").write_text("gpu: none\npython: never\npackages: [numpy]\n")
        words = ("verify", "specs", "--all", "--sandbox", "--output-format", "junit")
        done = bench.run(*words)
        assert done.returncode != 0, done.stderr
        names = [suite.get("name") for suite in ElementTree.fromstring(done.stdout)]
        # The scripted devices answer with one report.
        assert names == [*["sample-trainer.here"] * 3, "specs/d.yaml"]


@contextmanager
def started(bench: Bench, output: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start an apply of the folder whose output goes to a file."""
    with (
        output.open("w") as stream,
        fork_server.Process(
            bench.argv("apply", "specs", "--all", "--yes", "--sandbox", *words),
            cwd=bench.folder,
            env=bench.environment(),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        ) as process,
    ):
        yield process


def wait_for(path: Path, text: str) -> None:
    deadline = time.monotonic() + 60
    while text not in path.read_text():
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.05)


@pytest.mark.long
def test_an_interrupt_stops_between_steps_and_the_next_run_does_the_rest(bench: Bench) -> None:
    devices = Devices()
    devices.silent = "-a-wb-"
    with fleet(bench, devices) as running:
        output = bench.folder / "output.txt"
        with started(bench, output, "--parallel", "1") as process:
            wait_for(output, "a/wb: boot: provision-a-wb-")
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        text = output.read_text()
        assert "interrupted: waiting until 1 running target can stop" in text
        assert "a/wb  interrupted  provision-a-wb-" in text
        assert "b/wb  not started\n" in text
        assert "3 targets: 1 interrupted, 2 not started" in text
        assert "run the command again to continue" in text
        assert set(instances(running)) == {"a-wb"}

        devices.silent, (name,) = "", devices.boots
        devices.start(running.store, name, running.endpoints, Faults())
        assert outcomes(run(bench, "apply", "specs", "--all", "--yes")) == dict.fromkeys(
            ("a/wb", "b/wb", "c/wb"), "simulated"
        )
        assert devices.boots.count(name) == 2, "the instance was not made a second time"


@pytest.mark.long
@pytest.mark.parametrize(
    "moment", ["b/wb: capacity: waiting", "a/wb: upload: 5", "c/wb: boot:", "a/wb: packages:"]
)
def test_after_sigkill_the_next_run_makes_no_second_instance(bench: Bench, moment: str) -> None:
    devices = Devices()
    with fleet(bench, devices) as running:
        output = bench.folder / "output.txt"
        with started(bench, output) as process:
            wait_for(output, moment)
            process.kill()
        again = run(bench, "apply", "specs", "--all", "--yes")
        assert set(outcomes(again).values()) == {"simulated"}
        assert running.store is not None
        assert len(running.store.snapshot()["instances"]) == 3
        state = bench.folder / "specs/.provision/sandbox/state"
        assert (state / "journal.json").read_text() == ""
        assert len(json.loads((state / "state.json").read_text())["resources"]) == 6


@pytest.mark.long
def test_a_second_interrupt_ends_the_process_and_nothing_is_lost(bench: Bench) -> None:
    with fleet(bench, Devices(), "hang", names="a") as running:
        output = bench.folder / "output.txt"
        with started(bench, output) as process:
            wait_for(output, "a/wb: capacity: waiting")
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        journal = bench.folder / "specs/.provision/sandbox/state/journal.json"
        assert "provision-a-wb-" in journal.read_text()
        assert set(instances(running)) == {"a-wb"}


def test_a_broken_spec_is_named_and_nothing_begins(bench: Bench) -> None:
    bench.spec(small_spec("alpha"), "specs/good.yaml")
    bench.spec(small_spec("alpha", extra="colour: red\n"), "specs/bad.yaml")
    bench.spec("services: {web: {image: nginx}}\n", "specs/compose.yaml")
    bench.spec("anything: [1]\n", "specs/values.yaml")
    refused = bench.run("apply", "specs", "--all", "--yes")
    assert refused.returncode == 1
    assert "specs/bad.yaml:\n" in refused.stderr
    assert "colour" in refused.stderr
    assert "nothing was started: 1 error in specs" in refused.stderr
    assert "skipped 2 files without the fields of a spec" in refused.stderr
    assert not (bench.folder / "specs/.provision").exists()
    made = bench.run("apply", "specs", "--all", "--yes", "--keep-going")
    assert made.returncode == 1, made.stderr
    assert "good/local      verified" in made.stdout
    assert "specs/bad.yaml  not applied" in made.stdout
    assert bench.run("destroy", "specs", "--all", "--yes").returncode == 0
    assert not (bench.folder / "specs/.provision").exists()


CLOUD = (
    "targets:\n  wb: {kind: workbench, project: my-project, zones: [us-central1-a], "
    "bucket: gs://my-bucket/p, image: workbench-instances-2603-20261004-2157-rc0, nat: true, "
    "max_lifetime: 8h}\n"
)


def bad_folders(bench: Bench) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield bad input: what it is, the words of a command, and its message."""
    (bench.folder / "empty").mkdir()
    yield "no spec", ("apply", "empty", "--all"), "error: empty contains no specs"
    yield "no folder", ("apply", "missing", "--all"), "there is no such file or folder"
    bench.spec("anything: [1]\n", "other/values.yaml")
    yield "other files", ("apply", "other", "--all"), "1 YAML file in it do"
    bench.spec(small_spec("alpha"), "twice/a.yaml")
    bench.spec(small_spec("alpha"), "twice/a.yml")
    yield "one name", ("apply", "twice", "--all"), "twice/a.yml would share a lock"
    bench.spec(small_spec("alpha"), "linked/a.yaml")
    (bench.folder / "linked/b.yaml").symlink_to("a.yaml")
    yield "a link", ("plan", "linked"), "linked/b.yaml and linked/a.yaml have the same name"
    for number in ("0", "1000", "many"):
        words = ("apply", "linked", "--all", "--parallel", number)
        yield number, words, f"'{number}' is not a whole number from 1 to 64"
    bench.spec(small_spec("alpha"))
    words = ("apply", "spec.yaml", "--keep-going")
    yield (
        "keep going",
        words,
        "--keep-going works only with a folder\n  why: spec.yaml is not a folder",
    )
    yield "a target", ("apply", "linked", "--target", "x"), "--target applies to a single spec"
    yield "a plan", ("apply", "linked", "--plan", "p.json"), "--plan applies to a single spec"
    yield "an output", ("plan", "linked", "--out", "p.json"), "--out applies to a single spec"
    bench.spec(small_spec("alpha", extra=CLOUD), "nested/x/a.yaml")
    bench.spec(small_spec("alpha", extra=CLOUD), "nested/y/b.yaml")
    words = ("apply", "nested", "--all", "--sandbox")
    yield "sandboxes", words, "the specs in nested are in several folders, but a sandbox belongs"
    yield "nothing", ("verify", "nested"), "error: nested contains 2 targets in 2 specs"


def test_bad_input_has_a_message_each(bench: Bench, subtests: pytest.Subtests) -> None:
    for what, words, message in bad_folders(bench):
        with subtests.test(what):
            done = bench.run(*words)
            assert (done.returncode, message in done.stderr) == (2, True), done.stderr
            assert "Traceback" not in done.stderr


class Silent:
    """Watches a run and shows nothing."""

    def begin(self, jobs: Any) -> None: ...
    def change(self, label: str, state: Any) -> None: ...
    def progress(self, label: str, text: str) -> None: ...
    def interrupt(self) -> None: ...


def test_two_targets_with_one_instance_name_are_both_refused(bench: Bench) -> None:
    with fleet(bench, Devices(), names="a") as running:
        bench.spec(PRICED, "specs/more/a.yaml")
        system = RealSystem(bench.environment(), endpoints=running.endpoints)

        def load(path: Path) -> Any:
            return build_sandbox_spec(load_spec(path, system), system)

        members = load_fleet(bench.folder / "specs", load, system)
        runner = ParallelRun(2, pytest.fail)
        plan = plan_fleet(members, ApplyOptions(), system, runner, Silent())
        assert (plan.planned, sorted(plan.failed)) == ((), ["a/wb", "more/a/wb"])
        assert "a/wb and more/a/wb would have the same name" in plan.failed["a/wb"].what


BOTH = "targets:\n  one: {kind: local}\n  two: {kind: local}\n"


@pytest.mark.long
def test_targets_of_one_spec_keep_their_reports(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra=BOTH))
    made = bench.run("apply", "spec.yaml", "--all", "--yes")
    assert made.returncode == 0, made.stderr
    assert made.stdout.count("VERIFIED") == 2
    assert "one: + environment" in made.stderr
    gone = bench.run("destroy", "spec.yaml", "--all", "--yes")
    assert (gone.returncode, "spec/one  removed  " in gone.stdout) == (0, True), gone.stdout
    assert not bench.own.exists()


@pytest.mark.long
def test_a_terminal_has_one_table_and_one_question(bench: Bench) -> None:
    for name in ("one", "two"):
        bench.spec(small_spec("alpha"), f"specs/{name}.yaml")
    terminal = at_terminal(bench, "apply", "specs", "--all")
    terminal.expect_exact("Apply these changes to 2 targets? [y/N] ")
    assert "Plan: 2 to create, 0 to change, 0 to destroy; 2 verifications." in plain(
        terminal.before
    )
    terminal.send("y\r")
    code, shown = ended(terminal)
    assert code == 0, shown
    assert re.search(r"one/local +\d+s +\+ environment", plain(shown))
    assert "1 of 2 ended" in shown
    assert "[y/N]" not in shown
    assert "2 targets: 2 verified" in shown


def plain(text: str) -> str:
    """Return what a terminal shows, without its codes."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
