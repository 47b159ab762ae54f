"""Runtime templates from plan to removal, against the emulated Vertex AI."""

from __future__ import annotations

import contextlib
import copy
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.adapters.google.client import GoogleClient
from provision.adapters.google.endpoints import Endpoints
from provision.commands.apply import ApplyOptions, ApplyResult, apply
from provision.commands.destroy import destroy
from provision.commands.orphans import list_orphans
from provision.commands.plan import plan
from provision.commands.shared.load import load_spec
from provision.commands.shared.sandbox_spec import build_sandbox_spec
from provision.commands.status import status
from provision.effects.system import Effect, ProgressCallback
from provision.effects.vertex import (
    AwaitExecution,
    CreateTemplate,
    DeleteExecution,
    DeleteTemplate,
    StartExecution,
    UpdateTemplate,
)
from provision.errors import ProvisionError, Refused
from provision.plan import Action, Operation
from provision.sandbox.serve import serve
from provision.sandbox.store import Store
from provision.state_store import LocalStore
from tests.rig import Bench
from tests.support import facts_with_prices

pytest.importorskip("google.cloud.notebooks_v2")

SPEC = """\
gpu: none
python: "3.11"
packages: [alpha]
env: {MODE: a}
targets:
  team:
    kind: colab-enterprise
    project: my-project
    region: us-central1
    machine_type: e2-standard-8
"""
REGION = "projects/my-project/locations/us-central1"
VERTEX = (
    CreateTemplate,
    UpdateTemplate,
    DeleteTemplate,
    StartExecution,
    AwaitExecution,
    DeleteExecution,
)


class Killed(BaseException):
    """As if the process were killed."""


