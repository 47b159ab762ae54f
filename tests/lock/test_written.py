"""The digest of a spec's text: which fields move it, and that it never says less than the
comparison of the spec with the lock.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from provision.kinds import REGISTRY
from provision.lock import Lock, compute_text_digest, dumps, loads, with_digest
from provision.lock.inputs import collect_lock_inputs, list_changed_inputs
from provision.spec import MachineRequirements, Spec

SPEC: dict[str, Any] = {
    "gpu": "L4",
    "cuda": "12.8",
    "python": "3.12",
    "packages": ["torch==2.11.*", "transformers>=5.13"],
    "training": {"framework": "none"},
    "targets": {
        "local": {"kind": "local"},
        "colab": {"kind": "colab", "runtime": "2026.07"},
        "bench": {"kind": "workbench", "project": "p", "zones": ["us-central1-a"]},
        "team": {"kind": "colab-enterprise", "project": "p", "region": "us-central1"},
        "cluster": {
            "kind": "vertex-job",
            "project": "p",
            "regions": ["us-central1"],
            "bucket": "gs://bucket/folder",
            "image": f"docker.io/library/python@sha256:{'0' * 64}",
        },
    },
}
# Every field of the language stands in one of these tables: a new one has to be put in the right
# one.
MOVES: dict[str, Any] = {
    "apiVersion": "provision/v1",
    "gpu": "A100-80GB",
    "cuda": "13.0",
    "python": "3.13",
    "packages": ["torch==2.11.*"],
    "indexes": {"private": {"url": "https://packages.example.com/simple"}},
    "exclude_newer": "2026-01-01",
    "platforms": ["macos-arm64"],
    "conda_packages": ["ffmpeg"],
    "targets": {"local": {"kind": "local"}},
}
STAYS: dict[str, Any] = {
    "name": "other",
    "extends": "base.yaml",
    "cuda_toolkit": "12.8",
    "system_packages": ["git"],
    "env": {"A": "b"},
    "secrets": {"A": {"env": "B"}},
    "paths": {"out": "/tmp/out"},
    "code": "src",
    "training": {"framework": "torch", "batch_size": 4},
    "cost": {"limit_per_hour": 3.0},
    "verify": {"tier": "deep"},
}
REQUIRED_MOVES: dict[str, Any] = {"driver": ">=580", "compute_capability": ">=8.0"}
REQUIRED_STAYS: dict[str, Any] = {"ram": "16GiB", "disk": "50GiB", "shm": "1GiB", "vram": "16GiB"}
TARGET_MOVES: dict[str, tuple[str, Any]] = {
    "kind": ("team", "local"),
    "manager": ("local", "conda"),
    "gpu": ("colab", "T4"),
    "cuda": ("bench", "12.6"),
    "runtime": ("colab", "2026.06"),
    "isolation": ("colab", "venv"),
    "image": ("bench", "workbench-instances-2603"),
}
TARGET_STAYS: dict[str, tuple[str, Any]] = {
    "paths": ("local", {"out": "/tmp/out"}),
    "env": ("colab", {"A": None}),
    "secrets": ("colab", {"A": {"colab": "B"}}),
    "training": ("bench", {"framework": "torch"}),
    "kernel": ("local", True),
    "via": ("colab", "colab-cli"),
    "shape": ("colab", "high"),
    "payload": ("colab", "embedded"),
    "regions": ("cluster", ["us-east4"]),
    "environment": ("cluster", "baked"),
    "replicas": ("cluster", 2),
    "restarts": ("cluster", 2),
    "capacity": ("cluster", "spot"),
    "project": ("bench", "other"),
    "region": ("team", "europe-west4"),
    "zones": ("bench", ["us-central1-b"]),
    "machine_type": ("bench", "g2-standard-8"),
    "gpu_driver": ("bench", False),
    "reservation": ("bench", "r"),
    "boot_disk": ("bench", {"type": "ssd"}),
    "data_disk": ("bench", {"type": "ssd"}),
    "network": ("bench", "n"),
    "subnet": ("bench", "s"),
    "public_ip": ("bench", True),
    "nat": ("bench", True),
    "mirrors": ("bench", {"pypi": "https://packages.example.com/simple"}),
    "service_account": ("bench", "a@example.com"),
    "access": ("bench", {"mode": "single-user", "owner": "me@example.com"}),
    "managed_euc": ("bench", True),
    "shielded": ("bench", {"secure_boot": True}),
    "labels": ("bench", {"team": "a"}),
    "tags": ("bench", ["a"]),
    "metadata": ("bench", {"a": "b"}),
    "bucket": ("bench", "gs://bucket/folder"),
    "idle_shutdown": ("bench", "60m"),
    "max_lifetime": ("bench", "8h"),
    "on_failure": ("bench", "keep"),
    "internet": ("team", False),
    "max_duration": ("team", "45m"),
    "end_user_credentials": ("team", True),
    "secure_boot": ("team", True),
}


def edited(data: dict[str, Any], route: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The data with one value put in place, None to take it away."""
    data = deepcopy(data)
    place = data
    for part in route[:-1]:
        place = place.setdefault(part, {})
    if value is None:
        place.pop(route[-1], None)
    else:
        place[route[-1]] = value
    return data


