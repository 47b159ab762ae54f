"""Instances from plan to report and away again, against the look-alike of Google's services, with
devices that answer by script.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.adapters.google.report_polling import (
    DeviceFailed,
    PollingClock,
    ReportTimeout,
    ReportUnavailable,
)
from provision.commands.apply import ApplyOptions, ApplyResult, apply
from provision.commands.attach import attach
from provision.commands.destroy import destroy
from provision.commands.open import describe_access
from provision.commands.orphans import list_orphans
from provision.commands.plan import plan
from provision.commands.shared.load import load_spec
from provision.commands.shared.sandbox_spec import build_sandbox_spec
from provision.commands.status import status
from provision.commands.verify import verify
from provision.effects.google import AwaitReport, CreateInstance, StopInstance
from provision.effects.system import Effect, ProgressCallback
from provision.errors import ExternalError, ProvisionError, Refused
from provision.plan import Operation
from provision.sandbox.booter import Booter
from provision.sandbox.faults import Faults
from provision.sandbox.metadata_server import instance_attributes
from provision.sandbox.serve import serve
from provision.sandbox.store import Store
from provision.state_store import LocalStore
from tests.rig import Bench
from tests.views import builders

pytest.importorskip("google.cloud.notebooks_v2")

SPEC = """\
gpu: none
python: "3.11"
packages: [{packages}]
targets:
  wb:
    kind: workbench
    project: my-project
    zones: [us-central1-a, us-central1-b]
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    nat: true
    max_lifetime: 8h
    on_failure: {on_failure}
