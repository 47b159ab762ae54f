"""What a change of a spec does to its targets: prices, and what `apply` would replace, as the
planners of the kinds decide it.
"""

from __future__ import annotations

from typing import Any

import pytest

from provision.plan import Operation
from provision.spec import Spec
from provision.target_changes import ChangedTarget, compare_targets
from provision.targets import TargetContext
from provision.targets.colab_enterprise.resource_names import build_template_names
from provision.targets.colab_enterprise.template_body import build_template_body, find_changes
from tests.targets.google import IMAGE
from tests.targets.test_workbench import FACTS, World, made, place, planned

OTHER_IMAGE = IMAGE.replace("2603", "2602")
ACCOUNT = "a@my-project.iam.gserviceaccount.com"
OWNER = {"mode": "single-user", "owner": "me@example.com"}
G2 = {"machine_type": "g2-standard-8"}
SAME: dict[str, Any] = {}

CHANGES: list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    (SAME, {"machine_type": "g2-standard-12"}, ()),
    (SAME, {"gpu": "T4", "machine_type": "n1-standard-8"}, ("machine_type",)),
    (SAME, {"image": OTHER_IMAGE}, ("image",)),
    (SAME, {"service_account": ACCOUNT}, ("service_account",)),
    (SAME, {"network": "net"}, ("network",)),
    ({"network": "net"}, {"network": "net", "subnet": "sub"}, ("subnet",)),
    (SAME, {"access": OWNER}, ("access",)),
    (SAME, {"data_disk": {"size": "500GiB"}}, ()),
    (SAME, {"data_disk": {"size": "100GiB"}}, ()),
    (SAME, {"data_disk": {"size": "50GiB"}}, ("data_disk",)),
    ({"data_disk": {"size": "500GiB"}}, SAME, ("data_disk",)),
    (SAME, {"data_disk": {"type": "ssd"}}, ("data_disk",)),
    (SAME, {"boot_disk": {"size": "200GiB"}}, ()),
    (SAME, {"boot_disk": {"size": "149GiB"}}, ("boot_disk",)),
    (SAME, {"public_ip": True}, ("public_ip",)),
    ({"public_ip": True}, SAME, ()),
    (SAME, {"zones": ["us-central1-a", "us-central1-b"]}, ()),
    (SAME, {"zones": ["us-central1-b"]}, ("zones",)),
    (SAME, {"tags": ["ssh"], "labels": {"team": "a"}, "idle_shutdown": "60m"}, ()),
    (SAME, {"shielded": {"secure_boot": True}, "metadata": {"a": "b"}}, ()),
    (SAME, {"max_lifetime": "8h", "on_failure": "keep"}, ()),
]
"""Fields of the target before and after, and those for which it is replaced."""


def compare(old: Spec | None, new: Spec | None) -> tuple[ChangedTarget, ...]:
    return compare_targets("spec", old, new, FACTS)


def workbench(**fields: Any) -> Spec:
    target = {
        "kind": "workbench",
        "project": "my-project",
        "zones": ["us-central1-a"],
        "image": IMAGE,
        "bucket": "gs://my-bucket/p",
        **G2,
        **fields,
    }
    document = {"gpu": "L4", "python": "3.12", "packages": ["torch"], "targets": {"wb": target}}
    return Spec.model_validate({"apiVersion": "provision/v1", "name": "test", **document})


@pytest.mark.parametrize(("before", "after", "fields"), CHANGES)
def test_an_instance_is_replaced_for_the_fields_that_the_planner_replaces_it_for(
    before: dict[str, Any], after: dict[str, Any], fields: tuple[str, ...]
) -> None:
    found = compare(workbench(**before), workbench(**after))
    assert [change.replaced_fields for change in found if change.replaced_fields] == (
        [fields] if fields else []
    )
    world = World()
    state = made(place({**G2, **before}), world)
    action = planned(place({**G2, **after}), world, state)
    assert (action.operation is Operation.REPLACE) == bool(fields), action


def test_of_several_zones_the_one_in_use_is_not_known() -> None:
    (change,) = compare(
        workbench(zones=["us-central1-a", "us-central1-b"]), workbench(zones=["us-central1-b"])
    )
    assert change.replaced_fields == ("zones (if the instance is in us-central1-a)",)


def test_a_subnet_that_is_named_without_its_region_follows_the_first_zone() -> None:
    network = {"network": "net", "subnet": "sub"}
    both = ["us-central1-a", "europe-west4-a"]
    (change,) = compare(workbench(zones=both, **network), workbench(zones=both[::-1], **network))
    assert change.replaced_fields == ("subnet",)