class MortalSystem(RealSystem):
    """A system that is killed before or after the effect on Vertex AI with a number."""

    def __init__(
        self, *args: Any, at: int = 0, after: bool = False, way: str = "grpc", **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.at, self.after, self.performed = at, after, 0
        if way == "rest":
            endpoints = Endpoints.from_addresses(options["endpoints"])
            self._services._google = GoogleClient(endpoints, only_rest=True)

    def perform(self, effect: Effect, progress: ProgressCallback) -> None:
        dies = False
        if isinstance(effect, VERTEX):
            self.performed += 1
            dies = self.performed == self.at
        if dies and not self.after:
            raise Killed
        super().perform(effect, progress)
        if dies:
            raise Killed


@dataclass
class Team:
    """A project next to a running sandbox, and the way to Vertex AI."""

    bench: Bench
    endpoints: dict[str, str]
    store: Store
    path: Path
    way: str = "grpc"
    lines: list[str] = field(default_factory=list)

    def system(self, at: int = 0, *, after: bool = False) -> MortalSystem:
        environment = self.bench.environment()
        options = {"endpoints": self.endpoints, "way": self.way}
        return MortalSystem(environment, at=at, after=after, **options)

    def loaded(self) -> Any:
        return build_sandbox_spec(load_spec(self.path, self.system()), self.system())

    def edit(self, old: str, new: str) -> None:
        text = self.path.read_text()
        assert old in text
        self.path.write_text(text.replace(old, new))

    def apply(self, system: RealSystem | None = None, **options: Any) -> ApplyResult:
        return apply(
            self.loaded(),
            ("team",),
            ApplyOptions(**options),
            system or self.system(),
            lambda *_: None,
            self.lines.append,
        )

    def actions(self, **options: Any) -> tuple[Action, ...]:
        result = plan(self.loaded(), ("team",), self.system(), self.lines.append, **options)
        return result.target_plans.plan.actions

    def destroy(self, system: RealSystem | None = None) -> list[str]:
        system = system or self.system()
        # A kernel that was started a moment ago may still have the lock file open.
        wait_s = 10.0
        gone = destroy(
            *(self.path, (), system, lambda _: None, self.lines.append),
            sandbox=True,
            lock_wait_s=wait_s,
        )
        return [action.part for action in gone]

    def templates(self) -> dict[str, Any]:
        """The templates in the store, by full name."""
        return dict(self.store.snapshot()["templates"])

    def template(self) -> dict[str, Any]:
        (template,) = self.templates().values()
        return dict(template)

    def change_template(self, **values: Any) -> None:
        """Change the template as somebody else."""
        with self.store.edit_data() as data:
            (template,) = data["templates"].values()
            template.update(values)

    def orphans(self) -> list[str]:
        return [orphan.name for orphan in list_orphans([self.loaded()], self.system()).orphans]


@contextmanager
def team_at(bench: Bench, *faults: str, folder: str = ".provision/sandbox") -> Iterator[Team]:
    path = bench.spec(SPEC)
    with serve(bench.folder / folder, faults, boot=False) as running:
        assert running.store is not None
        yield Team(bench, running.endpoints, running.store, path)


@pytest.fixture
def team(bench: Bench) -> Iterator[Team]:
    with team_at(bench) as running:
        yield running


def test_a_template_is_made_kept_and_removed(team: Team) -> None:
    (first,) = team.actions()
    assert first.operation is Operation.CREATE
    assert "machine: e2-standard-8, in us-central1" in first.notes
    done = team.apply()
    assert done.exit_code == 3, "a template is not verified"
    resource = done.pending[0].summary.resource
    assert resource is not None
    assert (resource.kind, resource.location) == ("runtime template", "us-central1")
    template = team.template()
    assert template["softwareConfig"] == {
        "env": [{"name": "MODE", "value": "a"}],
        "colabImage": {"releaseName": "py311"},
    }
    assert template["eucConfig"] == {"eucDisabled": True}
    assert template["labels"]["provision-target"] == "team"
    assert [action.operation for action in team.actions()] == [Operation.KEEP]
    assert team.orphans() == []
    ledger = LocalStore(Path(team.loaded().folder), team.system()).load_ledger()
    (row,) = status(team.loaded(), ledger, team.system()).targets
    assert (row.condition, row.verdict) == ("current", "")
    assert ledger.state.accounts == (), "no Workbench instances are searched in its project"
    assert team.destroy() == ["template"]
    assert team.templates() == {}
    assert team.destroy() == []


def test_an_existing_machine_that_fits_stays_with_auto(team: Team, tmp_path: Path) -> None:
    team.edit("machine_type: e2-standard-8", "machine_type: auto")
    team.apply()
    chosen = team.template()["machineSpec"]["machineType"]
    loaded = team.loaded()
    with facts_with_prices(tmp_path, cheap=("e2-standard-8",)):
        plans = plan(loaded, ("team",), team.system(), team.lines.append).target_plans
    (kept,) = plans.plan.actions
    assert (kept.operation, kept.effects) == (Operation.KEEP, ())
    assert f"machine: {chosen}, in us-central1" in kept.notes
    (note,) = [note for note in kept.notes if note.startswith("cheaper: ")]
    assert note.startswith("cheaper: e2-standard-8 fits too and costs $0.")
    assert note.endswith("per hour less; `machine_type: e2-standard-8` changes to it")
    assert not any("cheaper" in note for note in team.actions()[0].notes)
    team.edit("gpu: none", "gpu: none\nrequires: {ram: 50GiB}")
    (action,) = team.actions()
    assert action.reason == "machine_type of a template cannot be changed in place"


CHANGES: list[tuple[str, str, str]] = [
    ("{MODE: a}", "{MODE: b, MORE: '1'}", "env"),
    ("packages: [alpha]", "name: other\npackages: [alpha]", "name"),
]
REPLACEMENTS: list[tuple[str, str, str]] = [
    ("e2-standard-8", "e2-standard-4", "machine_type"),
    ("e2-standard-8", "e2-standard-8\n    data_disk: {size: 200GiB}", "data_disk.size"),
    ("e2-standard-8", "e2-standard-8\n    data_disk: {type: ssd}", "data_disk.type"),
    ("e2-standard-8", "e2-standard-8\n    idle_shutdown: 1h", "idle_shutdown"),
    ("e2-standard-8", "e2-standard-8\n    idle_shutdown: null", "idle_shutdown"),
    ("e2-standard-8", "e2-standard-8\n    secure_boot: true", "secure_boot"),
    ("e2-standard-8", "e2-standard-8\n    internet: false", "internet"),
    ("e2-standard-8", "e2-standard-8\n    network: main", "network"),
    ("e2-standard-8", "e2-standard-8\n    end_user_credentials: true", "end_user_credentials"),
    (
        "e2-standard-8",
        "e2-standard-8\n    reservation: projects/p/zones/us-central1-a/reservations/r",
        "reservation",
    ),
]


@pytest.mark.parametrize(("old", "new", "field_name"), CHANGES)
def test_a_field_that_is_changed_in_place(team: Team, old: str, new: str, field_name: str) -> None:
    team.apply()
    created = team.template()["createTime"]
    team.edit(old, new)
    (action,) = team.actions()
    assert (action.operation, action.reason) == (Operation.CHANGE, f"{field_name} changed")
    team.apply()
    assert team.template()["createTime"] == created
    assert [action.operation for action in team.actions()] == [Operation.KEEP]


@pytest.mark.long(after=4)
@pytest.mark.parametrize(("old", "new", "field_name"), REPLACEMENTS)
def test_a_field_that_needs_a_new_template(team: Team, old: str, new: str, field_name: str) -> None:
    team.apply()
    created = team.template()["createTime"]
    team.edit(old, new)
    (action,) = team.actions()
    assert action.operation is Operation.REPLACE
    assert action.reason == f"{field_name} of a template cannot be changed in place"
    team.apply()
    assert team.template()["createTime"] != created
    assert [action.operation for action in team.actions()] == [Operation.KEEP]
    team.edit(new, old)
    assert [action.operation for action in team.actions()] == [Operation.REPLACE]


def test_another_region_is_another_template(team: Team) -> None:
    team.apply()
    team.edit("us-central1", "europe-west4")
    (action,) = team.actions()
    assert action.operation is Operation.REPLACE
    assert "region: us-central1 -> europe-west4" in action.notes
    team.apply()
    assert [name.split("/")[3] for name in team.templates()] == ["europe-west4"]
    assert [action.operation for action in team.actions()] == [Operation.KEEP]


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("changed", "operation"),
    [
        ({"displayName": "renamed by hand"}, Operation.CHANGE),
        ({"softwareConfig": {}}, Operation.CHANGE),
        ({"machineSpec": {"machineType": "e2-standard-2"}}, Operation.REPLACE),
        ({"description": "a note of somebody"}, Operation.KEEP),
        ({"networkTags": ["x"]}, Operation.KEEP),
    ],
)
def test_what_somebody_else_changed(
    team: Team, changed: dict[str, Any], operation: Operation
) -> None:
    team.apply()
    team.change_template(**changed)
    assert [action.operation for action in team.actions()] == [operation]
    team.apply()
    assert [action.operation for action in team.actions()] == [Operation.KEEP]