"""


@dataclass
class Device(Booter):
    """Answers for an instance as soon as it boots. `verdict` None: it never answers; "error": its
    program fails; `lies` changes what it sends.
    """

    verdict: str | None = "simulated"
    lies: str = ""
    boots: list[str] = field(default_factory=list)

    def start(self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults) -> None:
        self.boots.append(name)
        run = json.loads(instance_attributes(store, name)["provision-run"])
        bucket, _, place = run["document"].removeprefix("gs://").partition("/")
        held = store.object(bucket, place)
        assert held is not None
        nonce, folder = run["nonce"], place.rpartition("/")[0]
        if self.verdict is None:
            return
        if self.verdict == "error":
            store.put_object(bucket, f"{folder}/log.txt", b"line\nuv: \x1b[31mno such file\n")
            store.set_guest_attribute(
                name,
                "provision",
                "status",
                json.dumps(
                    {"n": nonce, "s": "error", "p": "packages", "e": "cannot install the packages"}
                ),
            )
            return
        document: dict[str, Any] = builders.sample(
            self.verdict, [builders.check("H01", "host", "memory")]
        )
        document["subject"]["nonce"] = "f" * 32 if self.lies == "nonce" else nonce
        report = json.dumps(document).encode()
        told = hashlib.sha256(b"other" if self.lies == "sha256" else report).hexdigest()
        store.put_object(bucket, f"{folder}/report.json", report)
        store.set_guest_attribute(
            name,
            "provision",
            "status",
            json.dumps({"n": nonce, "s": "running", "p": "packages", "i": 1, "of": 2}),
        )
        store.set_guest_attribute(
            name,
            "provision",
            "result",
            json.dumps({"n": nonce, "v": self.verdict, "exit": 0, "sha256": told}),
        )

    def close(self) -> None:
        return

    def stop(self, name: str) -> None:
        return


class CutShort(BaseException):
    """As if the process were killed."""


class Failing(RealSystem):
    """A World that is cut short before or after the first effect of a kind."""

    def __init__(self, *words: Any, at: type, after: bool, **more: Any) -> None:
        super().__init__(*words, **more)
        self.at, self.after = at, after

    def perform(self, effect: Effect, tell: ProgressCallback) -> None:
        if isinstance(effect, self.at) and not self.after:
            raise CutShort
        super().perform(effect, tell)
        if isinstance(effect, self.at):
            raise CutShort


@dataclass
class Place:
    """A project with a sandbox at work."""

    bench: Bench
    path: Path
    endpoints: Mapping[str, str]
    store: Store
    lines: list[str] = field(default_factory=list)

    clock: PollingClock | None = None

    @property
    def world(self) -> RealSystem:
        return RealSystem(self.bench.environment(), endpoints=self.endpoints, clock=self.clock)

    def write(self, packages: str = "alpha", on_failure: str = "stop") -> None:
        self.path.write_text(SPEC.format(packages=packages, on_failure=on_failure))

    def loaded(self, world: RealSystem | None = None) -> Any:
        return build_sandbox_spec(load_spec(self.path, self.world), world or self.world)

    def apply(self, world: RealSystem | None = None, **wishes: Any) -> ApplyResult:
        return apply(
            self.loaded(),
            ("wb",),
            ApplyOptions(**wishes),
            world or self.world,
            lambda *_: None,
            self.lines.append,
        )

    def destroy(self) -> list[str]:
        gone = destroy(self.path, (), self.world, lambda _: None, self.lines.append, sandbox=True)
        return [action.part for action in gone]

    def verbs(self) -> list[Operation]:
        return [
            action.operation
            for action in plan(
                self.loaded(), ("wb",), self.world, self.lines.append
            ).target_plans.plan.actions
        ]

    def instances(self) -> dict[str, str]:
        return {
            one["name"].split("/")[3]: one["state"]
            for one in self.world.cloud().instances("my-project")
        }

    def boot(self) -> str:
        (instance,) = self.world.cloud().instances("my-project")
        return str(instance["name"])

    def ledger_folder(self) -> Path:
        return Path(self.loaded().folder)

    def ledger(self) -> Any:
        return LocalStore(self.ledger_folder(), self.world).load_ledger()


@contextmanager
def at(bench: Bench, device: Device, *faults: str) -> Iterator[Place]:
    path = bench.spec("")
    with serve(bench.folder / ".provision/sandbox", faults, booter=device) as running:
        assert running.store is not None
        place = Place(bench, path, running.endpoints, running.store)
        place.write()
        yield place


def test_an_instance_is_made_verified_kept_changed_and_removed(bench: Bench) -> None:
    device = Device()
    with at(bench, device) as place:
        applied = place.apply()
        assert (applied.exit_code, applied.results[0].report.verdict) == (0, "simulated")
        assert "packages: 1 of 2" in place.lines
        assert not [
            line for line in place.lines if "us-central1-a: " in line or "zones tried" in line
        ], "no zone failed"
        assert place.verbs() == [Operation.KEEP]
        assert place.apply().results[0].fresh is False
        assert status(place.loaded(), place.ledger(), place.world).exit_code == 0
        assert describe_access(place.loaded(), ("wb",), place.world)[0].ssh.startswith(
            "gcloud compute ssh provision-spec-wb-"
        )
        place.write("alpha, gamma")
        assert place.verbs() == [Operation.CHANGE]
        assert (place.apply().exit_code, place.verbs(), len(device.boots)) == (
            0,
            [Operation.KEEP],
            2,
        )
        assert list_orphans([place.loaded()], place.world).orphans == ()
        assert place.destroy() == ["instance", "verification"]
        assert (place.instances(), place.store.objects("my-bucket")) == ({}, ())
        assert place.destroy() == []


def test_what_is_real_is_never_touched_by_a_sandbox(bench: Bench) -> None:
    with at(bench, Device()) as place:
        place.apply()
    assert not (bench.folder / "spec.lock").exists()
    assert sorted(path.name for path in (bench.folder / ".provision").iterdir()) == ["sandbox"]
    assert bench.run("status", "spec.yaml").returncode == 1


def test_verify_runs_again_under_a_new_nonce(bench: Bench) -> None:
    device = Device()
    with at(bench, device) as place:
        place.apply()
        first = place.ledger().state.resource("spec/wb", "instance")["nonce"]
        (done,) = verify(place.loaded(), ("wb",), place.world, place.lines.append)
        assert (done.exit_code, len(device.boots)) == (0, 2)
        assert place.ledger().state.resource("spec/wb", "instance")["nonce"] != first
        with pytest.raises(Refused, match="individual checks"):
            verify(place.loaded(), ("wb",), place.world, place.lines.append, only=("P02",))


def test_a_detached_apply_is_attached_later(bench: Bench) -> None:
    with at(bench, Device()) as place:
        applied = place.apply(detach=True)
        assert (applied.exit_code, applied.results, len(applied.pending)) == (3, (), 1)
        (done,) = attach(place.loaded(), ("wb",), place.world, place.lines.append)
        assert done.exit_code == 0
        assert place.apply().results[0].fresh is False


@pytest.mark.parametrize("after", [False, True])
def test_a_run_cut_short_at_the_creation_goes_on_with_the_same_instance(
    bench: Bench, after: bool
) -> None:
    with at(bench, Device()) as place:
        cut = Failing(
            place.bench.environment(), endpoints=place.endpoints, at=CreateInstance, after=after
        )
        with pytest.raises(CutShort):
            place.apply(cut)
        assert len(place.ledger().intents[0].names) == 2
        made = {one["id"] for one in place.world.cloud().instances("my-project")}
        assert len(made) == int(after)
        assert list_orphans([place.loaded()], place.world).orphans == ()
        assert place.apply().exit_code == 0
        assert len(place.instances()) == 1
        assert not made or made == {
            one["id"] for one in place.world.cloud().instances("my-project")
        }
        assert place.ledger().intents == ()


def test_a_run_cut_short_while_waiting_waits_on(bench: Bench) -> None:
    device = Device()
    with at(bench, device) as place:
        with pytest.raises(CutShort):
            place.apply(
                Failing(
                    place.bench.environment(),
                    endpoints=place.endpoints,
                    at=AwaitReport,
                    after=False,
                )
            )
        assert place.apply().exit_code == 0
        assert len(device.boots) == 1


def test_destroy_after_a_run_cut_short_leaves_nothing(bench: Bench) -> None:
    with at(bench, Device()) as place:
        with pytest.raises(CutShort):
            place.apply(
                Failing(
                    place.bench.environment(),
                    endpoints=place.endpoints,
                    at=CreateInstance,
                    after=True,
                )
            )
        assert "instance" in place.destroy()
        assert place.instances() == {}


def test_the_next_zone_is_taken_and_the_reason_told(bench: Bench) -> None:
    with at(bench, Device(), "stockout:us-central1-a") as place:
        assert place.apply().exit_code == 0
        assert list(place.instances()) == ["us-central1-b"]
        assert any("us-central1-a: capacity" in line for line in place.lines)
        table = next(line for line in place.lines if line.startswith("zones tried:\n"))
        assert [line.split()[:2] for line in table.splitlines()[1:]] == [
            ["us-central1-a", "capacity"],
            ["us-central1-b", "created"],
        ]


def test_no_zone_at_all_leaves_nothing_behind(bench: Bench) -> None:
    with at(bench, Device(), "stockout:us-central1-a", "stockout:us-central1-b") as place:
        with pytest.raises(ExternalError) as caught:
            place.apply()
        assert "nothing was left running" in caught.value.hint
        assert (place.instances(), place.ledger().intents) == ({}, ())


@pytest.mark.parametrize(
    ("wish", "left"), [("stop", ["STOPPED"]), ("keep", ["ACTIVE"]), ("delete", [])]
)
def test_what_happens_to_an_instance_that_fails(bench: Bench, wish: str, left: list[str]) -> None:
    with at(bench, Device("failed")) as place:
        place.write(on_failure=wish)
        applied = place.apply()
        assert (applied.exit_code, bool(applied.results[0].on_failure_note)) == (1, True)
        assert list(place.instances().values()) == left
        place.destroy()
        assert place.instances() == {}


def test_a_program_that_fails_is_told_with_the_end_of_its_log(bench: Bench) -> None:
    with at(bench, Device("error")) as place:
        with pytest.raises(DeviceFailed) as caught:
            place.apply()
        assert caught.value.exit_code == 1
        assert "in phase packages: cannot install the packages" in caught.value.why
        assert "\x1b" not in caught.value.why
        assert "is stopped" in caught.value.hint
        assert list(place.instances().values()) == ["STOPPED"]


@pytest.mark.long(after=2)
@pytest.mark.parametrize("wish", ["stop", "keep"])
@pytest.mark.parametrize("first", ["error", "failed"])
def test_after_a_run_without_a_proof_the_next_apply_begins_another_once(
    bench: Bench, first: str, wish: str
) -> None:
    device = Device(first)
    with at(bench, device) as place:
        place.write(on_failure=wish)
        with contextlib.suppress(DeviceFailed):
            assert place.apply().exit_code == 1
        nonce = place.ledger().state.resource("spec/wb", "instance")["nonce"]
        if (first, wish) == ("failed", "keep"):  # its verdict stands, as on this machine
            assert place.verbs() == [Operation.KEEP]
            return
        device.verdict = "simulated"
        (action,) = plan(
            place.loaded(), ("wb",), place.world, place.lines.append
        ).target_plans.plan.actions
        why = "in phase packages: cannot install the packages" if first == "error" else "failed"
        assert action.reason.startswith(
            f"its last run did not verify it ({why}), so it runs again; it is "
        )
        assert place.apply().exit_code == 0
        record = place.ledger().state.resource("spec/wb", "instance")
        assert (len(device.boots), record["nonce"] != nonce, "ended" in record) == (2, True, False)
        assert place.verbs() == [Operation.KEEP]


class Fast:
    """A clock whose minutes pass at once; `then` happens at the first sleep."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.time, self.then = 0.0, then

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.then()

    def clock(self) -> PollingClock:
        return PollingClock(now=lambda: self.time, sleep=self.sleep, wall_time=lambda: self.time)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("wish", "left"),
    [("stop", "is stopped"), ("keep", "keeps running, in the sandbox"), ("delete", "is deleted")],
)
def test_a_silent_device_is_given_up_with_what_is_left_and_the_next_command(
    bench: Bench, wish: str, left: str
) -> None:
    with at(bench, Device(None)) as place:
        place.write(on_failure=wish)
        place.clock = Fast().clock()
        with pytest.raises(ReportTimeout) as caught:
            place.apply()
        assert caught.value.why.startswith("the device sent no status within 20 minutes")
        assert left in caught.value.hint
        command = "attach" if wish == "keep" else "apply"
        assert f"provision {command} {place.path} --sandbox" in caught.value.hint
        assert "gcloud" not in f"{caught.value.why}{caught.value.hint}"
        assert sum(line.startswith("still boot: no status") for line in place.lines) == 19


