"""Whose an instance is and what a change costs it, against the look-alike of Google's services: two
states, edits, replacements, failures.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from provision.commands.apply import ApplyOptions, apply
from provision.commands.destroy import destroy
from provision.commands.orphans import list_orphans
from provision.commands.plan import plan
from provision.effects.google import (
    CreateInstance,
    DeleteInstance,
    StartInstance,
    UpdateInstance,
    UploadObjects,
)
from provision.errors import ExternalError, Refused
from provision.plan import Action, Operation
from provision.state_store import LocalStore
from tests.commands.test_workbench import CutShort, Device, Failing, Place, at
from tests.rig import MINOR, Bench

pytest.importorskip("google.cloud.notebooks_v2")


def action(place: Place) -> Action:
    (one,) = plan(
        place.loaded(), ("wb",), place.world, place.lines.append
    ).target_plans.plan.actions
    return one


def check(place: Place) -> Any:
    return plan(
        place.loaded(), ("wb",), place.world, place.lines.append
    ).target_plans.plan.verifications["wb"]


def edit(place: Place, *pairs: tuple[str, str]) -> None:
    text = place.path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    place.path.write_text(text)


def add(place: Place, line: str) -> None:
    place.path.write_text(place.path.read_text() + f"    {line}\n")


def beside(place: Place, name: str) -> Place:
    """Return another folder with the same spec, target and project, on the same sandbox."""
    folder = place.path.parent / name
    folder.mkdir()
    other = Place(place.bench, folder / place.path.name, place.endpoints, place.store)
    other.path.write_text(place.path.read_text())
    return other


def cut(place: Place, at: type, *, after: bool) -> Failing:
    return Failing(place.bench.environment(), endpoints=place.endpoints, at=at, after=after)


def ids(place: Place) -> set[str]:
    return {one["id"] for one in place.world.cloud().instances("my-project")}


def told(place: Place, word: str) -> int:
    return sum(line.startswith(f"{word}: provision-") for line in place.lines)


def asked_long_ago(place: Place) -> None:
    """Make the intents that are open old ones: what is not shown by now was never made."""
    path = place.ledger_folder() / "journal.json"
    document = json.loads(path.read_text())
    for intent in document["intents"]:
        intent["details"]["asked"] = "2026-01-01T00:00:00Z"
    path.write_text(json.dumps(document))


def test_two_folders_with_one_name_never_touch_each_others_instance(bench: Bench) -> None:
    with at(bench, Device()) as place:
        place.apply()
        made, kept = ids(place), place.store.objects("my-bucket")
        other = beside(place, "elsewhere")
        with pytest.raises(Refused) as caught:
            other.apply()
        assert "another state created it" in caught.value.why
        assert other.destroy() == []
        assert (ids(place), place.store.objects("my-bucket")) == (made, kept)
        assert place.verbs() == [Operation.KEEP]
        assert (
            len(list_orphans([other.loaded()], other.world).orphans) == 1
        )  # it costs, and this folder does not know it


def test_destroy_after_a_run_cut_short_leaves_what_another_state_made_meanwhile(
    bench: Bench,
) -> None:
    with at(bench, Device()) as place:
        with pytest.raises(CutShort):
            place.apply(cut(place, CreateInstance, after=False))
        other = beside(place, "elsewhere")
        other.apply()
        made = ids(other)
        asked_long_ago(place)
        assert "instance" in place.destroy()
        assert ids(other) == made
        assert any(line.startswith("not deleted: ") for line in place.lines)
        assert other.verbs() == [Operation.KEEP]


@pytest.mark.long
def test_destroy_leaves_one_that_was_taken_over(bench: Bench) -> None:
    with at(bench, Device()) as place:
        place.apply()
        other = beside(place, "elsewhere")
        assert other.apply(adopt=True).exit_code == 0
        assert len(list_orphans([place.loaded()], place.world).orphans) == 1
        place.destroy()
        assert len(other.instances()) == 1
        assert other.verbs() == [Operation.KEEP]
        other.destroy()
        assert (other.instances(), place.store.objects("my-bucket")) == ({}, ())


def test_a_namesake_in_a_zone_that_the_spec_left_is_found(bench: Bench) -> None:
    with at(bench, Device()) as place:
        place.apply()
        other = beside(place, "elsewhere")
        edit(other, ("[us-central1-a, us-central1-b]", "[us-central1-c]"))
        with pytest.raises(Refused) as caught:
            other.apply()
        assert "locations/us-central1-a/" in caught.value.why


def test_the_lineage_is_on_disk_before_the_call_that_costs(bench: Bench) -> None:
    with at(bench, Device()) as place:
        with pytest.raises(CutShort):
            place.apply(cut(place, CreateInstance, after=True))
        (found,) = place.world.cloud().instances("my-project")
        assert (
            found["labels"]["provision-lineage"]
            == LocalStore(place.loaded().folder, place.world).load_ledger().state.lineage
        )
        assert place.apply().exit_code == 0


def test_another_image_is_not_adopted_silently_where_the_instance_was_not_seen_yet(
    bench: Bench,
) -> None:
    with at(bench, Device()) as place:
        with pytest.raises(CutShort):
            place.apply(cut(place, CreateInstance, after=True))
        edit(place, ("20261004-2157-rc0", "20260901-2157-rc0"))
        assert action(place).operation is Operation.REPLACE
        assert any(
            note.startswith("image: workbench-instances-2603-20261004")
            for note in action(place).notes
        )


def test_what_needs_no_stop_restarts_nothing_and_verifies_nothing(bench: Bench) -> None:
    device = Device()
    with at(bench, device) as place:
        place.apply()
        add(place, "labels: {team: a}")
        add(place, "idle_shutdown: 90m")
        assert (action(place).operation, check(place).needed) == (Operation.CHANGE, False)
        place.lines.clear()
        assert place.apply().exit_code == 0
        assert (told(place, "stop"), told(place, "start"), len(device.boots)) == (0, 0, 1)
        (found,) = place.world.cloud().instances("my-project")
        assert found["labels"]["team"] == "a"
        assert found["gceSetup"]["metadata"]["idle-timeout-seconds"] == "5400"
        assert place.verbs() == [Operation.KEEP]


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    "line",
    [
        "machine_type: n1-standard-8",
        "data_disk: {size: 200GiB}",
        "metadata: {notebook-disable-root: 'true'}",
    ],
)
def test_what_needs_a_stop_has_one_and_is_verified_once(bench: Bench, line: str) -> None:
    device = Device()
    with at(bench, device) as place:
        place.apply()
        made = ids(place)
        add(place, line)
        assert "it is restarted, which ends running kernels" in action(place).reason
        place.lines.clear()
        assert place.apply().exit_code == 0
        assert (told(place, "stop"), told(place, "start"), len(device.boots), ids(place)) == (
            1,
            1,
            2,
            made,
        )
        assert place.verbs() == [Operation.KEEP]


def test_a_disk_grows_and_never_shrinks(bench: Bench) -> None:
    with at(bench, Device()) as place:
        place.apply()
        add(place, "data_disk: {size: 200GiB}")
        place.apply()
        (found,) = place.world.cloud().instances("my-project")
        assert found["gceSetup"]["dataDisks"][0]["diskSizeGb"] == "200"
        edit(place, ("size: 200GiB", "size: 150GiB"))
        assert action(place).operation is Operation.REPLACE


def test_one_that_was_stopped_after_a_failure_is_started_once(bench: Bench) -> None:
    device = Device("failed")
    with at(bench, device) as place:
        assert place.apply().exit_code == 1
        assert list(place.instances().values()) == ["STOPPED"]
        device.verdict = "simulated"
        place.lines.clear()
        assert place.apply().exit_code == 0
        assert (told(place, "stop"), told(place, "start"), len(device.boots)) == (0, 1, 2)


def test_asking_again_says_that_it_is_stopped_and_started(bench: Bench) -> None:
    with at(bench, Device()) as place:
        place.apply()
        shown: list[Any] = []
        apply(
            place.loaded(),
            ("wb",),
            ApplyOptions(verify=True),
            place.world,
            lambda proposed, _: shown.append(proposed),
            place.lines.append,
        )
        assert (
            shown[0].verifications["wb"].reason
            == "requested with --verify; it is restarted, which ends running kernels"
        )


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("effect", "after"),
    [
        (UploadObjects, True),
        (UpdateInstance, False),
        (UpdateInstance, True),
        (StartInstance, False),
    ],
)
def test_a_change_that_is_cut_short_at_any_step_goes_on(
    bench: Bench, effect: type, after: bool
) -> None:
    device = Device()
    with at(bench, device) as place:
        place.apply()
        place.write("alpha, gamma")
        with pytest.raises(CutShort):
            place.apply(cut(place, effect, after=after))
        place.apply(detach=True)
        assert len(device.boots) == 2  # else its report would never come
        assert place.apply().exit_code == 0
        assert (len(device.boots), place.verbs()) == (2, [Operation.KEEP])


@pytest.mark.long
def test_a_replacement_that_fails_says_what_is_gone_and_the_next_plan_knows(bench: Bench) -> None:
    with at(bench, Device()) as place:
        place.apply()
        (name,) = (one["name"] for one in place.world.cloud().instances("my-project"))
    with at(bench, Device(), "stockout:us-central1-a", "stockout:us-central1-b") as place:
        edit(place, ("20261004-2157-rc0", "20260901-2157-rc0"))
        assert "if no zone then has the machine, there is no instance" in "\n".join(
            action(place).notes
        )
        with pytest.raises(ExternalError) as caught:
            place.apply()
        assert f"{name} and its disks were deleted before this attempt" in caught.value.why
        assert "nothing was left running" in caught.value.hint
        assert (place.instances(), action(place).operation, action(place).reason) == (
            {},
            Operation.CREATE,
            "it does not exist yet",
        )
    with at(bench, Device()) as place:
        assert place.apply().exit_code == 0


def test_in_other_zones_the_old_one_stays_where_the_new_one_is_not_to_be_had(bench: Bench) -> None:
    with at(bench, Device(), "stockout:us-east1-b") as place:
        place.apply()
        edit(place, ("[us-central1-a, us-central1-b]", "[us-east1-b]"))
        with pytest.raises(ExternalError):
            place.apply()
        assert place.instances() == {"us-central1-a": "ACTIVE"}
        edit(place, ("[us-east1-b]", "[us-east1-c]"))
        assert place.apply().exit_code == 0
        assert list(place.instances()) == ["us-east1-c"]
        assert place.verbs() == [Operation.KEEP]


def test_a_move_that_is_cut_short_between_the_two_ends_with_one(bench: Bench) -> None:
    with at(bench, Device()) as place:
        place.apply()
        edit(place, ("[us-central1-a, us-central1-b]", "[us-east1-c]"))
        with pytest.raises(CutShort):
            place.apply(cut(place, DeleteInstance, after=False))
        assert sorted(place.instances()) == ["us-central1-a", "us-east1-c"]
        assert list_orphans([place.loaded()], place.world).orphans == ()
        assert place.apply().exit_code == 0
        assert (list(place.instances()), place.verbs()) == (["us-east1-c"], [Operation.KEEP])


def test_nothing_is_left_in_the_bucket_by_a_run_cut_short_before_the_instance(bench: Bench) -> None:
    with at(bench, Device()) as place:
        with pytest.raises(CutShort):
            place.apply(cut(place, CreateInstance, after=False))
        assert place.store.objects("my-bucket")
        asked_long_ago(place)
        destroy(place.path, (), place.world, lambda _: None, place.lines.append, sandbox=True)
        assert place.store.objects("my-bucket") == ()


REAL = f"""\
gpu: none
python: "{MINOR}"
packages: [alpha]
training: {{framework: none}}
targets:
  wb:
    kind: workbench
    project: my-project
    zones: [us-central1-a]
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    nat: true
    max_lifetime: 8h
"""


def test_a_person_sees_whose_it_is_and_takes_it_over(bench: Bench) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return bench.run(words[0], "spec.yaml", "--sandbox", *words[1:])

    bench.spec(REAL)
    assert run("apply", "--yes", "--detach").returncode == 3
    for path in (bench.folder / ".provision/sandbox/state").rglob("state.json"):
        path.unlink()
    done = run("apply", "--yes")
    assert done.returncode == 2
    assert (
        "another state created it: "
        "projects/my-project/locations/us-central1-a/instances/provision-spec-wb-" in done.stderr
    )
    assert "provision apply spec.yaml --sandbox --adopt" in done.stderr
    assert "Traceback" not in done.stderr
    shown = run("plan", "--adopt")
    assert (
        "it is adopted from another state (--adopt); it is restarted, which ends running "
        "kernels" in shown.stdout
    )
    assert run("apply", "--yes", "--detach", "--adopt").returncode == 3
    assert run("orphans").returncode == 0
    assert Path(bench.folder / ".provision/sandbox").is_dir()