def test_a_template_that_somebody_deleted_is_made_again(team: Team) -> None:
    team.apply()
    with team.store.edit_data() as data:
        data["templates"].clear()
    (action,) = team.actions()
    assert (action.operation, action.reason) == (
        Operation.CREATE,
        "it was deleted outside of provision",
    )
    team.apply()
    assert len(team.templates()) == 1


def test_a_template_of_another_state_is_refused_listed_and_adopted(team: Team) -> None:
    team.apply()
    state = Path(team.loaded().folder) / "state.json"
    state.unlink()
    assert team.orphans() == list(team.templates())
    with pytest.raises(Refused, match="cannot be created as declared") as caught:
        team.apply()
    assert "another state created it" in caught.value.why
    assert "--adopt" in caught.value.why
    (action,) = team.actions(adopt=True)
    assert "adopted from another state" in action.reason
    team.apply(adopt=True)
    assert team.orphans() == []
    assert [action.operation for action in team.actions()] == [Operation.KEEP]


def test_a_template_of_somebody_else_is_never_touched(team: Team) -> None:
    team.apply()
    team.change_template(labels={"owner": "somebody"})
    before = copy.deepcopy(team.templates())
    for adopt in (False, True):
        with pytest.raises(Refused) as caught:
            team.apply(adopt=adopt)
        assert "provision did not create it" in caught.value.why
    assert team.destroy() == ["template"], "the record is dropped"
    assert team.templates() == before