def test_a_report_that_comes_late_is_attached(bench: Bench) -> None:
    device = Device(None)
    with at(bench, device) as place:
        place.write(on_failure="keep")
        place.clock = Fast().clock()
        with pytest.raises(ReportTimeout):
            place.apply()
        device.verdict = "simulated"
        device.start(place.store, place.boot(), place.endpoints, Faults())
        (done,) = attach(place.loaded(), ("wb",), place.world, place.lines.append)
        assert (done.exit_code, len(device.boots)) == (0, 2)
        assert place.verbs() == [Operation.KEEP]
        assert "ended" not in place.ledger().state.resource("spec/wb", "instance")


def test_the_log_comes_home_before_what_holds_it_is_deleted(bench: Bench) -> None:
    with at(bench, Device("error")) as place:
        place.write(on_failure="delete")
        with pytest.raises(DeviceFailed) as caught:
            place.apply()
        log = bench.folder / ".provision/sandbox/state/reports/spec.wb/log.txt"
        assert log.read_text() == "line\nuv: \\x1b[31mno such file\n"
        assert f"full log: {log}" in caught.value.hint
        assert place.store.objects("my-bucket") == ()


def test_an_instance_that_cannot_be_stopped_is_told_of(bench: Bench) -> None:
    class Unstoppable(RealSystem):
        def perform(self, effect: Effect, tell: ProgressCallback) -> None:
            if isinstance(effect, StopInstance):
                raise ExternalError("a permission is missing: notebooks.instances.stop", why="403")
            super().perform(effect, tell)

    with at(bench, Device("error")) as place:
        with pytest.raises(DeviceFailed) as caught:
            place.apply(Unstoppable(place.bench.environment(), endpoints=place.endpoints))
        assert "a permission is missing" in caught.value.hint
        assert "keeps running" in caught.value.hint


