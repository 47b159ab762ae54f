"""Instances over zones, against a look-alike of the service; every scenario over gRPC and over
REST.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from provision.adapters.google.creation_attempts import InstanceNotCreated, format_attempts
from provision.adapters.google.errors import CloudError
from provision.adapters.google.notebooks import NotebooksApi
from provision.errors import ExternalError
from provision.sandbox.lifecycle import Delays
from tests.adapters.cloud.conftest import BODIES, INSTANCE, PROJECT, REQUEST, ZONES, Begin, instance


def happened(attempts: Any) -> list[tuple[str, str]]:
    return [(one.zone, one.outcome) for one in attempts]


def test_the_first_zone_that_has_it(begin: Begin) -> None:
    cloud = begin()
    placed = cloud.create()
    assert placed.zone == "us-central1-a"
    assert placed.instance["state"] == "ACTIVE"
    assert placed.instance["gceSetup"]["acceleratorConfigs"] == [
        {"type": "NVIDIA_L4", "coreCount": "1"}
    ]
    assert happened(placed.attempts) == [("us-central1-a", "created")]
    assert cloud.names() == [cloud.name("us-central1-a")]
    assert [line.split(":")[0] for line in cloud.lines][:2] == ["request", "capacity"]
    assert f"boot: {INSTANCE} is ACTIVE" in cloud.lines


def test_the_next_zone_on_stockout_and_the_shell_is_gone(begin: Begin) -> None:
    cloud = begin("stockout:us-central1-a")
    placed = cloud.create()
    assert placed.zone == "us-central1-b"
    assert happened(placed.attempts) == [
        ("us-central1-a", "capacity"),
        ("us-central1-b", "created"),
    ]
    assert cloud.names() == [cloud.name("us-central1-b")]
    assert (
        format_attempts(placed.attempts)
        .splitlines()[0]
        .startswith("us-central1-a  capacity  the zone currently has no capacity")
    )
    assert f"delete: {INSTANCE}" in cloud.lines


def test_the_zone_that_the_service_names_comes_first(begin: Begin) -> None:
    zones = ("us-central1-a", "us-east1-b", "us-central1-b")
    assert begin("stockout:us-central1-a").create(zones).zone == "us-central1-b"


def test_no_zone_has_it(begin: Begin) -> None:
    cloud = begin(*(f"stockout:{zone}" for zone in ZONES))
    with pytest.raises(InstanceNotCreated) as raised:
        cloud.create()
    assert [zone for zone, _ in happened(raised.value.attempts)] == list(ZONES)
    assert raised.value.what == "none of 3 zones had the machine"
    assert raised.value.why.count("  capacity  ") == 3
    assert raised.value.hint.endswith("nothing was left running")
    assert raised.value.still_running == ()
    assert cloud.names() == []


def test_a_quota_skips_the_region(begin: Begin) -> None:
    placed = begin("quota:us-central1").create()
    assert happened(placed.attempts) == [("us-central1-a", "quota"), ("us-east1-b", "created")]


@pytest.mark.parametrize(
    ("fault", "kind", "hint"),
    [
        ("quota-global", "quota", "project-info describe"),
        ("act-as", "act-as", "roles/iam.serviceAccountUser"),
        ("secure-boot", "policy", "secure_boot: true"),
        ("permission", "permission", "roles/notebooks.admin"),
        (
            "api-disabled",
            "api-disabled",
            "gcloud services enable notebooks.googleapis.com --project=my-project",
        ),
    ],
)
def test_what_no_other_zone_changes_stops_at_once(
    begin: Begin, fault: str, kind: str, hint: str
) -> None:
    cloud = begin(fault)
    with pytest.raises(CloudError) as raised:
        cloud.create()
    assert raised.value.failure.kind == kind
    assert hint in raised.value.hint
    assert sum(line.startswith("request:") for line in cloud.lines) <= 1
    if kind not in ("permission", "api-disabled"):
        assert cloud.names() == []


@pytest.mark.parametrize("fault", ["create-aborted", "create-internal"])
def test_what_may_pass_is_asked_once_more(begin: Begin, fault: str) -> None:
    cloud = begin(fault)
    with pytest.raises(InstanceNotCreated) as raised:
        cloud.create()
    assert [zone for zone, _ in happened(raised.value.attempts)] == ["us-central1-a"] * 2
    assert cloud.names() == []


@pytest.mark.parametrize(
    "fault",
    [
        "busy:2",
        "rate:2",
        "error-500:2",
        "unavailable:2",
        "token-expiry:2",
        "token-expiry:4",
        "hidden:3",
        "lost-operation",
    ],
)
def test_what_passes_is_waited_for(begin: Begin, fault: str) -> None:
    cloud = begin(fault)
    placed = cloud.create()
    assert happened(placed.attempts) == [("us-central1-a", "created")]
    assert cloud.names() == [cloud.name("us-central1-a")]


def test_retry_after_is_kept(begin: Begin) -> None:
    cloud = begin("rate:1", first_pause_s=0.01)
    cloud.create()
    assert max(cloud.clock.waits) >= 1


@pytest.mark.parametrize("fault", ["unavailable:1000", "busy:1000", "error-500:1000"])
def test_patience_ends(begin: Begin, fault: str) -> None:
    cloud = begin(fault)
    with pytest.raises(CloudError) as raised:
        cloud.create()
    assert "gave up after" in raised.value.why
    assert cloud.clock.now <= 400
    assert "Traceback" not in raised.value.why


def test_an_operation_that_never_ends_is_kept_and_named(begin: Begin) -> None:
    cloud = begin("hang")
    with pytest.raises(InstanceNotCreated) as raised:
        cloud.create()
    assert raised.value.failure.kind == "slow"
    assert "40 minutes" in raised.value.what
    assert raised.value.still_running == (cloud.name("us-central1-a"),)
    assert (
        "may exist and be costing money: gcloud workbench instances describe" in raised.value.hint
    )
    assert (
        "show it: gcloud workbench instances describe "
        f"{cloud.name('us-central1-a').rpartition('/')[2]} --project=" in raised.value.hint
    )
    assert 2400 - 15 <= cloud.clock.now <= 2500


def test_stuck_provisioning_names_where_to_look(begin: Begin) -> None:
    cloud = begin("stuck-provisioning")
    with pytest.raises(InstanceNotCreated) as raised:
        cloud.create()
    assert raised.value.failure.kind == "stuck"
    assert "still PROVISIONING after 20 minutes" in raised.value.what
    assert "get-serial-port-output" in raised.value.hint
    assert "gcloud workbench instances diagnose" in raised.value.hint
    assert cloud.names() == [cloud.name("us-central1-a")]


def test_the_console_says_why_it_is_stuck(begin: Begin) -> None:
    cloud = begin("stuck-provisioning")
    assert cloud.sandbox.store is not None
    cloud.sandbox.store.append_serial(
        cloud.name("us-central1-a"),
        "notebook c2d-startup[431]: Proxy Registration failed. Unable to get Service "
        "Account from VM\n",
    )
    with pytest.raises(InstanceNotCreated) as raised:
        cloud.create()
    assert "could not register with the JupyterLab proxy" in raised.value.why
    assert "c2d-startup[431]: Proxy Registration failed" in raised.value.why
    assert "Private Google Access" in raised.value.hint


def test_one_of_somebody_else_is_not_touched(begin: Begin) -> None:
    cloud = begin("exists")
    with pytest.raises(CloudError) as raised:
        cloud.create()
    assert raised.value.failure.kind == "foreign"
    assert cloud.names() == [cloud.name("us-central1-a")]
    with pytest.raises(CloudError) as raised:
        cloud.create()
    assert raised.value.failure.kind == "foreign"
    assert cloud.names() == [cloud.name("us-central1-a")]


def test_ours_is_adopted_from_any_zone(begin: Begin) -> None:
    cloud = begin()
    first = cloud.create(("us-central1-b",))
    again = cloud.create()
    assert (again.zone, happened(again.attempts)) == (
        "us-central1-b",
        [("us-central1-b", "adopted")],
    )
    assert again.instance["id"] == first.instance["id"]
    assert cloud.names() == [cloud.name("us-central1-b")]


def test_the_adopted_one_gets_the_run_that_is_wanted_now(begin: Begin) -> None:
    cloud = begin()
    cloud.create()
    body = instance()
    body["gceSetup"]["metadata"]["provision-run"] = '{"nonce":"2"}'
    body["labels"]["provision-lock"] = "fedcba987654"
    again = cloud.create(body=body)
    assert again.instance["gceSetup"]["metadata"]["provision-run"] == '{"nonce":"2"}'
    assert again.instance["labels"]["provision-lock"] == "fedcba987654"
    assert again.instance["state"] == "ACTIVE"
    assert cloud.lines.count(f"stop: {INSTANCE}") == 1


def test_a_stopped_one_of_ours_is_started_and_never_deleted(begin: Begin) -> None:
    cloud = begin()
    cloud.create()
    cloud.services.operations(cloud.lines.append).stop(cloud.name("us-central1-a"))
    assert cloud.create().instance["state"] == "ACTIVE"


def test_no_capacity_to_start_again_keeps_the_disks(begin: Begin) -> None:
    cloud = begin("stockout:us-central1-b")
    name = cloud.name("us-central1-b")
    store = cloud.sandbox.store
    assert store is not None
    cloud.create(("us-central1-a",))
    cloud.services.operations(cloud.lines.append).stop(cloud.name("us-central1-a"))
    with store.edit_data() as data:  # it was made there before the zone ran out
        record = data["instances"].pop(cloud.name("us-central1-a"))
        record["body"]["name"] = name
        data["instances"][name] = record
    with pytest.raises(InstanceNotCreated) as raised:
        cloud.create()
    assert raised.value.failure.kind == "capacity"
    assert raised.value.still_running == (name,)
    assert cloud.names() == [name]


def test_a_creation_that_was_cut_short_is_waited_for(begin: Begin) -> None:
    cloud = begin(sleep=time.sleep, clock=time.monotonic, delays=Delays(operation=0.3))
    cloud.services.notebooks.create(
        f"projects/{PROJECT}/locations/us-central1-b", INSTANCE, instance(), REQUEST
    )
    placed = cloud.create()
    assert (placed.zone, happened(placed.attempts)) == (
        "us-central1-b",
        [("us-central1-b", "adopted")],
    )


@pytest.mark.long(after=1)
def test_a_creation_that_was_cut_short_and_fails_leaves_no_shell(begin: Begin) -> None:
    cloud = begin(
        "stockout:us-central1-a",
        sleep=time.sleep,
        clock=time.monotonic,
        delays=Delays(operation=0.3),
    )
    cloud.services.notebooks.create(
        f"projects/{PROJECT}/locations/us-central1-a", INSTANCE, instance(), REQUEST
    )
    placed = cloud.create()
    assert happened(placed.attempts) == [
        ("us-central1-a", "capacity"),
        ("us-central1-b", "created"),
    ]
    assert cloud.names() == [cloud.name("us-central1-b")]


def test_a_shell_whose_creation_failed_while_nobody_looked_is_cleared(begin: Begin) -> None:
    cloud = begin("stockout:us-central1-a")
    cloud.services.notebooks.create(
        f"projects/{PROJECT}/locations/us-central1-a", INSTANCE, instance(), REQUEST
    )
    assert cloud.services.instance(cloud.name("us-central1-a")) is not None
    assert happened(cloud.create().attempts) == [
        ("us-central1-a", "capacity"),
        ("us-central1-b", "created"),
    ]
    assert cloud.names() == [cloud.name("us-central1-b")]


def test_one_that_is_being_made_and_not_yet_shown_is_not_made_twice(begin: Begin) -> None:
    cloud = begin("hidden:4", sleep=time.sleep, clock=time.monotonic, delays=Delays(operation=0.3))
    cloud.services.notebooks.create(
        f"projects/{PROJECT}/locations/us-central1-b", INSTANCE, instance(), REQUEST
    )
    assert cloud.create().zone == "us-central1-b"
    assert cloud.names() == [cloud.name("us-central1-b")]


def test_a_request_that_the_service_remembers_is_no_instance(begin: Begin) -> None:
    cloud = begin()
    cloud.services.operations(lambda line: None).delete(cloud.create().name)
    assert happened(cloud.create().attempts) == [("us-central1-a", "created")]
    assert cloud.names() == [cloud.name("us-central1-a")]
    assert cloud.clock.now < 5


def test_every_way_out_is_told_once_and_what_each_zone_said(begin: Begin) -> None:
    cloud = begin("stockout:us-central1-a", "stockout:us-central1-b", "quota:us-east1")
    with pytest.raises(InstanceNotCreated) as raised:
        cloud.create()
    assert [word for _, word in happened(raised.value.attempts)] == [
        "capacity",
        "capacity",
        "quota",
    ]
    assert raised.value.hint.count("list more zones") == 1
    assert "iam-admin/quotas" in raised.value.hint
    assert "does not have enough resources" in raised.value.why
    assert "Quota 'NVIDIA_L4_GPUS' exceeded" in raised.value.why


def test_before_anything_is_asked_for_that_is_said(begin: Begin) -> None:
    with pytest.raises(InstanceNotCreated) as raised:
        begin("permission").create()
    assert raised.value.hint.endswith("nothing was requested")


def test_a_stopped_one_takes_the_new_run_before_it_starts(begin: Begin) -> None:
    cloud = begin()
    cloud.create()
    cloud.services.operations(lambda line: None).stop(cloud.name("us-central1-a"))
    cloud.lines.clear()
    assert (
        cloud.create(body=instance(metadata={"provision-run": '{"nonce":"3"}'})).instance["state"]
        == "ACTIVE"
    )
    assert [line.split(":")[0] for line in cloud.lines][:3] == ["adopt", "update", "start"]


def test_a_machine_changes_while_stopped_and_runs_again(begin: Begin) -> None:
    cloud = begin()
    name = cloud.create().name
    cloud.lines.clear()
    cloud.services.operations(cloud.lines.append).update(
        name,
        {"gceSetup": {"machineType": "g2-standard-16"}},
        "gceSetup.machineType",
    )
    found = cloud.services.instance(name)
    assert found is not None
    assert (found["state"], found["gceSetup"]["machineType"]) == ("ACTIVE", "g2-standard-16")
    assert [line.split(":")[0] for line in cloud.lines][:3] == ["stop", "update", "start"]


def test_metadata_and_labels_change_in_place(begin: Begin) -> None:
    cloud = begin()
    name = cloud.create().name
    cloud.lines.clear()
    body = {
        "labels": {"provision-lock": "fedcba987654"},
        "gceSetup": {"metadata": {"idle-timeout-seconds": "", "extra": "1"}},
    }
    operations = cloud.services.operations(cloud.lines.append)
    operations.update(name, body, "labels,gceSetup.metadata")
    found = cloud.services.instance(name)
    assert found is not None
    assert found["labels"]["provision-lock"] == "fedcba987654"
    assert found["labels"]["provision"] == "1"
    assert found["gceSetup"]["metadata"]["extra"] == "1"
    assert "idle-timeout-seconds" not in found["gceSetup"]["metadata"]
    assert cloud.lines == ["update: labels,gce_setup.metadata"]


def test_a_change_that_is_refused_says_that_it_is_stopped(begin: Begin) -> None:
    cloud = begin()
    name = cloud.create().name
    with pytest.raises(CloudError) as raised:
        cloud.services.operations(cloud.lines.append).update(
            name,
            {"gceSetup": {"machineType": "n1-standard-4", "bootDisk": {}}},
            "gceSetup.machineType,gceSetup.bootDisk",
        )
    assert raised.value.failure.kind == "refused"
    assert "is now stopped" in raised.value.why


def test_stop_start_and_delete_are_safe_to_repeat(begin: Begin) -> None:
    cloud = begin()
    name = cloud.create().name
    for _ in range(2):
        cloud.services.operations(cloud.lines.append).stop(name)
        found = cloud.services.instance(name)
        assert found is not None
        assert found["state"] == "STOPPED"
    for _ in range(2):
        cloud.services.operations(cloud.lines.append).start(name)
        found = cloud.services.instance(name)
        assert found is not None
        assert found["state"] == "ACTIVE"
    for _ in range(2):
        cloud.services.operations(cloud.lines.append).delete(name)
        assert cloud.services.instance(name) is None
    with pytest.raises(CloudError) as raised:
        cloud.services.operations(cloud.lines.append).stop(name)
    assert raised.value.failure.kind == "gone"


@pytest.mark.parametrize(
    "project", ["my-project/../../v1/x", "my-project?x=", "my project", "../x", "my-project#"]
)
def test_a_name_that_would_lead_elsewhere_is_refused(begin: Begin, project: str) -> None:
    services = begin().services
    with pytest.raises(ExternalError, match="is not a valid resource name"):
        NotebooksApi(services.rest, "http://127.0.0.1:9").get(
            f"projects/{project}/locations/us-central1-a/instances/i"
        )
    with pytest.raises(ExternalError, match="is not a valid resource name"):
        services.quotas(project, "us-central1")


@pytest.mark.parametrize("which", BODIES)
def test_every_body_is_taken(begin: Begin, which: str) -> None:
    cloud = begin()
    got = cloud.create(("us-central1-a",), BODIES[which]).instance["gceSetup"]
    wanted = BODIES[which]["gceSetup"]
    assert {
        field: got.get(field)
        for field in ("acceleratorConfigs", "dataDisks", "reservationAffinity")
    } == {
        field: wanted.get(field)
        for field in ("acceleratorConfigs", "dataDisks", "reservationAffinity")
    }


@pytest.mark.parametrize(
    ("fault", "words", "most", "least"),
    [
        (
            "hang",
            "still waiting for create in us-central1-a, for 2 minutes, at most 40 minutes",
            40,
            30,
        ),
        ("stuck-provisioning", ", at most 20 minutes", 20, 15),
    ],
)
def test_a_long_wait_is_said_each_minute_with_its_limit(
    begin: Begin, fault: str, words: str, most: int, least: int
) -> None:
    cloud = begin(fault)
    with pytest.raises(InstanceNotCreated):
        cloud.create()
    said = [line for line in cloud.lines if line.startswith("still ")]
    assert any(words in line for line in said)
    assert least <= len(said) <= most