@pytest.mark.long(after=10)
@pytest.mark.parametrize("way", ["grpc", "rest"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("change", ["create", "patch", "replace", "move", "destroy"])
def test_a_run_that_was_killed_is_continued(
    team: Team, change: str, number: int, after: bool, way: str
) -> None:
    team.way = way
    if change != "create":
        team.apply()
    match change:
        case "patch":
            team.edit("MODE: a", "MODE: b")
        case "replace":
            team.edit("e2-standard-8", "e2-standard-4")
        case "move":
            team.edit("us-central1", "europe-west4")
    system = team.system(number, after=after)
    try:
        team.destroy(system) if change == "destroy" else team.apply(system)
    except Killed:
        assert team.orphans() == [], "state or journal know it"
    else:
        assert number > system.performed
    assert team.apply().exit_code == 3
    assert len(team.templates()) == 1
    assert [action.operation for action in team.actions()] == [Operation.KEEP]
    assert team.orphans() == []
    team.destroy()
    assert team.templates() == {}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_move_that_was_killed_and_taken_back_leaves_one_template(team: Team, after: bool) -> None:
    team.apply()
    team.edit("us-central1", "europe-west4")
    with pytest.raises(Killed):
        team.apply(team.system(1, after=after))
    team.edit("europe-west4", "us-central1")
    team.apply()
    team.apply()
    assert [name.split("/")[3] for name in team.templates()] == ["us-central1"]
    assert [action.operation for action in team.actions()] == [Operation.KEEP]


PROVEN = (
    SPEC
    + """\
    isolation: venv
    bucket: gs://my-bucket/provision
    service_account: trainer@my-project.iam.gserviceaccount.com
"""
)


@pytest.fixture
def proven(team: Team) -> Team:
    """A target whose notebook runs as an execution job."""
    team.path.write_text(PROVEN)
    return team


def jobs(team: Team) -> dict[str, str]:
    """The states of the jobs in the store, by short name."""
    found = team.store.snapshot()["executions"]
    return {name.rpartition("/")[2]: body["jobState"] for name, body in found.items()}


def needed(team: Team) -> tuple[bool, str]:
    result = plan(team.loaded(), ("team",), team.system(), team.lines.append)
    check = result.target_plans.plan.verifications["team"]
    return check.needed, check.reason


@pytest.mark.long
def test_the_notebook_verifies_the_template_in_a_real_kernel(proven: Team) -> None:
    done = proven.apply()
    (result,) = done.results
    assert (done.exit_code, result.report.verdict) == (0, "simulated")
    assert list(jobs(proven).values()) == ["JOB_STATE_SUCCEEDED"]
    assert needed(proven)[0] is False
    again = proven.apply()
    assert (again.exit_code, again.results[0].fresh, len(jobs(proven))) == (0, False, 1)
    ledger = LocalStore(Path(proven.loaded().folder), proven.system()).load_ledger()
    (row,) = status(proven.loaded(), ledger, proven.system()).targets
    assert (row.condition, row.verdict) == ("current", "simulated")
    proven.edit("e2-standard-8", "e2-standard-4")
    assert needed(proven)[0]
    proven.apply()
    assert needed(proven)[0] is False
    assert proven.orphans() == []
    assert sorted(proven.destroy()) == ["execution", "template", "verification"]
    assert (jobs(proven), proven.templates()) == ({}, {})
    assert proven.store.objects("my-bucket") == ()


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", [2, 3])
def test_a_verification_that_was_killed_is_continued(
    proven: Team, number: int, after: bool
) -> None:
    with pytest.raises(Killed):
        proven.apply(proven.system(number, after=after))
    assert proven.orphans() == [], "state or journal know it"
    assert proven.apply().exit_code == 0
    assert len(jobs(proven)) == 1
    assert needed(proven)[0] is False
    proven.destroy()
    assert (jobs(proven), proven.templates()) == ({}, {})


@pytest.mark.long
def test_a_job_that_the_service_creates_late_is_an_orphan(proven: Team) -> None:
    """The request of a killed run arrives after the next run has found nothing of it."""
    with pytest.raises(Killed):
        proven.apply(proven.system(2))
    (intent,) = LocalStore(Path(proven.loaded().folder), proven.system()).load_ledger().intents
    late = intent.names[0].removeprefix("//aiplatform.googleapis.com/")
    assert proven.apply().exit_code == 0
    with proven.store.edit_data() as data:
        (body,) = data["executions"].values()
        data["executions"][late] = {**body, "name": late, "jobState": "JOB_STATE_RUNNING"}
    assert proven.orphans() == [late]
    proven.destroy()
    assert list(proven.store.snapshot()["executions"]) == [late], "it is listed, never deleted"


@pytest.mark.long
def test_packages_on_top_of_those_of_the_image(proven: Team) -> None:
    proven.edit("isolation: venv", "isolation: system")
    done = proven.apply()
    (result,) = done.results
    assert (done.exit_code, result.report.verdict) == (0, "simulated")
    assert "the image: a kernel of this machine" in result.report.sentence
    machines = proven.bench.folder / ".provision/sandbox/executions"
    (alpha,) = machines.glob("*/usr/lib/python*/site-packages/alpha")
    assert alpha.is_dir(), "it is installed for the kernel's own interpreter"


@pytest.mark.parametrize("way", ["grpc", "rest"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_destroy_after_a_killed_verification_leaves_nothing(
    proven: Team, after: bool, way: str
) -> None:
    proven.way = way
    with pytest.raises(Killed):
        proven.apply(proven.system(2, after=after))
    proven.destroy()
    assert (jobs(proven), proven.templates()) == ({}, {})


def test_a_job_that_runs_for_a_lost_state_is_an_orphan(proven: Team) -> None:
    assert proven.apply(detach=True).exit_code == 3
    state = Path(proven.loaded().folder) / "state.json"
    state.unlink()
    names = [name.split("/")[4] for name in proven.orphans()]
    assert sorted(names) == ["notebookExecutionJobs", "notebookRuntimeTemplates"]


@pytest.mark.long
def test_a_detached_run_is_attached_to(bench: Bench) -> None:
    bench.spec(PROVEN.replace("e2-standard-8", "n1-standard-4"))
    planned = bench.run("plan", "spec.yaml", "--sandbox")
    assert "each verification: at most 1h of this machine, about $0.23" in planned.stdout
    done = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--detach")
    assert done.returncode == 3, done.stderr
    assert "its notebook is running; wait for the report: provision attach" in done.stdout
    attached = bench.run("attach", "spec.yaml", "--sandbox")
    assert (attached.returncode, "SIMULATED" in attached.stdout) == (0, True), attached.stderr
    again = bench.run("verify", "spec.yaml", "--sandbox")
    assert (again.returncode, "SIMULATED" in again.stdout) == (0, True), again.stderr
    store = json.loads((bench.folder / ".provision/sandbox/store.json").read_text())
    assert len(store["executions"]) == 1, "the earlier job is deleted before a new one starts"
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0


@pytest.mark.long
def test_a_job_that_somebody_deleted(proven: Team) -> None:
    proven.apply(detach=True)
    with proven.store.edit_data() as data:
        data["executions"].clear()
    with pytest.raises(ProvisionError, match="was not verified") as caught:
        proven.apply()
    assert (caught.value.exit_code, "was deleted while it was running" in caught.value.why) == (
        3,
        True,
    )
    assert needed(proven)[0]
    assert proven.apply().exit_code == 0


def break_objects(team: Team, change: Callable[[str], None]) -> None:
    """Let the job end, change its objects, and apply."""
    team.apply(detach=True)
    end = time.monotonic() + 120
    while "JOB_STATE_RUNNING" in jobs(team).values():
        assert time.monotonic() < end
        time.sleep(0.1)
    for about in team.store.objects("my-bucket"):
        change(about["name"])
    team.apply()


@pytest.mark.long
def test_a_report_that_never_arrives(proven: Team) -> None:
    def drop(name: str) -> None:
        if name.endswith(".json"):
            proven.store.delete_object("my-bucket", name)

    with pytest.raises(ProvisionError, match="did not write a report") as caught:
        break_objects(proven, drop)
    assert caught.value.exit_code == 3


@pytest.mark.long
def test_a_report_that_somebody_replaced(proven: Team) -> None:
    def forge(name: str) -> None:
        if name.endswith("report.json"):
            proven.store.put_object("my-bucket", name, b"{}")

    with pytest.raises(ProvisionError, match="not the one that the notebook wrote") as caught:
        break_objects(proven, forge)
    assert caught.value.exit_code == 3


@pytest.mark.long
def test_an_environment_that_cannot_be_made_is_a_failure(proven: Team) -> None:
    assert proven.apply(detach=True).exit_code == 3
    proven.destroy()
    index = Path(proven.bench.index.removeprefix("file://"))
    for wheel in index.parent.rglob("alpha*.whl"):
        wheel.write_bytes(b"damaged")
    with pytest.raises(ProvisionError, match="could not create the environment") as caught:
        proven.apply()
    assert caught.value.exit_code == 1
    assert "in stage install" in caught.value.why
    assert list(jobs(proven).values()) == ["JOB_STATE_FAILED"]
    proven.destroy()
    assert not (Path(proven.loaded().folder) / "reports").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("act-as", 2, "actAs"),
        ("quota:us-central1", 2, "CPUS"),
        ("stockout:us-central1", 3, "No available zone"),
    ],
)
def test_a_job_that_the_service_does_not_run(
    bench: Bench, fault: str, code: int, words: str
) -> None:
    bench.spec(PROVEN)
    done = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--fault", fault)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    again = bench.run("apply", "spec.yaml", "--sandbox", "--yes")
    assert again.returncode == 0, again.stderr
    assert "runtime template provision-spec-team-" in again.stdout
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
    store = json.loads((bench.folder / ".provision/sandbox/store.json").read_text())
    assert (store["templates"], store["executions"]) == ({}, {})


BAD: list[tuple[str, str, int, str]] = [
    ("region: us-central1", "region: moon-east1", 1, "moon-east1"),
    ("region: us-central1", "region: ../../evil", 1, "evil"),
    ("machine_type: e2-standard-8", "idle_shutdown: 5m", 1, "idle_shutdown"),
    ("machine_type: e2-standard-8", "idle_shutdown: 601s", 1, "idle_shutdown"),
    ("machine_type: e2-standard-8", "data_disk: {size: 1GiB}", 1, "data_disk"),
    ("machine_type: e2-standard-8", "subnet: mine", 1, "subnet"),
    ("machine_type: e2-standard-8", "bucket: gs://bucket", 1, "service account"),
    ("machine_type: e2-standard-8", "bucket: my-bucket", 1, "bucket"),
    ("env: {MODE: a}", "env: {MODE: $(HOME)}", 1, "$(HOME)"),
    ("env: {MODE: a}", "cuda_toolkit: '12.8'", 1, "CUDA toolkit"),
    ("gpu: none", "gpu: GB200", 1, "GB200"),
]


@pytest.mark.long(after=5)
@pytest.mark.parametrize(("old", "new", "code", "words"), BAD)
def test_bad_input_through_the_command(
    bench: Bench, old: str, new: str, code: int, words: str
) -> None:
    bench.spec(SPEC.replace(old, new))
    done = bench.run("plan", "spec.yaml", "--sandbox")
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("permission", "aiplatform"),
        ("api-disabled", "aiplatform"),
        ("exists", "does not belong to this target"),
        ("rate:2", ""),
        ("unavailable:2", ""),
        ("lost-operation", ""),
    ],
)
def test_faults_through_the_command(bench: Bench, fault: str, words: str) -> None:
    bench.spec(SPEC)
    done = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--fault", fault)
    assert done.returncode == (2 if words else 3), done.stderr
    assert words in done.stderr
    if fault != "exists":
        again = bench.run("apply", "spec.yaml", "--sandbox", "--yes")
        assert again.returncode == 3, again.stderr
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
    store = json.loads((bench.folder / ".provision/sandbox/store.json").read_text())
    assert len(store["templates"]) == (1 if fault == "exists" else 0)


