"""The kind workbench as values: whose an instance is, what a plan does to it, and what it says of
that.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from provision.effects.google import (
    CreateInstance,
    DeleteInstance,
    DeleteObjects,
    ResizeDisk,
    StartInstance,
    StopInstance,
    UpdateInstance,
    UploadObjects,
)
from provision.plan import Action, Intent, Operation
from provision.state import Ledger, State, create_empty_state
from provision.targets import TargetContext
from provision.targets.workbench.resource_names import build_resource_names
from provision.verification import Report
from tests.targets.drivers import DRIVERS
from tests.targets.google import IMAGE, FakeCloud
from tests.targets.test_workbench import FOLDER, World, made, place, planned

OLDER = "workbench-instances-2603-20260901-2157-rc0"


def refused(there: TargetContext, world: World, state: State | None = None) -> str:
    kind = DRIVERS["workbench"]
    have = kind.observe(there, Ledger(state or create_empty_state("l")), world)  # type: ignore[arg-type]
    return "\n".join(f"{refusal.why} ({refusal.hint})" for refusal in kind.refusals(there, have))


def kinds(action: Action) -> list[type]:
    return [type(effect) for effect in action.effects]


def only(world: World) -> dict[str, Any]:
    (found,) = world.google.found.values()
    return found


@pytest.mark.parametrize(
    ("on_failure", "verdict", "operations", "effects"),
    [
        ("stop", "failed", [Operation.CHANGE], [StopInstance]),
        ("keep", "unverified", [Operation.CHANGE], []),
        ("delete", "failed", [Operation.DESTROY], [DeleteInstance, DeleteObjects]),
        ("stop", "verified", [], []),
    ],
)
def test_what_follows_a_verdict_is_a_plan(
    on_failure: str, verdict: str, operations: list[Operation], effects: list[type]
) -> None:
    world, context = World(), place({"on_failure": on_failure})
    state = made(context, world)
    report = Report({"verdict": {"result": verdict}})
    follow_up = DRIVERS["workbench"].after_verdict(context, report, state, world)  # type: ignore[arg-type]
    assert [action.operation for action in follow_up.actions] == operations
    assert [kind for action in follow_up.actions for kind in kinds(action)] == effects
    ended = [action.record and "ended" in action.record for action in follow_up.actions]
    assert any(ended) is (on_failure == "stop" and verdict == "failed")
    assert len(world.google.found) == 1, "nothing was performed"


class TestWhose:
    def test_one_of_another_state_is_refused_with_whose_it_is_and_the_ways_out(self) -> None:
        world = World()
        made(place(), world)
        words = refused(place(), world, create_empty_state("other"))
        for word in (
            build_resource_names(place(), "l").instance_resource_name("us-central1-a"),
            "another state created it",
            "provision-lineage=l",
            "provision-spec=spec",
            "rename the spec file or the target",
            "`provision destroy` in the folder that created it",
            "provision apply SPEC --adopt",
        ):
            assert word in words

    def test_the_states_of_two_folders_have_objects_of_their_own(self) -> None:
        one, other = build_resource_names(place(), "a"), build_resource_names(place(), "b")
        assert one.instance == other.instance
        assert not one.folder.startswith(other.folder)
        assert not other.folder.startswith(one.folder)

    def test_one_without_a_lineage_is_nobodys_and_not_taken_without_a_word(self) -> None:
        world = World()
        made(place(), world)
        del only(world)["labels"]["provision-lineage"]
        assert "another state created it" in refused(place(), world)

    def test_adopting_takes_it_over_under_a_new_run_and_says_so(self) -> None:
        world = World()
        made(place(), world)
        there = replace(place(), adopt=True)
        action = planned(there, world, create_empty_state("other"))
        assert (action.operation, kinds(action)) == (
            Operation.CHANGE,
            [UploadObjects, StopInstance, UpdateInstance, StartInstance],
        )
        assert "adopted from another state" in action.reason
        assert "ends running kernels" in action.reason
        assert (
            "reports and logs from the previous state are kept in "
            f"{build_resource_names(place(), 'l').folder}" in action.notes
        )
        for effect in action.effects:
            world.google.perform(effect)
        assert only(world)["labels"]["provision-lineage"] == "other"
        assert action.record is not None
        assert (
            planned(
                place(),
                world,
                create_empty_state("other").with_record(action.address, "instance", action.record),
            ).operation
            is Operation.KEEP
        )

    def test_adopting_takes_nothing_of_another_spec_and_not_one_of_several(self) -> None:
        world = World()
        made(place(), world)
        only(world)["labels"]["provision-spec"] = "others"
        assert "provision did not create it" in refused(
            replace(place(), adopt=True), world, create_empty_state("other")
        )
        only(world)["labels"]["provision-spec"] = "spec"
        name = build_resource_names(place(), "l").instance_resource_name("us-west1-b")
        world.google.found[name] = {**copy.deepcopy(only(world)), "name": name}
        assert (
            refused(replace(place(), adopt=True), world, create_empty_state("other")).count(
                "delete all but one of them yourself"
            )
            == 2
        )

    def test_a_namesake_in_a_zone_that_the_spec_no_longer_names_is_found_and_named(self) -> None:
        world = World()
        made(place(), world)
        elsewhere = place({"zones": ["us-west1-b"]})
        assert "locations/us-central1-a/" in refused(elsewhere, world, create_empty_state("other"))
        action = planned(
            elsewhere, world, create_empty_state("l")
        )  # ours, though the record is lost
        assert (action.operation, kinds(action)) == (
            Operation.REPLACE,
            [UploadObjects, CreateInstance, DeleteInstance],
        )
        assert "zones: us-central1-a -> us-west1-b" in action.notes

    def test_another_one_beside_ours_is_named_as_a_cost(self) -> None:
        world = World()
        state = made(place(), world)
        name = build_resource_names(place(), "l").instance_resource_name("us-west1-b")
        world.google.found[name] = {**copy.deepcopy(only(world)), "name": name}
        action = planned(place(), world, state)
        assert action.operation is Operation.KEEP
        assert any(
            "another instance with this name exists and costs money" in note
            and "us-west1-b" in note
            for note in action.notes
        )

    def test_one_of_another_state_in_the_way_of_a_replacement_is_refused_before_the_old_one_goes(
        self,
    ) -> None:
        world, zones = World(), {"zones": ["us-central1-a", "us-central1-b"]}
        state = made(place(zones), world)
        name = build_resource_names(place(), "l").instance_resource_name("us-central1-b")
        world.google.found[name] = {
            **copy.deepcopy(only(world)),
            "name": name,
            "labels": {"provision": "1", "provision-lineage": "other"},
        }
        assert refused(place(zones), world, state) == ""
        assert "us-central1-b" in refused(
            place({**zones, "service_account": "a@p.iam.gserviceaccount.com"}), world, state
        )


class TestAdoption:
    def test_another_image_is_seen_without_any_record(self) -> None:
        world = World()
        made(place(), world)
        action = planned(place({"image": OLDER}), world, create_empty_state("l"))
        assert action.operation is Operation.REPLACE
        assert f"image: {IMAGE} -> {OLDER}" in action.notes
        assert planned(place(), world, create_empty_state("l")).operation is Operation.CHANGE

    @pytest.mark.parametrize(
        "target",
        [
            {"data_disk": {"type": "ssd"}},
            {"service_account": "a@p.iam.gserviceaccount.com"},
            {"network": "net"},
        ],
    )
    def test_so_is_everything_else_that_never_changes(self, target: dict[str, Any]) -> None:
        world = World()
        made(place(), world)
        assert planned(place(target), world, create_empty_state("l")).operation is Operation.REPLACE

    def test_where_it_does_not_say_how_it_was_made_the_image_that_the_service_tells_counts(
        self,
    ) -> None:
        world = World()
        made(place(), world)
        setup = only(world)["gceSetup"]
        setup["metadata"]["provision-made"] = "{"
        unknown = planned(
            place({"image": OLDER}), world, create_empty_state("l")
        )  # it tells no name: nothing is known, and nothing is destroyed
        assert unknown.operation is Operation.CHANGE
        assert any(
            note.startswith("its metadata does not contain its original settings")
            for note in unknown.notes
        )
        setup["vmImage"] = {"project": "cloud-notebooks-managed", "name": IMAGE}
        assert (
            planned(place({"image": OLDER}), world, create_empty_state("l")).operation
            is Operation.REPLACE
        )

    def test_a_family_keeps_the_image_that_the_instance_was_made_from(self) -> None:
        family = {"imageFamily": "workbench-instances-2603"}
        world = World(FakeCloud(images=({**family, "imageName": OLDER},)))
        made(place({"image": None}), world)
        world.google.images = ({**family, "imageName": OLDER}, {**family, "imageName": IMAGE})
        action = planned(place({"image": None}), world, create_empty_state("l"))
        assert action.operation is Operation.CHANGE
        assert action.record is not None
        assert action.record["image"]["name"] == OLDER


WORDS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "labels": ({}, {"labels": {"team": "a"}}, "labels.team: none -> a"),
    "a label goes": ({"labels": {"team": "a"}}, {}, "labels.team: a -> none"),
    "idle_shutdown": (
        {"idle_shutdown": "90m"},
        {"idle_shutdown": "2h"},
        "idle_shutdown: 90m -> 2h",
    ),
    "max_lifetime": ({}, {"max_lifetime": "8h"}, "max_lifetime: none -> 8h"),
    "metadata": (
        {},
        {"metadata": {"notebook-disable-root": "true"}},
        "metadata.notebook-disable-root: none -> true",
    ),
    "tags": ({"tags": ["a"]}, {"tags": ["b"]}, "tags: a -> b"),
    "machine_type": (
        {},
        {"machine_type": "g2-standard-8"},
        "machine_type: g2-standard-4 -> g2-standard-8",
    ),
    "shielded": ({}, {"shielded": {"secure_boot": True}}, "shielded.secure_boot: false -> true"),
    "gpu_driver": ({}, {"gpu_driver": False}, "gpu_driver: true -> false"),
    "reservation": ({}, {"reservation": "mine"}, "reservation: none -> mine"),
    "public_ip": ({}, {"public_ip": True}, "public_ip: false -> true"),
    "data_disk.size": ({}, {"data_disk": {"size": "200GiB"}}, "data_disk.size: 100GiB -> 200GiB"),
    "boot_disk.type": ({}, {"boot_disk": {"type": "ssd"}}, "boot_disk.type: balanced -> ssd"),
    "image": ({}, {"image": OLDER}, f"image: {IMAGE} -> {OLDER}"),
    "network": ({}, {"network": "net"}, "network: none -> projects/my-project/global/networks/net"),
    "service_account": (
        {},
        {"service_account": "a@p.iam.gserviceaccount.com"},
        "service_account: none -> a@p.iam.gserviceaccount.com",
    ),
    "owner": (
        {},
        {"access": {"mode": "single-user", "owner": "me@example.com"}},
        "access.owner: none -> me@example.com",
    ),
    "bucket": ({}, {"bucket": "gs://my-bucket/q"}, "bucket: gs://my-bucket/p -> gs://my-bucket/q"),
}


class TestWords:
    @pytest.mark.parametrize(("before", "after", "words"), WORDS.values(), ids=WORDS)
    def test_fields_are_called_as_the_spec_calls_them_with_what_they_were(
        self, before: dict[str, Any], after: dict[str, Any], words: str
    ) -> None:
        world = World()
        state = made(place(before), world)
        action = planned(place(after), world, state)
        assert any(note.startswith(words) for note in action.notes), action.notes
        assert words.partition(":")[0] in action.reason
        told = "\n".join((action.reason, *action.notes))
        assert not [
            word
            for word in (
                "gceSetup",
                "machineType",
                "acceleratorConfigs",
                "diskSizeGb",
                "provision-run",
            )
            if word in told
        ]

    def test_the_card_is_called_as_in_the_spec(self) -> None:
        world = World()
        action = planned(place(gpu="L4:2"), world, made(place(), world))
        assert "gpu: L4 -> L4:2" in action.notes

    def test_values_are_shown_harmless_and_short(self) -> None:
        world = World()
        token = "hf_" + "A1b2C3d4" * 5
        action = planned(
            place({"metadata": {"note": f"{token}\x1b[31m" + "x" * 500}}),
            world,
            made(place(), world),
        )
        (line,) = [note for note in action.notes if note.startswith("metadata.note")]
        assert token not in line
        assert "\x1b" not in line
        assert len(line) < 200

    def test_the_zone_is_the_one_it_is_in_and_for_another_instance_those_that_are_tried(
        self,
    ) -> None:
        world, zones = World(), {"zones": ["us-central1-a", "us-central1-b"]}
        state = made(place(zones), world)
        assert "zone: us-central1-a" in planned(place(zones), world, state).notes
        notes = planned(place({**zones, "image": OLDER}), world, state).notes
        assert (
            "zone: the instance is in us-central1-a; the new one is created in us-central1-a, "
            "us-central1-b, in this order" in notes
        )


class TestRestarts:
    @pytest.mark.parametrize(
        "target",
        [
            {"labels": {"team": "a"}},
            {"idle_shutdown": "60m"},
            {"tags": ["ssh"]},
            {"metadata": {"note": "x"}},
        ],
    )
    def test_what_needs_no_stop_is_changed_while_it_runs_under_the_same_run(
        self, target: dict[str, Any]
    ) -> None:
        world = World()
        state = made(place(), world)
        action = planned(place(target), world, state)
        assert kinds(action) == [UpdateInstance]
        assert action.reason.endswith("it keeps running")
        assert action.record is not None
        assert action.record["nonce"] == (state.resource(action.address, "instance") or {})["nonce"]

    @pytest.mark.parametrize(
        "target",
        [
            {"machine_type": "g2-standard-8"},
            {"metadata": {"notebook-disable-root": "true"}},
            {"max_lifetime": "8h"},
        ],
    )
    def test_what_needs_a_stop_has_one_under_a_new_run_and_says_so(
        self, target: dict[str, Any]
    ) -> None:
        world = World()
        state = made(place(), world)
        action = planned(place(target), world, state)
        assert kinds(action) == [UploadObjects, StopInstance, UpdateInstance, StartInstance]
        assert "it is restarted, which ends running kernels" in action.reason
        assert action.record is not None
        assert action.record["nonce"] != (state.resource(action.address, "instance") or {})["nonce"]

    def test_a_machine_of_another_family_than_g2_is_another_instance(self) -> None:
        world = World()
        state = made(place(), world)
        assert (
            planned(place({"machine_type": "n1-standard-8"}, gpu="T4"), world, state).operation
            is Operation.REPLACE
        )

    def test_a_new_bucket_is_filled_and_the_old_folder_goes(self) -> None:
        world = World()
        state = made(place(), world)
        action = planned(place({"bucket": "gs://my-bucket/q"}), world, state)
        assert kinds(action) == [
            UploadObjects,
            StopInstance,
            UpdateInstance,
            StartInstance,
            DeleteObjects,
        ]
        assert action.effects[-1] == DeleteObjects(build_resource_names(place(), "l").folder)

    def test_the_reason_tells_packages_from_what_else_the_device_is_told(self) -> None:
        world = World()
        state = made(place(), world)
        assert planned(place(version="2.12.0"), world, state).reason.startswith(
            "the environment changed; it is restarted"
        )
        assert planned(place(env={"A": "1"}), world, state).reason.startswith(
            "its declaration in the spec changed; it is restarted"
        )
        assert planned(place({"max_lifetime": "8h"}), world, state).reason.startswith(
            "max_lifetime changed; it is restarted"
        )


class TestReplacement:
    def test_within_the_same_zones_the_old_one_goes_first_and_the_plan_says_what_is_lost(
        self,
    ) -> None:
        world = World()
        action = planned(place({"image": OLDER}), world, made(place(), world))
        assert kinds(action) == [DeleteInstance, UploadObjects, CreateInstance]
        assert next(
            effect for effect in action.effects if isinstance(effect, CreateInstance)
        ).instead_of == build_resource_names(place(), "l").instance_resource_name("us-central1-a")
        told = "\n".join(action.notes)
        assert "lost: /home/jupyter" in told
        assert (
            "the old instance is deleted first, because the new one has the same name: if no "
            "zone then has the machine, there is no instance" in told
        )

    def test_elsewhere_it_goes_last(self) -> None:
        world = World()
        state = made(place(), world)
        action = planned(place({"zones": ["us-west1-b"]}), world, state)
        assert kinds(action) == [UploadObjects, CreateInstance, DeleteInstance]
        moved = planned(place({"project": "other-project"}), world, state)
        assert kinds(moved) == [UploadObjects, CreateInstance, DeleteInstance, DeleteObjects]
        assert "project: my-project -> other-project" in moved.notes

    @pytest.mark.parametrize(
        ("limit", "used", "refused_for"), [(1.0, 1.0, ""), (1.0, 2.0, "2 of 1 used")]
    )
    def test_quota_is_asked_before_the_old_one_is_deleted_and_its_own_cards_come_back(
        self, limit: float, used: float, refused_for: str
    ) -> None:
        world = World()
        state = made(place(), world)
        world.google.rows = ({"metric": "NVIDIA_L4_GPUS", "limit": limit, "usage": used},)
        words = refused(place({"image": OLDER}), world, state)
        assert (refused_for in words) if refused_for else words == ""
        assert refused(place({"labels": {"a": "b"}}), world, state) == ""

    def test_cards_that_are_in_use_until_the_end_do_not_come_back_in_time(self) -> None:
        world = World()
        state = made(place(), world)
        world.google.rows = ({"metric": "NVIDIA_L4_GPUS", "limit": 1.0, "usage": 1.0},)
        assert "1 of 1 used" in refused(place({"zones": ["us-central1-b"]}), world, state)

    def test_a_replacement_that_was_cut_short_is_told_as_that(self) -> None:
        world = World()
        state = made(place(), world)
        world.google.found.clear()
        intent = Intent(
            "spec/wb",
            "instance",
            str(Operation.REPLACE),
            (),
            "now",
            ("projects/p/locations/z/instances/provision-x",),
        )
        assert (
            planned(place(), world, state, intent).reason
            == "an earlier run deleted it to replace it, but was interrupted"
        )


class TestDisks:
    def test_a_larger_one_grows_in_place(self) -> None:
        world = World()
        state = made(place(), world)
        bigger = place({"data_disk": {"size": "200GiB"}})
        action = planned(bigger, world, state)
        assert kinds(action) == [
            UploadObjects,
            StopInstance,
            UpdateInstance,
            ResizeDisk,
            StartInstance,
        ]
        assert (
            ResizeDisk(
                build_resource_names(place(), "l").instance_resource_name("us-central1-a"),
                "dataDisk",
                "200",
            )
            in action.effects
        )
        state = made(bigger, world, state)
        assert only(world)["gceSetup"]["dataDisks"][0]["diskSizeGb"] == "200"
        assert planned(bigger, world, state).operation is Operation.KEEP

    def test_a_smaller_one_is_another_instance_and_the_plan_says_why(self) -> None:
        world = World()
        state = made(place({"data_disk": {"size": "200GiB"}}), world)
        action = planned(place({"data_disk": {"size": "150GiB"}}), world, state)
        assert action.operation is Operation.REPLACE
        assert "data_disk.size: 200GiB -> 150GiB" in action.notes
        assert any("not shrink" in note for note in action.notes)


class TestDestroy:
    def test_every_deletion_names_the_state_that_it_is_of(self) -> None:
        world = World()
        state = made(place(), world)
        (action,) = DRIVERS["workbench"].destroy(place().address, FOLDER, Ledger(state))
        assert [
            effect.lineage for effect in action.effects if isinstance(effect, DeleteInstance)
        ] == ["l"]

    def test_the_objects_of_a_run_that_was_cut_short_go_too(self) -> None:
        names = build_resource_names(place(), "l")
        details = {"instance": names.instance, "lineage": "l", "bucket": names.folder}
        intent = Intent(
            place().address,
            "instance",
            "+",
            (),
            "now",
            (names.instance_resource_name("us-central1-a"),),
            details,
        )
        (action,) = DRIVERS["workbench"].destroy(
            place().address, FOLDER, Ledger(create_empty_state("l"), (intent,))
        )
        assert action.effects == (
            DeleteInstance(names.instance_resource_name("us-central1-a"), "l"),
            DeleteObjects(names.folder),
        )