EDITS: dict[tuple[str, ...], Any] = {
    **{(name,): value for name, value in {**MOVES, **STAYS}.items()},
    **{("requires", name): value for name, value in {**REQUIRED_MOVES, **REQUIRED_STAYS}.items()},
    **{
        ("targets", target, name): value
        for name, (target, value) in {**TARGET_MOVES, **TARGET_STAYS}.items()
    },
    **{
        ("targets", "local", "requires", name): value
        for name, value in {**REQUIRED_MOVES, **REQUIRED_STAYS}.items()
    },
}
DECIDING = {
    *((name,) for name in MOVES),
    *(("requires", name) for name in REQUIRED_MOVES),
    *(("targets", target, name) for name, (target, _) in TARGET_MOVES.items()),
    *(("targets", "local", "requires", name) for name in REQUIRED_MOVES),
}


def test_every_field_of_the_language_is_decided_on() -> None:
    assert {*MOVES, *STAYS, "requires"} == set(Spec.model_fields)
    assert {*REQUIRED_MOVES, *REQUIRED_STAYS} == set(MachineRequirements.model_fields)
    assert {*TARGET_MOVES, *TARGET_STAYS, "requires"} == {
        name for kind in REGISTRY.kinds for name in kind.model.model_fields
    }
    assert not set(MOVES) & set(STAYS)
    assert not set(TARGET_MOVES) & set(TARGET_STAYS)


@pytest.mark.parametrize("route", EDITS, ids=".".join)
def test_what_decides_packages_moves_the_digest_and_nothing_else(route: tuple[str, ...]) -> None:
    moved = edited(SPEC, route, EDITS[route])
    assert moved != SPEC
    assert (compute_text_digest(moved) != compute_text_digest(SPEC)) == (route in DECIDING)


def test_the_order_of_keys_packages_and_platforms_does_not_count() -> None:
    data = {**SPEC, "platforms": ["linux-x86_64", "macos-arm64"]}
    turned: dict[str, Any] = {
        key: list(reversed(value)) if isinstance(value, list) else value
        for key, value in reversed(data.items())
    }
    turned["targets"] = dict(reversed(SPEC["targets"].items()))
    assert compute_text_digest(turned) == compute_text_digest(data)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"python": "3.1"}, {"python": 3.1}),
        ({"cuda": None}, {}),
        ({"packages": [True]}, {"packages": [1]}),
        ({"targets": {"local": None}}, {"targets": {}}),
        ({"targets": {}}, {}),
        ({"requires": []}, {}),
    ],
)
def test_text_that_the_model_tells_apart_has_digests_of_its_own(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert compute_text_digest(one) != compute_text_digest(other)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*Spec.model_fields, "strange"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["local", "gpu", "requires", "driver"]), inner, max_size=3
                )
            ),
        ),
    )
)
def test_any_data_has_a_digest(data: dict[str, Any]) -> None:
    assert compute_text_digest(data).startswith("sha256:")


routes = st.lists(st.sampled_from(sorted(EDITS)), max_size=4, unique=True)
FORMS: tuple[tuple[tuple[str, ...], Any], ...] = (
    (("gpu",), {"type": "L4"}),
    (("cuda",), None),
    (("packages",), ["transformers>=5.13", "torch==2.11.*"]),
    (("packages",), [{"name": "torch", "version": "==2.11.*"}, "transformers>=5.13"]),
    (("packages",), ["torch == 2.11.*", "transformers>=5.13"]),
    (("targets", "local", "manager"), "uv"),
    (("platforms",), ["linux-x86_64"]),
    (("exclude_newer",), "2026-01-01T00:00:00Z"),
    (("targets", "local"), None),
    (("targets", "bench"), {"kind": "colab"}),
    (("targets", "team"), {"kind": "local"}),
)


@settings(deadline=None, max_examples=300)
@given(routes, st.lists(st.sampled_from([*EDITS.items(), *FORMS]), min_size=1, max_size=3))
def test_equal_digests_mean_that_no_difference_is_found(
    first: list[tuple[str, ...]], then: list[tuple[tuple[str, ...], Any]]
) -> None:
    old = SPEC
    for route in first:
        old = (
            edited(old, route, EDITS[route])
            if "targets" not in old
            or route[0] != "targets"
            or len(route) == 1
            or route[1] in old["targets"]
            else old
        )
    new = old
    for route, value in then:
        new = edited(new, route, value)
    assert agree(old, new)


@pytest.mark.parametrize(("route", "value"), [*EDITS.items(), *FORMS], ids=str)
def test_so_after_each_edit_alone(route: tuple[str, ...], value: Any) -> None:
    assert agree(SPEC, edited(SPEC, route, value))


def agree(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether the comparison of a spec with its lock finds nothing where the digests are equal.
    What is no spec agrees with everything.
    """
    if compute_text_digest(new) != compute_text_digest(old):
        return True
    try:
        was, now = Spec.model_validate(old), Spec.model_validate(new)
    except ValidationError:
        return True
    return list_changed_inputs(now, empty(was, compute_text_digest(old))) == ()


def test_a_lock_carries_the_digest_of_its_text() -> None:
    lock = empty(Spec.model_validate(SPEC), compute_text_digest(SPEC))
    assert loads(dumps(lock), "x.lock") == lock
    assert dumps(lock).splitlines()[3] == f'  "written": "{compute_text_digest(SPEC)}",'
    assert with_digest(replace(lock, text_digest="")).digest != lock.digest


def test_a_lock_without_it_is_read() -> None:
    lock = empty(Spec.model_validate(SPEC), "")
    assert "written" not in dumps(lock)
    assert loads(dumps(lock), "x.lock") == lock


def empty(spec: Spec, written: str) -> Lock:
    """A lock of no packages."""
    return with_digest(
        Lock(collect_lock_inputs(spec), spec.python, (), {}, {}, (), text_digest=written)
    )