def test_the_commands_name_template_and_next_step(bench: Bench) -> None:
    bench.spec(SPEC)
    done = bench.run("apply", "spec.yaml", "--sandbox", "--yes")
    assert done.returncode == 3, done.stderr
    assert "runtime template provision-spec-team-" in done.stdout
    assert "create a runtime from this template" in done.stdout
    found = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--output-format", "json")
    (waiting,) = json.loads(found.stdout)["waiting"]
    assert waiting["resource"]["location"] == "us-central1"
    verify = bench.run("verify", "spec.yaml", "--sandbox")
    assert (verify.returncode, "set `bucket` and" in verify.stderr) == (2, True)
    run = bench.run("run", "spec.yaml", "--sandbox", "--", "true")
    assert run.returncode == 2
    assert "Traceback" not in run.stderr


def test_a_template_cannot_be_opened_and_the_message_says_how_it_is_used(bench: Bench) -> None:
    bench.spec(SPEC)
    early = bench.run("open", "spec.yaml", "--sandbox")
    assert early.returncode == 2
    assert "create it first with `provision apply spec.yaml" in early.stderr
    assert bench.run("apply", "spec.yaml", "--sandbox", "--yes").returncode == 3
    for words in (("--sandbox",), ("--sandbox", "--target", "team")):
        done = bench.run("open", "spec.yaml", *words)
        assert (done.returncode, "instance" in done.stderr) == (2, False), done.stderr
        assert "spec/team cannot be opened" in done.stderr
        assert "a target of kind colab-enterprise has no address" in done.stderr
        assert "create a runtime from this template" in done.stderr
        assert "create it first" not in done.stderr
    waited = bench.run("attach", "spec.yaml", "--sandbox")
    assert (waited.returncode, "no execution job is recorded" in waited.stderr) == (2, True)


