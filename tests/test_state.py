"""The ledger as a value and as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.errors import StateError
from provision.plan import Action, Intent, Operation, Plan
from provision.state import Ledger, State, create_empty_state, dumps, loads

RECORDS = st.dictionaries(
    st.text("abc/#", max_size=6).map("{}#x".format),
    st.dictionaries(st.text(max_size=4), st.text(max_size=6), max_size=3),
    max_size=4,
)


@given(RECORDS, st.integers(0, 10**6))
def test_a_state_is_read_back_as_it_was_written(
    resources: dict[str, dict[str, str]], serial: int
) -> None:
    state = State("lineage", serial, resources)
    assert loads(dumps(state), "state.json") == state


@given(st.integers(0, 400), st.sampled_from(["", "x", "0", '"']))
def test_no_edit_of_a_state_goes_unnoticed(at: int, put: str) -> None:
    state = State("lineage", 3, {"spec/local#environment": {"paths": ["envs/spec.local-0123"]}})
    text = dumps(state)
    try:
        assert loads(text[:at] + put + text[at + 1 :], "state.json") == state
    except StateError as error:
        assert error.hint  # noqa: PT017


def test_an_action_is_recorded_and_a_destroyed_part_is_dropped() -> None:
    made = create_empty_state("l").after_action(
        Action(Operation.CREATE, "spec/local", "environment", "t", "b", (), {"paths": ["envs/x"]})
    )
    assert (made.serial, made.resource("spec/local", "environment")) == (1, {"paths": ["envs/x"]})
    assert made.parts("spec/local") == {"environment": {"paths": ["envs/x"]}}
    assert made.parts("spec/her") == {}
    gone = made.after_action(Action(Operation.DESTROY, "spec/local", "environment", "t", "b"))
    assert (gone.serial, gone.resources) == (2, {})


def test_a_ledger_knows_whose_intent_was_cut_short() -> None:
    intent = Intent("spec/local", "environment", "+", ("envs/x",), "2026-11-20T00:00:00Z")
    assert Ledger(create_empty_state("l"), (intent,)).find_interrupted("spec/local") == intent
    assert Ledger(create_empty_state("l"), (intent,)).find_interrupted("other/local") is None
    assert Ledger(create_empty_state("l")).find_interrupted("spec/local") is None


def test_a_plan_counts_its_verbs_and_seals_its_inputs() -> None:
    create = Action(Operation.CREATE, "spec/local", "environment", "t", "b")
    keep = Action(Operation.KEEP, "spec/local", "kernel", "k", "b")
    replace = Action(Operation.REPLACE, "spec/there", "environment", "t", "b")
    plan = Plan((create, keep, replace), {}, "sha256:s", "sha256:l", "lineage", 4)
    assert plan.changes == (create, replace)
    assert plan.summary() == "1 to create, 0 to change, 1 to replace, 0 to destroy"
    assert plan.fingerprint()["steps"] == [
        ["+", "spec/local", "environment", "t"],
        ["-/+", "spec/there", "environment", "t"],
    ]


@pytest.mark.parametrize("text", ["[]", "null", "3", '{"schema": 4}'])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(StateError):
        loads(text, "state.json")
