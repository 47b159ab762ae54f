"""Reads that threads share, and zones without capacity that the next target leaves out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from provision.adapters.google.errors import CloudError, CloudFailure, FailureScope
from provision.adapters.google.job_stockouts import JobStockouts
from provision.adapters.google.notebooks import NotebooksApi
from provision.adapters.google.shared_calls import SharedCalls
from provision.adapters.google.shared_client import SharedNotebooks
from provision.adapters.google.stockouts import VALID_S, Stockouts

ZONE = "projects/p/locations/us-central1-a"


def together(calls: list[Callable[[], Any]]) -> list[Any]:
    """Return the results (or errors) of calls that begin at the same time in threads."""
    barrier, results = threading.Barrier(len(calls)), [None] * len(calls)

    def work(number: int) -> None:
        barrier.wait()
        try:
            results[number] = calls[number]()
        except CloudError as error:
            results[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Counting(NotebooksApi):
    """A service with some instances, which counts its calls."""

    def __init__(self, *listed: str) -> None:
        self.listed, self.calls = listed, list[str]()

    def get(self, name: str) -> Any:
        self.calls.append(f"get {name.rpartition('/')[2]}")
        return {"name": name}

    def list(self, parent: str) -> Any:
        self.calls.append(f"list {parent}")
        return tuple({"name": f"{ZONE}/instances/{name}"} for name in self.listed), ()

    def operation(self, name: str) -> Any:
        self.calls.append(f"operation {name.rpartition('/')[2]}")
        return {"name": name, "done": True}

    def operations(self, parent: str) -> Any:
        self.calls.append(f"operations {parent}")
        return tuple({"name": f"{ZONE}/operations/{name}"} for name in self.listed)


def test_several_waits_are_one_list_and_a_missing_one_is_read_by_itself() -> None:
    api = Counting("a", "b")
    shared = SharedNotebooks(api, SharedCalls())
    names = [f"{ZONE}/instances/{name}" for name in "abc"]
    for name in names:
        shared.get(name)
    assert api.calls == ["get a", "get b", "get c"], "what was not shown is not in a list"
    api.calls.clear()
    shown = together([lambda name=name: shared.get(name) for name in names])  # type: ignore[misc]
    assert [each["name"] for each in shown] == names
    assert api.calls == ["list projects/p/locations/-", "get c"]
    api.calls.clear()
    shared.get(names[0])
    assert api.calls == ["get a"], "one alone is not worth a list"


def test_several_operations_are_one_list() -> None:
    api = Counting("a", "b")
    shared = SharedNotebooks(api, SharedCalls())
    names = [f"{ZONE}/operations/{name}" for name in "abc"]
    calls = [lambda name=name: shared.operation(name) for name in names]
    assert [each["name"] for each in together(calls)] == names  # type: ignore[arg-type]
    assert sorted(api.calls) == ["operation c", f"operations {ZONE}"]


def test_a_read_never_joins_a_call_that_has_begun() -> None:
    calls, begun, proceed, count = SharedCalls(), threading.Event(), threading.Event(), [0]

    def slow() -> int:
        count[0] += 1
        number = count[0]
        begun.set()
        if number == 1:
            proceed.wait()
        return number

    results: list[int] = []
    first = threading.Thread(target=lambda: results.append(calls.read("key", slow)))
    first.start()
    begun.wait()
    assert calls.read("key", slow) == 2
    proceed.set()
    first.join()
    assert results == [1]


def capacity_error(kind: str = "capacity") -> CloudError:
    return CloudError(CloudFailure(FailureScope.ZONE, kind, "no capacity", "why", "hint"))


def test_an_error_of_a_shared_call_is_one_for_each_reader() -> None:
    calls = SharedCalls()

    def fail() -> None:
        raise capacity_error()

    errors = together([lambda: calls.read("key", fail)] * 3)
    assert len({id(error) for error in errors}) == 3
    assert [error.failure.what for error in errors] == ["no capacity"] * 3


def body(machine: str, cards: int = 1) -> Mapping[str, Any]:
    return {
        "gceSetup": {
            "machineType": machine,
            "acceleratorConfigs": [{"type": "NVIDIA_L4", "coreCount": str(cards)}],
        }
    }


def test_a_stockout_counts_for_other_targets_of_the_same_machine_and_for_ten_minutes() -> None:
    now = [0.0]
    stockouts = Stockouts(lambda: now[0])
    stockouts.record("us-central1-a", "one", body("g2-standard-4"), capacity_error())
    stockouts.record("us-central1-b", "one", body("g2-standard-4"), capacity_error("quota"))
    now[0] = 90
    with pytest.raises(CloudError) as caught:
        stockouts.require_capacity("us-central1-a", "two", body("g2-standard-4"))
    assert caught.value.failure.scope is FailureScope.ZONE
    assert caught.value.what == (
        "not tried: one found no capacity for this machine 90 s ago; targets try the zone again "
        "after 10 minutes"
    )
    stockouts.require_capacity("us-central1-a", "one", body("g2-standard-4"))
    stockouts.require_capacity("us-central1-a", "two", body("g2-standard-8"))
    stockouts.require_capacity("us-central1-a", "two", body("g2-standard-4", cards=2))
    stockouts.require_capacity("us-central1-b", "two", body("g2-standard-4"))
    now[0] = VALID_S
    stockouts.require_capacity("us-central1-a", "two", body("g2-standard-4"))


def job(name: str, cards: int = 1, replicas: str = "1", strategy: str = "STANDARD") -> Any:
    machine = {"machineType": "g2-standard-4", "acceleratorCount": cards}
    pool = {"machineSpec": machine, "replicaCount": replicas}
    spec = {"workerPoolSpecs": [pool], "scheduling": {"strategy": strategy, "timeout": "1s"}}
    return {"displayName": f"provision {name}", "jobSpec": spec}


def test_a_region_without_capacity_counts_for_other_jobs_on_the_same_machines() -> None:
    now = [0.0]
    stockouts = JobStockouts(lambda: now[0])
    stockouts.record("us-central1", {**job("a/one"), "state": "JOB_STATE_FAILED"})
    now[0] = 90
    assert stockouts.find("us-central1", job("b/two")) == (
        "not tried: a/one found no capacity for the same machines 90 s ago; jobs try the region "
        "again after 10 minutes"
    )
    others = (job("a/one"), job("b", cards=2), job("b", replicas="2"), job("b", strategy="SPOT"))
    assert [stockouts.find("us-central1", other) for other in others] == ["", "", "", ""]
    assert stockouts.find("europe-west4", job("b/two")) == ""
    now[0] = VALID_S
    assert stockouts.find("us-central1", job("b/two")) == ""