def test_other_kinds_cannot_be_opened_either(bench: Bench) -> None:
    bench.spec("gpu: none\npython: '3.11'\npackages: []\ntargets: {here: {kind: local}}\n")
    done = bench.run("open", "spec.yaml")
    assert (done.returncode, "provision run -- PROGRAM" in done.stderr) == (2, True)
    two = "{here: {kind: local}, colab: {kind: colab, runtime: '2026.07'}}"
    bench.spec(f"gpu: none\npython: '3.12'\npackages: []\ntargets: {two}\n")
    done = bench.run("open", "spec.yaml")
    assert (done.returncode, "no instance is recorded for spec" in done.stderr) == (2, True)
    done = bench.run("open", "spec.yaml", "--target", "colab")
    assert (done.returncode, "open its notebook in Colab" in done.stderr) == (2, True)


def test_credentials_are_sent_to_regions_of_google_only() -> None:
    from provision.adapters.google.retry import RetryPolicy
    from provision.adapters.google.vertex import VertexApi

    address = "https://{region}-aiplatform.googleapis.com"
    api = VertexApi(None, address, RetryPolicy())  # type: ignore[arg-type]
    name = f"{REGION}/notebookRuntimeTemplates/t"
    assert api._url(name) == f"https://us-central1-aiplatform.googleapis.com/v1/{name}"
    for region in ("evil.example", "us-central1.evil", "evil", "us-central1-a", "us-central1@x"):
        with pytest.raises(ProvisionError, match="is not a region"):
            api._url(name.replace("us-central1", region))


