"""The kind workbench as values: body, document, machine, image, and what differs."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from provision import facts as known
from provision.agent.workbench.document import parse_document
from provision.effects.google import (
    CreateInstance,
    DeleteInstance,
    DeleteObjects,
    StartInstance,
    StopInstance,
    UpdateInstance,
    UploadObjects,
)
from provision.errors import Refused
from provision.facts.schema_platforms import MachineType
from provision.kinds import WorkbenchTarget
from provision.lock import Lock, LockedEnvironment, LockedFile, LockedPackage
from provision.lock import TargetChoice as LockChosen
from provision.lock.inputs import collect_lock_inputs
from provision.lock.model import environment_digest, with_digest
from provision.plan import Action, Intent, Operation
from provision.spec import Spec
from provision.state import Ledger, State, create_empty_state
from provision.targets import TargetContext
from provision.targets.pinned_uv import read_pinned_uv
from provision.targets.workbench import agent_config
from provision.targets.workbench.agent_config import (
    build_agent_config,
    compute_declared_digest,
    encode_config,
)
from provision.targets.workbench.choices import MachineChoice, choose_image, choose_machine
from provision.targets.workbench.diff import ChangeMethod, build_patch, find_changes
from provision.targets.workbench.request_body import AgentRun, InstanceChoices, build_body
from provision.targets.workbench.resource_names import build_instance_name, build_resource_names
from tests.support import facts_with_prices
from tests.targets.drivers import DRIVERS
from tests.targets.google import IMAGE, SPEC, FakeCloud, with_keys_of_the_service

FACTS = known.load_facts()
FOLDER = Path("/project/.provision")
RUN = AgentRun("0" * 32, "1" * 64, "sha256:" + "2" * 64)
HOSTILE = "$(touch /tmp/x); `id`\n\"'${HOME} <script>"


def place(
    target: dict[str, Any] | None = None, stem: str = "spec", version: str = "2.11.0", **fields: Any
) -> TargetContext:
    document = {
        "gpu": "L4",
        "cuda": "12.8",
        "python": "3.12",
        "packages": ["torch", "ipykernel"],
        **fields,
    }
    spec = Spec.model_validate({**document, "targets": {"wb": {**SPEC, **(target or {})}}})
    names = {"torch": "pytorch-cu128", "ipykernel": "pypi"}
    held = tuple(
        LockedPackage(
            name,
            version if name == "torch" else "1.0",
            index,
            ("k",),
            (),
            (LockedFile(f"{name}-1-py3-none-any.whl", "0" * 64),),
        )
        for name, index in names.items()
    )
    environment = LockedEnvironment(
        "k",
        "linux-x86_64",
        "cu128",
        "2.28",
        "525",
        environment_digest("3.12", "linux-x86_64", "cu128", held),
    )
    indexes = {"pytorch-cu128": "https://download.pytorch.org/whl/cu128"}
    lock = with_digest(
        Lock(
            collect_lock_inputs(spec),
            "3.12",
            (environment,),
            {"wb": LockChosen(("k",), "why")},
            indexes,
            held,
        )
    )
    return TargetContext(spec.for_target("wb"), "wb", stem, FOLDER, lock, "linux-x86_64")


def body(there: TargetContext, run: AgentRun = RUN) -> dict[str, Any]:
    return build_body(
        there,
        build_resource_names(there, "l"),
        InstanceChoices("g2-standard-4", "cloud-notebooks-managed", IMAGE, FACTS.card("L4"), 1),
        run,
        FACTS,
    )


class World:
    def __init__(self, cloud: FakeCloud | None = None) -> None:
        self.google = cloud or FakeCloud()

    def cloud(self) -> FakeCloud:
        return self.google


def planned(
    there: TargetContext, world: World, state: State | None = None, intent: Intent | None = None
) -> Action:
    kind, ledger = (
        DRIVERS["workbench"],
        Ledger(state or create_empty_state("l"), (intent,) if intent else ()),
    )
    have = kind.observe(there, ledger, world)  # type: ignore[arg-type]
    assert kind.refusals(there, have) == ()
    (action,) = kind.plan(there, have)
    return action


def made(there: TargetContext, world: World, state: State | None = None) -> State:
    action = planned(there, world, state)
    for effect in action.effects:
        world.google.perform(effect)
    zone = next(name.split("/")[3] for name in world.google.found)
    assert action.record is not None
    return (state or create_empty_state("l")).with_record(
        action.address, action.part, {**action.record, "zone": zone}
    )


def refused(there: TargetContext, world: World | None = None) -> list[str]:
    kind = DRIVERS["workbench"]
    return [
        refusal.why
        for refusal in kind.refusals(
            there, kind.observe(there, Ledger(create_empty_state("l")), world or World())
        )
    ]  # type: ignore[arg-type]


class TestNames:
    def test_they_are_short_readable_and_tell_specs_apart(self) -> None:
        name = build_instance_name("my-project", "My Spec" + "x" * 80, "Tä rget")
        assert len(name) <= 63
        assert re.fullmatch(r"[a-z][a-z0-9-]*[a-z0-9]", name)
        assert (
            len(
                {
                    build_instance_name(*words)
                    for words in (("p", "a-b", "c"), ("p", "a", "b-c"), ("q", "a", "b-c"))
                }
            )
            == 3
        )

    def test_labels_hold_no_more_than_labels_may(self) -> None:
        labels = body(place(stem="Sp ec." + "é" * 80))["labels"]
        assert all(re.fullmatch(r"[a-z0-9_-]{0,63}", value) for value in labels.values())


class TestBody:
    def test_every_field_stands_where_the_service_has_it(self) -> None:
        setup = body(place())["gceSetup"]
        assert setup["acceleratorConfigs"] == [{"type": "NVIDIA_L4", "coreCount": "1"}]
        assert setup["vmImage"] == {"project": "cloud-notebooks-managed", "name": IMAGE}
        assert setup["bootDisk"] == {
            "diskSizeGb": "150",
            "diskType": "PD_BALANCED",
            "diskEncryption": "GMEK",
        }
        assert setup["disablePublicIp"] is True
        assert setup["metadata"]["idle-timeout-seconds"] == ""
        assert setup["metadata"]["post-startup-script"].endswith("/program.sh")

    def test_what_is_left_out_of_the_spec_is_left_out_of_the_body(self) -> None:
        assert {"serviceAccounts", "networkInterfaces", "tags", "reservationAffinity"}.isdisjoint(
            body(place())["gceSetup"]
        )

    def test_network_disks_account_and_reservation(self) -> None:
        key = "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k"
        target = {
            "network": "net",
            "subnet": "sub",
            "service_account": "a@my-project.iam.gserviceaccount.com",
            "reservation": "mine",
            "tags": ["ssh"],
        }
        setup = body(
            place({**target, "data_disk": {"size": "500GiB", "type": "ssd", "kms_key": key}})
        )["gceSetup"]
        interface = {
            "network": "projects/my-project/global/networks/net",
            "subnet": "projects/my-project/regions/us-central1/subnetworks/sub",
        }
        assert setup["networkInterfaces"] == [interface]
        assert setup["dataDisks"] == [
            {"diskSizeGb": "500", "diskType": "PD_SSD", "diskEncryption": "CMEK", "kmsKey": key}
        ]
        assert (setup["serviceAccounts"], setup["tags"]) == (
            [{"email": "a@my-project.iam.gserviceaccount.com"}],
            ["ssh"],
        )
        assert setup["reservationAffinity"]["values"] == ["mine"]

    def test_our_own_keys_cannot_be_taken(self) -> None:
        made = body(
            place(
                {
                    "metadata": {"post-startup-script": "gs://evil/x.sh", "provision-run": "x"},
                    "labels": {"provision": "0"},
                }
            )
        )
        assert made["labels"]["provision"] == "1"
        assert "evil" not in json.dumps(made["gceSetup"]["metadata"])


class TestDocument:
    def test_the_device_reads_it(self) -> None:
        there = place(
            secrets={"HF_TOKEN": {"secret": "projects/my-project/secrets/hf/versions/3"}},
            env={"A": "b"},
            system_packages=["git"],
        )
        document = build_agent_config(
            there,
            build_resource_names(there, "l"),
            "n" * 32,
            agent_config.build_programs(there),
            read_pinned_uv(),
        )
        read = parse_document(json.loads(encode_config(document)))
        assert (read.nonce, read.python, read.gpu, read.package_count) == (
            "n" * 32,
            "3.12",
            ("L4", 1),
            2,
        )
        assert read.secrets == {"HF_TOKEN": "projects/my-project/secrets/hf/versions/3"}
        assert document["expectations"]["nonce"] == "n" * 32

    def test_mirrors_take_the_place_of_indexes(self) -> None:
        there = place(
            {
                "mirrors": {
                    "pypi": "https://mirror.example.com/pypi/simple",
                    "pytorch": "https://mirror.example.com/torch",
                }
            }
        )
        indexes = build_agent_config(there, build_resource_names(there, "l"), "n", {}, {})[
            "install"
        ]["indexes"]
        assert indexes == {
            "pypi": "https://mirror.example.com/pypi/simple",
            "pytorch-cu128": "https://mirror.example.com/torch/cu128",
        }

    def test_what_it_declares_has_a_digest_of_its_own(self) -> None:
        assert compute_declared_digest(place()) == compute_declared_digest(
            place({"labels": {"team": "x"}, "idle_shutdown": "60m"})
        )
        assert (
            len(
                {
                    compute_declared_digest(place()),
                    compute_declared_digest(place(env={"A": "1"})),
                    compute_declared_digest(place(version="2.12.0")),
                }
            )
            == 3
        )


def test_hostile_values_are_data_and_never_program() -> None:
    there = place(
        {"metadata": {"note": HOSTILE}}, env={"A": HOSTILE}, paths={"data": "/data/" + HOSTILE}
    )
    document = encode_config(
        build_agent_config(
            there,
            build_resource_names(there, "l"),
            "n" * 32,
            agent_config.build_programs(there),
            read_pinned_uv(),
        )
    )
    assert json.loads(document)["env"]["A"] == HOSTILE
    assert body(there)["gceSetup"]["metadata"]["note"] == HOSTILE
    program, others = agent_config.read_startup_program(), agent_config.read_startup_program()
    assert program == others
    assert b"touch /tmp/x" not in program


def test_a_secret_travels_by_reference_only() -> None:
    there, world = (
        place(secrets={"HF_TOKEN": {"secret": "projects/p/secrets/hf/versions/3"}}),
        World(),
    )
    action = planned(there, world)
    assert "projects/p/secrets/hf/versions/3" in repr(action)
    assert refused(place(secrets={"HF_TOKEN": {"env": "HF_TOKEN"}})) == [
        "an instance reads secrets only from Secret Manager"
    ]


class TestDiff:
    def test_what_the_service_adds_and_leaves_out_is_no_difference(self) -> None:
        wanted = body(place({"tags": ["ssh"], "shielded": {"secure_boot": True}}))
        assert find_changes(wanted, with_keys_of_the_service(copy.deepcopy(wanted)), wanted) == ()
        assert find_changes(wanted, with_keys_of_the_service(copy.deepcopy(wanted)), None) == ()

    @pytest.mark.parametrize(
        ("target", "path", "way"),
        [
            ({"labels": {"team": "a"}}, "labels/team", ChangeMethod.RUNNING),
            (
                {"metadata": {"notebook-disable-root": "true"}},
                "gceSetup/metadata/notebook-disable-root",
                ChangeMethod.STOPPED,
            ),
            (
                {"idle_shutdown": "60m"},
                "gceSetup/metadata/idle-timeout-seconds",
                ChangeMethod.RUNNING,
            ),
            ({"tags": ["ssh"]}, "gceSetup/tags", ChangeMethod.RUNNING),
            (
                {"shielded": {"secure_boot": True}},
                "gceSetup/shieldedInstanceConfig",
                ChangeMethod.STOPPED,
            ),
            ({"reservation": "mine"}, "gceSetup/reservationAffinity", ChangeMethod.STOPPED),
            ({"gpu_driver": False}, "gceSetup/gpuDriverConfig", ChangeMethod.STOPPED),
            ({"public_ip": True}, "gceSetup/disablePublicIp", ChangeMethod.REPLACE),
            ({"data_disk": {"type": "ssd"}}, "gceSetup/dataDisks", ChangeMethod.REPLACE),
            ({"boot_disk": {"size": "300GiB"}}, "gceSetup/bootDisk", ChangeMethod.GROW),
            ({"boot_disk": {"size": "120GiB"}}, "gceSetup/bootDisk", ChangeMethod.REPLACE),
            (
                {"service_account": "a@p.iam.gserviceaccount.com"},
                "gceSetup/serviceAccounts",
                ChangeMethod.REPLACE,
            ),
            ({"network": "net"}, "gceSetup/networkInterfaces", ChangeMethod.REPLACE),
            (
                {"access": {"mode": "single-user", "owner": "me@example.com"}},
                "instanceOwners",
                ChangeMethod.REPLACE,
            ),
        ],
    )
    def test_each_field_and_the_way_it_changes(
        self, target: dict[str, Any], path: str, way: ChangeMethod
    ) -> None:
        old = body(place())
        (found,) = find_changes(
            body(place(target)), with_keys_of_the_service(copy.deepcopy(old)), old
        )
        assert (found.path, found.method) == (path, way)

    def test_what_goes_is_sent_as_an_empty_text(self) -> None:
        old = body(place({"labels": {"team": "a"}, "idle_shutdown": "60m"}))
        found = find_changes(body(place()), with_keys_of_the_service(copy.deepcopy(old)), old)
        sent, mask = build_patch(found)
        assert sent == {
            "labels": {"team": ""},
            "gceSetup": {"metadata": {"idle-timeout-seconds": ""}},
        }
        assert mask == "labels,gce_setup.metadata"

    def test_a_public_address_goes_in_place(self) -> None:
        old = body(place({"public_ip": True}))
        (found,) = find_changes(body(place()), with_keys_of_the_service(copy.deepcopy(old)), old)
        assert (found.method, build_patch((found,))) == (
            ChangeMethod.RUNNING,
            ({"gceSetup": {"disablePublicIp": True}}, "gce_setup.disable_public_ip"),
        )

    def test_a_disk_that_was_grown_by_hand_stays(self) -> None:
        old = body(place())
        real = with_keys_of_the_service(copy.deepcopy(old))
        real["gceSetup"]["dataDisks"][0]["diskSizeGb"] = "300"
        assert find_changes(body(place({"data_disk": {"size": "200GiB"}})), real, old) == ()


def chosen_machine(there: TargetContext) -> MachineChoice:
    target = there.spec.targets["wb"]
    assert isinstance(target, WorkbenchTarget)
    region = target.zones[0].rpartition("-")[0]
    card = FACTS.card("L4")
    return choose_machine(there.spec, target.machine_type, region, FACTS, card, reserved=False)


class TestMachine:
    def test_the_cheapest_that_carries_the_card(self) -> None:
        chosen = chosen_machine(place())
        assert chosen.machine_type == "g2-standard-4"
        assert re.fullmatch(
            r"\$0\.7\d per hour in us-central1 \(20\d\d-\d\d-\d\d\), without disks and traffic",
            chosen.price,
        )

    def test_memory_counts(self) -> None:
        there = place(requires={"ram": "40GiB"})
        chosen = chosen_machine(there)
        machine: MachineType = FACTS.machines[chosen.machine_type]
        assert machine.ram_gb >= 40

    def test_more_than_there_is_is_refused(self) -> None:
        assert any(
            "no machine type with L4 has 9000 GiB" in why
            for why in refused(place(requires={"ram": "9000GiB"}))
        )

    def test_no_price_is_said(self) -> None:
        there = place({"zones": ["mars-north1-a"]})
        assert chosen_machine(there).price == "price unknown"


class TestImage:
    OFFERED: ClassVar[dict[str, Any]] = {
        "availableImages": [
            {
                "imageFamily": "workbench-instances-2603",
                "imageName": f"workbench-instances-2603-2026{day}-rc0",
            }
            for day in ("0901-2157", "1004-2157", "0930-1200")
        ]
    }

    def test_a_name_is_taken_as_it_stands(self) -> None:
        assert choose_image(IMAGE, FACTS, None, None)[:2] == ("cloud-notebooks-managed", IMAGE)

    def test_a_family_is_its_newest_image_and_stays_once_recorded(self) -> None:
        found = choose_image("workbench-instances-2603", FACTS, self.OFFERED, None)
        assert found.name == "workbench-instances-2603-20261004-2157-rc0"
        recorded = {
            "project": "cloud-notebooks-managed",
            "name": "workbench-instances-2603-20260901-2157-rc0",
            "family": "workbench-instances-2603",
        }
        assert (
            choose_image("workbench-instances-2603", FACTS, self.OFFERED, recorded).name
            == recorded["name"]
        )

    @pytest.mark.parametrize("config", [None, {}, {"availableImages": []}])
    def test_a_family_that_cannot_be_resolved_is_refused(
        self, config: dict[str, Any] | None
    ) -> None:
        assert choose_image("workbench-instances-2603", FACTS, config, None).problem


class TestPlan:
    def test_a_new_instance_costs_and_says_so(self) -> None:
        action = planned(place(), World())
        assert [type(effect) for effect in action.effects] == [UploadObjects, CreateInstance]
        assert (action.operation, action.reason) == (Operation.CREATE, "it does not exist yet")
        assert any(note.startswith("cost: $0.") for note in action.notes)

    def test_another_lock_restarts_the_same_instance(self) -> None:
        world = World()
        state = made(place(), world)
        action = planned(place(version="2.12.0"), world, state)
        assert (action.operation, [type(effect) for effect in action.effects]) == (
            Operation.CHANGE,
            [UploadObjects, StopInstance, UpdateInstance, StartInstance],
        )
        state = made(place(version="2.12.0"), world, state)
        assert planned(place(version="2.12.0"), world, state).operation is Operation.KEEP

    def test_a_label_changes_while_it_runs_and_a_machine_while_it_is_stopped(self) -> None:
        world = World()
        state = made(place(), world)
        assert [
            type(e) for e in planned(place({"labels": {"team": "a"}}), world, state).effects
        ] == [UpdateInstance]
        assert [
            type(e) for e in planned(place({"machine_type": "g2-standard-8"}), world, state).effects
        ] == [
            UploadObjects,
            StopInstance,
            UpdateInstance,
            StartInstance,
        ]

    def test_a_machine_that_fits_stays_when_the_facts_know_a_cheaper_one(
        self, tmp_path: Path
    ) -> None:
        world, auto = World(), {"machine_type": "auto"}
        with facts_with_prices(tmp_path, without="g2-standard-4"):
            state = made(place(auto), world)
            assert planned(place(auto), world, state).operation is Operation.KEEP
        (instance,) = world.google.found.values()
        assert instance["gceSetup"]["machineType"] == "g2-standard-8"
        action = planned(place(auto), world, state)
        assert (action.operation, action.effects) == (Operation.KEEP, ())
        (note,) = [note for note in action.notes if note.startswith("cheaper: ")]
        assert re.fullmatch(
            r"cheaper: g2-standard-4 fits too and costs \$0\.\d\d per hour less; "
            r"`machine_type: g2-standard-4` changes to it",
            note,
        )
        assert "machine: g2-standard-8 with L4" in action.notes
        # An update for another reason keeps the machine, a requirement it does not meet does not.
        changed = planned(place(auto, version="2.12.0"), world, state)
        assert not any(note.startswith("machine_type: ") for note in changed.notes)
        larger = planned(place(auto, requires={"ram": "40GiB"}), world, state)
        assert any(
            note.startswith("machine_type: g2-standard-8 -> g2-standard-12")
            for note in larger.notes
        )
        named = planned(place({"machine_type": "g2-standard-4"}), world, state)
        assert named.operation is Operation.CHANGE
        assert not any("cheaper" in note for note in named.notes)

    def test_what_cannot_change_is_made_anew_and_the_loss_is_said(self) -> None:
        world = World()
        action = planned(place({"data_disk": {"type": "ssd"}}), world, made(place(), world))
        assert (action.operation, [type(e) for e in action.effects]) == (
            Operation.REPLACE,
            [DeleteInstance, UploadObjects, CreateInstance],
        )
        assert any(note.startswith("lost: /home/jupyter") for note in action.notes)

    def test_one_that_is_stopped_is_started_and_one_that_is_gone_is_made(self) -> None:
        world = World()
        state = made(place(), world)
        (name,) = world.google.found
        world.google.found[name]["state"] = "STOPPED"
        assert [type(e) for e in planned(place(), world, state).effects] == [
            UploadObjects,
            UpdateInstance,
            StartInstance,
        ]
        del world.google.found[name]
        assert planned(place(), world, state).reason == "it was deleted outside of provision"

    def test_an_interrupted_run_is_adopted_in_whichever_zone_it_is(self) -> None:
        there, world = place({"zones": ["us-central1-a", "us-central1-b"]}), World()
        created = planned(there, world)
        names = build_resource_names(there, "l")
        (create,) = [effect for effect in created.effects if isinstance(effect, CreateInstance)]
        world.google.perform(replace(create, zones=("us-central1-b",)))
        assert created.record is not None
        intent = Intent(
            there.address,
            "instance",
            "+",
            (),
            "now",
            tuple(map(names.instance_resource_name, names.zones)),
            {"nonce": created.record["nonce"]},
        )
        again = planned(there, world, None, intent)
        assert (again.operation, again.effects) == (Operation.CHANGE, ())
        assert again.record is not None
        assert (again.record["zone"], again.record["nonce"]) == (
            "us-central1-b",
            created.record["nonce"],
        )

    def test_one_of_the_same_name_that_is_not_ours_is_never_touched(self) -> None:
        world = World()
        name = build_resource_names(place(), "l").instance_resource_name("us-central1-a")
        world.google.found[name] = {"name": name, "labels": {}, "state": "ACTIVE", "gceSetup": {}}
        assert any("provision did not create it" in why for why in refused(place(), world))

    def test_quota_and_capacity_are_told_apart(self) -> None:
        short = FakeCloud(rows=({"metric": "NVIDIA_L4_GPUS", "limit": 1.0, "usage": 1.0},))
        assert any("1 of 1 used" in why for why in refused(place(), World(short)))
        assert any(
            "none of the zones offers L4" in why
            for why in refused(place(), World(FakeCloud(cards=({"name": "nvidia-tesla-t4"},))))
        )

    @pytest.mark.parametrize(
        ("target", "fields", "words"),
        [
            ({"bucket": None}, {}, "`bucket` is not set"),
            ({"managed_euc": True}, {}, "managed end user credentials"),
            ({"image": "us-docker.pkg.dev/x/y:1"}, {}, "container images"),
            ({"subnet": "s", "zones": ["us-central1-a", "us-east1-b"]}, {}, "several"),
            ({}, {"cuda_toolkit": "12.8"}, "CUDA toolkit"),
            ({}, {"gpu": "RTX-4090"}, "Workbench does not offer RTX-4090"),
            ({"mirrors": {"pypi": "file:///srv/mirror"}}, {}, "where the instance cannot reach it"),
        ],
    )
    def test_what_is_refused(
        self, target: dict[str, Any], fields: dict[str, Any], words: str
    ) -> None:
        assert any(words in why for why in refused(place(target, **fields)))


class TestDestroy:
    def test_only_what_the_state_names_goes(self) -> None:
        world = World()
        state = made(place(), world)
        (action,) = DRIVERS["workbench"].destroy(place().address, FOLDER, Ledger(state))
        names = build_resource_names(place(), "l")
        assert action.effects == (
            DeleteInstance(names.instance_resource_name("us-central1-a"), "l"),
            DeleteObjects(names.folder),
        )

    @pytest.mark.parametrize(
        "forged",
        [{"instance": "production-db"}, {"bucket": "gs://other/"}, {"bucket": "gs://my-bucket/"}],
    )
    def test_a_forged_state_deletes_nothing(self, forged: dict[str, str]) -> None:
        world = World()
        state = made(place(), world)
        record = {**(state.resource(place().address, "instance") or {}), **forged}
        with pytest.raises(Refused, match="refusing to delete"):
            DRIVERS["workbench"].destroy(
                place().address,
                FOLDER,
                Ledger(state.with_record(place().address, "instance", record)),
            )

    def test_what_an_interrupted_run_may_have_left_is_named(self) -> None:
        intent = Intent(
            place().address,
            "instance",
            "+",
            (),
            "now",
            ("projects/p/locations/z/instances/provision-x",),
        )
        (action,) = DRIVERS["workbench"].destroy(
            place().address, FOLDER, Ledger(create_empty_state("l"), (intent,))
        )
        assert action.effects == (
            DeleteInstance("projects/p/locations/z/instances/provision-x", ""),
        )
