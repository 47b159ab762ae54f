"""Workbench instances, their images, network and price: both sides of each threshold, and what is
not known.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from provision.diagnostics import Severity
from provision.facts import Facts
from provision.facts.lazy_tables import load_prices
from provision.facts.machines import find_machines
from provision.facts.schema_platforms import split_image_name
from provision.rules import run_rules
from provision.rules.examples import example_spec
from provision.rules.workbench_instances import available_gpu_counts
from tests.rules.conftest import Ask

N1 = {"machine_type": "n1-standard-4"}


def test_an_instance_as_it_should_be_has_no_findings(ask: Ask) -> None:
    assert ask(example_spec()).ids == []


def test_the_smallest_instance_hears_what_is_missing(ask: Ask) -> None:
    text = (
        'gpu: L4\npython: "3.12"\npackages: [torch]\ntargets: {wb: {kind: workbench, project: '
        "my-project, zones: [us-central1-a]}}\n"
    )
    judged = ask(text)
    assert judged.ids == ["GCP011", "GCP013", "GCP021", "IMG002", "NET001"]
    assert {
        finding.id for finding in judged.findings if finding.severity is not Severity.WARNING
    } == {"GCP021"}
    assert {judged.at(finding) for finding in judged.findings} == {"wb"}


def test_other_targets_are_not_judged(ask: Ask) -> None:
    text = (
        'gpu: L4\npython: "3.12"\npackages: [torch]\ncost: {limit_per_hour: 0.01}\ntargets: '
        '{here: {kind: local}, c: {kind: colab, runtime: "2026.07"}}\n'
    )
    assert ask(text).area("GCP", "NET", "CST") == []


@pytest.mark.parametrize(
    ("gpu", "machine", "ids"),
    [
        ("T4", "n1-standard-32", []),  # up to 48 vCPUs
        ("T4", "n1-standard-64", ["GCP002"]),
        ("T4:4", "n1-standard-64", []),
        ("V100", "n1-highmem-8", []),  # up to 12 vCPUs and 78 GiB
        ("V100", "n1-standard-16", ["GCP002"]),
        ("T4", "g2-standard-8", ["GCP002"]),
        ("L4", "n1-standard-8", ["GCP002"]),
        ("L4", "n2-standard-8", ["GCP002"]),
        ("L4:8", "g2-standard-96", []),
        ("none", "g2-standard-8", ["GCP002"]),
        ("none", "n1-standard-8", []),
        ("A100", "a2-highgpu-1g", []),  # an alias
        ("RTX-PRO-6000", "g4-standard-48", []),
        ("RTX-PRO-6000", "g4-standard-24", ["GCP002", "GCP003"]),  # half a card
        ("H100-MEGA-80GB:8", "a3-megagpu-8g", []),
    ],
)
def test_machine_types_carry_cards(ask: Ask, gpu: str, machine: str, ids: list[str]) -> None:
    assert ask(example_spec(f"gpu: {gpu}\n", machine_type=machine)).area("GCP") == ids


def test_the_nearest_machine_type_is_offered_and_fits(ask: Ask) -> None:
    for gpu, machine, meant in (
        ("L4", "n2-standard-16", "g2-standard-16"),
        ("T4:4", "n1-standard-96", ""),
        ("V100", "n1-standard-64", "n1-standard-8"),
    ):
        judged = ask(example_spec(f"gpu: {gpu}\n", machine_type=machine))
        if not meant:
            assert judged.area("GCP") == []
            continue
        finding = judged.one("GCP002")
        assert f"set `machine_type: {meant}`" in finding.help
        assert finding.fix is not None
        (text,) = judged.source.apply_fixes([finding.fix]).values()
        assert ask(text).area("GCP") == []


def test_every_offered_number_of_cards_has_a_machine(facts: Facts) -> None:
    t4, b200 = facts.card("T4"), facts.card("B200")
    assert t4 is not None
    assert b200 is not None
    assert available_gpu_counts(facts, t4, reserved=False) == (1, 2, 4)
    assert (
        available_gpu_counts(facts, b200, reserved=False),
        available_gpu_counts(facts, b200, reserved=True),
    ) == ((), (8,))
    assert all(machine.family == "n1" for machine in find_machines(facts, t4, 1, reserved=False))


def test_a_card_that_needs_a_reservation_takes_one(ask: Ask) -> None:
    found = ask(example_spec("gpu: B200:8\n", machine_type="auto", zones="[us-central1-b]")).one(
        "GCP005"
    )
    assert found.message == "there is no Workbench machine type with 8 x B200 without a reservation"
    assert found.help.startswith("set a reservation")


def test_a_card_without_a_row_is_not_judged(ask: Ask) -> None:
    assert ask(example_spec("gpu: Z999\n", machine_type="auto")).ids == ["GPU001"]
    assert ask(example_spec("gpu: Z999\n", machine_type="g2-standard-8")).ids == ["GPU001"]


def test_a_region_without_known_zones_is_let_be(ask: Ask) -> None:
    assert (
        ask(example_spec("gpu: RTX-PRO-6000\n", machine_type="auto", zones="[asia-east1-x]")).ids
        == []
    )


def test_zones_are_named_from_near_to_far(ask: Ask) -> None:
    def zones(zone: str, gpu: str = "L4") -> str:
        return (
            ask(example_spec(f"gpu: {gpu}\n", machine_type="auto", zones=f"[{zone}]"))
            .one("GCP007")
            .help
        )

    assert zones("us-central1-f") == "use us-central1-a, us-central1-b or us-central1-c"
    assert zones("us-east5-a").startswith("use us-east1-b")
    assert zones("europe-north1-a").startswith("use europe-west1-b")
    assert zones("africa-south1-a").startswith("use asia-east1-a")


def test_one_zone_with_the_card_makes_the_others_a_warning(ask: Ask) -> None:
    both = ask(example_spec(zones="[us-central1-f, us-central1-a]")).of("GCP007")
    assert [finding.severity for finding in both] == [Severity.WARNING]
    neither = ask(example_spec(zones="[us-central1-f, europe-north1-a]")).of("GCP007")
    assert [finding.severity for finding in neither] == [Severity.ERROR, Severity.ERROR]


@pytest.mark.parametrize(
    ("field", "value", "ids"),
    [
        ("idle_shutdown", "10m", ["GCP010"]),
        ("idle_shutdown", "599s", ["GCP009", "GCP010"]),
        ("idle_shutdown", "1440m", []),
        ("idle_shutdown", "1441m", ["GCP009"]),
        ("max_lifetime", "30m", ["GCP010"]),
        ("max_lifetime", "31m", []),
    ],
)
def test_bounds_of_time(ask: Ask, field: str, value: str, ids: list[str]) -> None:
    assert ask(example_spec(**{field: value})).ids == ids


def test_idling_is_said_only_of_work_outside_a_notebook(ask: Ask) -> None:
    for launcher, ids in (
        ("auto", []),
        ("python", []),
        ("torchrun", ["GCP009"]),
        ("accelerate", ["GCP009"]),
    ):
        judged = ask(
            example_spec(f"gpu: L4\ntraining: {{launcher: {launcher}}}\n", idle_shutdown="7h")
        )
        assert judged.ids == ids
        assert all(finding.severity is Severity.INFO for finding in judged.findings)


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("project", "a1234", True),
        ("project", "a12345", False),
        ("project", "a" * 30, False),
        ("project", "a" * 31, True),
        ("project", "my-project-", True),
        ("project", '"123456789"', True),
        ("bucket", "gs://abc", False),
        ("bucket", f"gs://{'a' * 63}", False),
        ("bucket", f"gs://{'a' * 64}", True),
        ("bucket", "gs://abc-/x", True),
        ("bucket", "gs://a_b.example.com/x/y", False),
        ("network", "projects/host-project/global/networks/vpc", False),
        ("network", "VPC", True),
        ("subnet", "projects/host-project/regions/us-central1/subnetworks/ml", False),
        ("subnet", "regions/us-central1/subnetworks/ml", True),
        ("reservation", "projects/other-project/reservations/h100", False),
        ("reservation", "other-project/h100", True),
        ("service_account", "trainer@my-project.iam.gserviceaccount.com", False),
        ("service_account", "trainer", True),
        (
            "data_disk",
            "{kms_key: projects/p12345/locations/us-central1/keyRings/r/cryptoKeys/k}",
            False,
        ),
        ("boot_disk", "{kms_key: projects/p12345/locations/us-central1/keyRings/r}", True),
    ],
)
def test_names_of_resources(ask: Ask, field: str, value: str, found: bool) -> None:
    assert ("GCP019" in ask(example_spec(**{field: value})).ids) is found


@pytest.mark.parametrize(
    ("location", "ids"),
    [
        ("us-central1", []),
        ("us-east1", ["GCP008"]),
        ("global", []),
        ("us", []),
        ("ca", []),
        ("nam4", []),
        ("europe-west4", ["GCP008"]),
    ],
)
def test_keys_lie_where_disks_do(ask: Ask, location: str, ids: list[str]) -> None:
    assert (
        ask(
            example_spec(
                boot_disk=f"{{kms_key: "
                f"projects/my-project/locations/{location}/keyRings/r/cryptoKeys/k}}"
            )
        ).ids
        == ids
    )


@pytest.mark.parametrize(
    ("labels", "ids"),
    [
        ("{a: ''}", []),
        ("{straße: größe}", []),
        ("{2nd: a}", ["GCP015"]),
        ("{a.b: c}", ["GCP015"]),
        ("{a: B}", ["GCP015"]),
        ("{" + ", ".join(f"l{n}: a" for n in range(64)) + "}", []),
        ("{" + ", ".join(f"l{n}: a" for n in range(65)) + "}", ["GCP015"]),
    ],
)
def test_labels(ask: Ask, labels: str, ids: list[str]) -> None:
    assert ask(example_spec(labels=labels)).ids == ids


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ('{notebook-disable-root: "true"}', False),
        ('{version: "1"}', True),
        ('{versions: "1"}', False),
        ('{notebooks-api-url: "1"}', True),
        ('{agent-health-check-enabled: "true"}', True),
        ('{provision-note: "1"}', True),
        ('{startup-script: "#!/bin/sh"}', False),
        ("{%s: a}" % ("k" * 128), False),
        ("{%s: a}" % ("k" * 129), True),
        ("{" + ", ".join(f"k{n}: {'a' * 58252}" for n in range(9)) + "}", False),  # 524 286 bytes
        ("{" + ", ".join(f"k{n}: {'a' * 58253}" for n in range(9)) + "}", True),
    ],
)
def test_metadata(ask: Ask, metadata: str, found: bool) -> None:
    assert ("GCP017" in ask(example_spec(metadata=metadata)).ids) is found


@pytest.mark.parametrize(("name", "found"), [("a" * 60, False), ("a" * 61, True)])
def test_the_name_of_an_instance(ask: Ask, name: str, found: bool) -> None:
    assert ("GCP014" in ask(example_spec(f"name: {name}\ngpu: L4\n")).ids) is found


@pytest.mark.parametrize(
    ("image", "meant"),
    [
        ("workbench-instances-2603-20261004-2157-rc0", ("workbench-instances-2603", "20261004")),
        ("workbench-instances-v20260713", ("workbench-instances", "20260713")),
        ("workbench-instances-2603", ("workbench-instances-2603", "")),
        ("workbench-instances", ("workbench-instances", "")),
    ],
)
def test_the_family_of_an_image(image: str, meant: tuple[str, str]) -> None:
    assert split_image_name(image) == meant


@pytest.mark.parametrize(
    ("field", "day", "severity", "words"),
    [
        (
            "end_of_support",
            "2026-11",
            None,
            "",
        ),  # the table is of 2026-11-20: the month is not over
        ("end_of_support", "2026-10", Severity.WARNING, "out of support"),
        ("end_of_support", "2026-11-19", Severity.WARNING, "out of support"),
        ("end_of_support", "2026-11-20", None, ""),
        ("end_of_availability", "2026-11-19", Severity.ERROR, "unavailable"),
    ],
)
def test_support_ends_by_the_day_of_the_table(
    ask: Ask, facts: Facts, field: str, day: str, severity: Severity | None, words: str
) -> None:
    case = ask(example_spec()).case
    row = facts.images["workbench-instances-2603"]
    ended = facts.with_tables(images={**facts.images, row.family: row._replace(**{field: day})})
    found = [finding for finding in run_rules(replace(case, facts=ended)) if finding.id == "IMG003"]
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    assert all(words in finding.message for finding in found)


def test_deep_learning_images_are_not_workbenchs(ask: Ask) -> None:
    judged = ask(example_spec(image="pytorch-2-0"))
    assert judged.one("IMG004").severity is Severity.WARNING
    assert judged.one("IMG003").severity is Severity.ERROR  # and gone


def test_cost_adds_the_card_of_an_n1_machine(ask: Ask) -> None:
    rows = {
        (row.item, row.card): row.on_demand for row in load_prices() if row.region == "us-central1"
    }
    each = rows["n1-standard-4", ""] + rows["gpu-attached-to-n1", "T4"]
    found = ask(example_spec("gpu: T4\ncost: {limit_per_hour: 0.5}\n", **N1)).one("CST001")
    assert f"costs ${each:.2f} per hour in us-central1 (as of 2026-07-30)" in found.message
    assert ask(example_spec(f"gpu: T4\ncost: {{limit_per_hour: {each}}}\n", **N1)).ids == []
    assert "CST001" in ask(example_spec(f"gpu: T4:2\ncost: {{limit_per_hour: {each}}}\n", **N1)).ids


def test_cost_over_the_limit_in_some_zones_is_a_warning(ask: Ask) -> None:
    text = example_spec(
        "gpu: L4\ncost: {limit_per_hour: 0.9}\n", zones="[us-central1-a, europe-west3-a]"
    )
    assert ask(text).one("CST001").severity is Severity.WARNING
    assert ask(text.replace("0.9}", "0.8}")).one("CST001").severity is Severity.ERROR


def test_a_zone_without_a_price_is_not_within_the_limit(ask: Ask) -> None:
    text = example_spec(
        "gpu: A100-80GB\ncost: {limit_per_hour: 4}\n",
        machine_type="auto",
        zones="[us-west1-a, us-central1-a]",
    )
    assert ask(text).one("CST001").severity is Severity.ERROR


def test_cost_names_what_is_within_the_limit(ask: Ask) -> None:
    found = ask(example_spec("gpu: L4\ncost: {limit_per_hour: 0.8}\n")).one("CST001")
    assert found.help == "use g2-standard-4 in us-central1 for $0.7068, or raise the limit to $0.86"
    assert (
        ask(
            example_spec("gpu: L4\ncost: {limit_per_hour: 0.8}\n", machine_type="g2-standard-4")
        ).ids
        == []
    )
    assert (
        "use a different GPU"
        in ask(example_spec("gpu: L4\ncost: {limit_per_hour: 0.1}\n")).one("CST001").help
    )


def test_a_price_without_a_row_is_unknown(ask: Ask) -> None:
    assert (
        ask(example_spec("gpu: none\ncost: {limit_per_hour: 9}\n", machine_type="n2-standard-8"))
        .one("CST001")
        .severity
        is Severity.UNKNOWN
    )


def test_a_price_that_is_missing_for_one_region_or_an_unknown_machine_is_unknown(ask: Ask) -> None:
    some = ask(
        example_spec(
            "gpu: A100-80GB\ncost: {limit_per_hour: 99}\n",
            machine_type="auto",
            zones="[us-west1-a, us-central1-a]",
        )
    ).one("CST001")
    assert (some.severity, some.message) == (
        Severity.UNKNOWN,
        "the price of a suitable machine in us-west1 is unknown",
    )
    other = ask(
        example_spec("gpu: L4\ncost: {limit_per_hour: 99}\n", machine_type="g2-standard-5")
    ).one("CST001")
    assert (other.severity, other.message) == (
        Severity.UNKNOWN,
        "the price of g2-standard-5 in us-central1 is unknown",
    )


def test_mirrors_are_needed_only_without_another_way(ask: Ask) -> None:
    mirrors = '{pypi: "https://packages.example.com/simple"}'
    assert ask(example_spec(nat=None, mirrors=mirrors)).ids == ["NET003"]
    assert ask(example_spec(nat="true", mirrors=mirrors)).ids == []
    assert ask(example_spec(nat=None, public_ip="true", mirrors=mirrors)).ids == ["NET002"]
