"""What a person is told of an instance that is left alone: where it is, what it costs, how to go
on.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from provision.commands.shared.target_plans import note_on_interrupt
from provision.errors import ExternalError
from provision.facts import load_facts
from provision.plan import Intent
from provision.state import Ledger, create_empty_state
from provision.targets import TargetContext
from provision.targets.context import SandboxSources
from provision.targets.workbench.notices import (
    add_hint_on_error,
    hourly_price,
    leftover_notice,
)
from provision.targets.workbench.records import InstanceRecord

NAME = "projects/p/locations/us-central1-a/instances/provision-spec-wb"
INSTANCE = InstanceRecord(
    "instance provision-spec-wb",
    "p",
    ("us-central1-a",),
    "us-central1-a",
    "provision-spec-wb",
    "x",
    "gs://b/provision-spec-wb/x/",
    "n",
    "stop",
    body={"gceSetup": {"machineType": "g2-standard-4"}},
)


def place(stand_in: SandboxSources | None = None) -> TargetContext:
    return TargetContext(
        None,  # type: ignore[arg-type]
        "wb",
        "spec",
        None,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        "linux-x86_64",
        stand_in,
        spec_path=Path("my spec.yaml"),
        target_option="wb",
    )


def test_a_recorded_instance_is_told_with_its_price_and_the_next_commands() -> None:
    state = create_empty_state("x").with_record("spec/wb", "instance", INSTANCE.to_json())
    first, second, third = leftover_notice(place(), Ledger(state)).splitlines()
    assert first.startswith(
        "provision-spec-wb in us-central1-a keeps running and costs $0.71 per hour in us-central1 ("
    )
    assert second == "wait for it: provision attach 'my spec.yaml' --target wb"
    assert third == "remove it: provision destroy 'my spec.yaml' --target wb"
    sandbox = leftover_notice(place(SandboxSources((), {})), Ledger(state))
    assert "at no cost" in sandbox
    assert "--sandbox" in sandbox


def test_an_instance_that_was_being_made_may_be_in_any_of_its_zones() -> None:
    names = (NAME, NAME.replace("central1-a", "central1-b"))
    intent = Intent("spec/wb", "instance", "+", (), "", names, {"instance": "provision-spec-wb"})
    told = leftover_notice(place(), Ledger(create_empty_state("x"), (intent,)))
    assert told.startswith(
        "provision-spec-wb may exist in us-central1-a or us-central1-b and costs money (its price "
        "is not in the facts)"
    )
    assert "continue: provision apply" in told


def test_nothing_is_told_where_nothing_is_or_where_it_was_stopped() -> None:
    assert leftover_notice(place(), Ledger(create_empty_state("x"))) == ""
    over = create_empty_state("x").with_record(
        "spec/wb", "instance", INSTANCE.with_ended_run("w").to_json()
    )
    assert leftover_notice(place(), Ledger(over)) == ""


@pytest.mark.parametrize(
    ("setup", "known"),
    [
        (
            {
                "machineType": "n1-standard-4",
                "acceleratorConfigs": [{"type": "NVIDIA_TESLA_T4", "coreCount": "1"}],
            },
            True,
        ),
        (
            {
                "machineType": "n1-standard-4",
                "acceleratorConfigs": [{"type": "NVIDIA_OF_TOMORROW", "coreCount": "1"}],
            },
            False,
        ),
        ({"machineType": "n9-standard-4"}, False),
        ({}, False),
    ],
)
def test_a_price_is_told_only_where_the_tables_have_all_of_it(
    setup: dict[str, object], known: bool
) -> None:
    record = replace(INSTANCE, body={"gceSetup": setup})
    assert bool(hourly_price(record, load_facts())) is known


def test_words_go_to_errors_and_to_interruptions_each_by_its_way() -> None:
    with pytest.raises(ExternalError) as error, add_hint_on_error(lambda: "it runs on"):
        raise ExternalError("no network", hint="look")
    assert error.value.hint == "look\nit runs on"
    with pytest.raises(KeyboardInterrupt) as cut, note_on_interrupt(lambda: "it runs on"):
        raise KeyboardInterrupt
    assert cut.value.__notes__ == ["it runs on"]
    with pytest.raises(ExternalError) as other, note_on_interrupt(lambda: "it runs on"):
        raise ExternalError("no network")
    assert not hasattr(other.value, "__notes__")