@pytest.mark.parametrize(
    ("lies", "words"),
    [
        ("nonce", "belongs to a different run"),
        ("sha256", "not the one that the device wrote"),
    ],
)
def test_a_forged_report_is_not_accepted(bench: Bench, lies: str, words: str) -> None:
    with at(bench, Device(lies=lies)) as place:
        with pytest.raises(ReportUnavailable, match=words) as caught:
            place.apply()
        assert caught.value.exit_code == 3
        assert not list((bench.folder / ".provision/sandbox/state/reports").rglob("report.json"))


def test_an_instance_that_no_state_knows_is_an_orphan(bench: Bench) -> None:
    with at(bench, Device()) as place:
        place.apply()
        (place.loaded().folder / "state.json").unlink()
        (found,) = list_orphans([place.loaded()], place.world).orphans
        assert (found.spec, found.target) == ("spec", "wb")
        assert found.delete.startswith("gcloud workbench instances delete provision-spec-wb-")
        with pytest.raises(Refused, match="cannot be created as declared") as caught:
            place.apply()
        assert "another state created it" in caught.value.why
        assert "spec.yaml --sandbox --adopt`" in caught.value.why
        assert (
            place.apply(adopt=True).exit_code,
            list_orphans([place.loaded()], place.world).orphans,
        ) == (0, ())


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "fault", ["permission", "api-disabled", "act-as", "create-internal", "quota-global"]
)
def test_what_google_refuses_is_told_and_leaves_nothing(bench: Bench, fault: str) -> None:
    with at(bench, Device(), fault) as place:
        with pytest.raises(ProvisionError) as caught:
            place.apply()
        assert caught.value.what
        assert caught.value.hint
    with at(bench, Device()) as place:
        assert place.instances() == {}