def test_the_newest_family_is_the_one_that_is_taken_without_an_image() -> None:
    newest = FACTS.newest_workbench_image().family
    assert compare(workbench(image=None), workbench(image=newest)) == ()
    assert compare(workbench(image=None), workbench(image=IMAGE))[0].replaced_fields == ("image",)


def test_prices_are_those_of_the_machines_that_apply_chooses() -> None:
    (change,) = compare(workbench(), workbench(machine_type="auto", gpu="T4"))
    assert change.before is not None
    assert change.after is not None
    assert (change.before.machine.name, change.before.region) == ("g2-standard-8", "us-central1")
    assert change.after.machine.name.startswith("n1-")
    assert 0.3 < change.after.dollars < change.before.dollars < 1
    (moved,) = compare(workbench(), workbench(zones=["europe-west4-a"]))
    assert moved.after is not None
    assert moved.after.region == "europe-west4"


def test_targets_that_are_new_removed_or_free() -> None:
    spec = workbench()
    (new,) = compare(None, spec)
    assert (new.address, new.is_new, new.before, new.after is not None) == (
        *("spec/wb", True, None),
        True,
    )
    (removed,) = compare(spec, None)
    assert (removed.is_removed, removed.after, removed.before) == (True, None, new.after)
    document = {"gpu": "none", "python": "3.12", "packages": ["torch"]}
    local = Spec.model_validate({"apiVersion": "provision/v1", "name": "test", **document})
    assert compare(None, local) == ()
    assert compare(spec, spec) == ()


def test_another_kind_replaces_the_target() -> None:
    document = workbench().model_dump(mode="json", exclude_unset=True)
    document["targets"]["wb"] = {
        "kind": "colab-enterprise",
        "project": "my-project",
        "region": "us-central1",
    }
    (change,) = compare(workbench(), Spec.model_validate(document))
    assert change.replaced_fields == ("kind",)


def enterprise(fields: dict[str, Any]) -> tuple[Spec, TargetContext]:
    own = {"kind": "colab-enterprise", "project": "my-project", "region": "us-central1"}
    context = place({"machine_type": "g2-standard-4"})
    document = {
        "apiVersion": "provision/v1",
        "name": "test",
        "gpu": "L4",
        "python": "3.12",
        "packages": ["torch"],
        "targets": {"wb": {**own, "machine_type": "g2-standard-4", **fields}},
    }
    spec = Spec.model_validate(document)
    changed = TargetContext(
        spec.for_target("wb"), "wb", "spec", context.folder, context.lock, "linux-x86_64"
    )
    return spec, changed


@pytest.mark.parametrize(
    ("after", "fields"),
    [
        ({"machine_type": "g2-standard-8"}, ("machine_type",)),
        ({"gpu": "T4", "machine_type": "n1-standard-4"}, ("machine_type", "gpu")),
        ({"data_disk": {"size": "200GiB"}}, ("data_disk",)),
        ({"data_disk": {"type": "ssd"}}, ("data_disk",)),
        ({"network": "net"}, ("network",)),
        ({"network": "net", "subnet": "sub"}, ("network", "subnet")),
        ({"internet": False}, ("internet",)),
        ({"idle_shutdown": "1h"}, ("idle_shutdown",)),
        ({"secure_boot": True}, ("secure_boot",)),
        ({"end_user_credentials": True}, ("end_user_credentials",)),
        ({"env": {"A": "b"}}, ()),
        ({"max_duration": "2h"}, ()),
    ],
)
def test_a_template_is_replaced_for_the_fields_that_no_mask_can_name(
    after: dict[str, Any], fields: tuple[str, ...]
) -> None:
    old, old_context = enterprise({})
    new, new_context = enterprise(after)
    found = [change.replaced_fields for change in compare(old, new) if change.replaced_fields]
    assert found == ([fields] if fields else [])

    def body(spec: Spec, context: TargetContext) -> dict[str, Any]:
        target: Any = spec.targets["wb"]
        card = FACTS.card(str((target.gpu or spec.gpu).type))
        names = build_template_names(context, "l")
        return build_template_body(context, names, target.machine_type, card, FACTS)

    sent = body(old, old_context)
    immutable = {
        change.field.partition(".")[0]
        for change in find_changes(body(new, new_context), sent, sent)
        if not change.mask
    }
    assert immutable == set(fields)
