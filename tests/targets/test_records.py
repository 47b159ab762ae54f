"""Records in the state: the same JSON as an earlier version wrote, and damage is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from provision.errors import StateError
from provision.state import Record, create_empty_state
from provision.targets.colab.records import NotebookRecord, SessionRecord
from provision.targets.local.records import CondaLinkRecord, EnvironmentRecord, KernelRecord
from provision.targets.stored_verdict import VerificationRecord
from provision.targets.workbench.records import InstanceRecord

SAMPLES = Path(__file__).parents[1] / "commands/earlier_version"
KINDS: dict[str, type[Record]] = {
    kind.part: kind
    for kind in (
        CondaLinkRecord,
        EnvironmentRecord,
        InstanceRecord,
        KernelRecord,
        NotebookRecord,
        SessionRecord,
        VerificationRecord,
    )
}


def written_records() -> list[tuple[str, dict[str, Any]]]:
    states = [json.loads(path.read_bytes()) for path in sorted(SAMPLES.rglob("state.json"))]
    return [
        (key.rpartition("#")[2], record)
        for state in states
        for key, record in state["resources"].items()
    ]


@pytest.mark.parametrize(("part", "document"), written_records())
def test_a_record_of_an_earlier_version_is_written_again_as_it_was(
    part: str, document: dict[str, Any]
) -> None:
    assert KINDS[part].from_json(document).to_json() == document


@pytest.mark.parametrize(("part", "document"), written_records())
def test_a_missing_field_is_damage_and_never_a_crash(part: str, document: dict[str, Any]) -> None:
    for name in document:
        rest = {key: value for key, value in document.items() if key != name}
        state = create_empty_state("l").with_record("spec/local", part, rest)
        try:
            record = KINDS[part].find(state, "spec/local")
        except StateError as error:
            assert repr(name) in error.why  # noqa: PT017
        else:
            assert record is not None
            assert record.to_json().get(name, "") in ("", "local", "workbench", "colab")


def test_what_other_versions_record_is_left_out_and_nothing_is_none() -> None:
    document = {"title": "t", "session": "s", "more": 1}
    record = SessionRecord.from_json(document)
    assert record.to_json() == {"title": "t", "session": "s"}
    assert SessionRecord.find(create_empty_state("l"), "spec/local") is None