class Cut(RealSystem):
    """A World that loses the network while it waits."""

    def perform(self, effect: Effect, tell: ProgressCallback) -> None:
        if isinstance(effect, AwaitReport):
            raise ExternalError("Google Cloud cannot be reached", hint="check the network")
        super().perform(effect, tell)


def test_a_lost_network_says_nothing_of_the_device_which_runs_on(bench: Bench) -> None:
    with at(bench, Device()) as place:
        with pytest.raises(ExternalError, match="cannot be reached"):
            place.apply(Cut(place.bench.environment(), endpoints=place.endpoints))
        assert list(place.instances().values()) == ["ACTIVE"]
        (done,) = attach(place.loaded(), ("wb",), place.world, place.lines.append)
        assert done.exit_code == 0


def test_a_secret_of_the_caller_is_in_no_file_and_no_line(bench: Bench) -> None:
    canary = "hf_" + "A1b2C3d4" * 5
    with at(bench, Device()) as place:
        place.path.write_text(
            place.path.read_text()
            + "secrets: {HF_TOKEN: {secret: projects/my-project/secrets/hf/versions/1}}\n"
        )
        place.store.set_secret("projects/my-project/secrets/hf", canary.encode())
        place.apply(RealSystem(place.bench.environment(HF_TOKEN=canary), endpoints=place.endpoints))
        place.destroy()
    kept = [
        path
        for path in (bench.folder / ".provision").rglob("*")
        if path.is_file() and path.name != "store.json"
    ]
    assert kept
    assert not any(canary.encode() in path.read_bytes() for path in kept)
    assert canary not in "\n".join(place.lines)