def test_a_machine_that_the_service_does_not_know(bench: Bench) -> None:
    bench.spec(SPEC.replace("e2-standard-8", "e9-huge"))
    done = bench.run("apply", "spec.yaml", "--sandbox", "--yes")
    assert (done.returncode, "'e9-huge' is not supported" in done.stderr) == (2, True)
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0


@pytest.mark.long
def test_a_process_that_was_killed_leaves_no_kernel_and_its_job_goes_on(bench: Bench) -> None:
    bench.spec(PROVEN)
    running = bench.start("apply", "spec.yaml", "--sandbox", "--yes")
    store = bench.folder / ".provision/sandbox/store.json"
    end = time.monotonic() + 120
    states: list[str] = []
    while "JOB_STATE_RUNNING" not in states:
        assert time.monotonic() < end
        assert running.poll() is None
        time.sleep(0.01)
        if store.exists():
            found = json.loads(store.read_text())["executions"].values()
            states = [job["jobState"] for job in found]
    running.kill()
    running.communicate(timeout=600)
    folder = str(bench.folder / ".provision/sandbox/executions")
    while any(folder in line for line in command_lines()):
        assert time.monotonic() < end, "a kernel outlives the emulator"
        time.sleep(0.1)
    assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0
    again = bench.run("apply", "spec.yaml", "--sandbox", "--yes")
    assert again.returncode == 0, again.stderr
    found = json.loads(store.read_text())["executions"]
    assert [job["jobState"] for job in found.values()] == ["JOB_STATE_SUCCEEDED"]
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
    assert json.loads(store.read_text())["executions"] == {}


def command_lines() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
