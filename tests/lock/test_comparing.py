"""What differs between two locks, as values: nothing for the same lock, each change once, with its
places where they differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from provision.lock import Lock, LockedEnvironment, LockedFile, LockedPackage, TargetChoice
from provision.lock.diff import LockedVersion, PackageChange, ValueChange, diff_locks
from provision.lock.model import with_digest

LINUX, MAC = "linux-x86_64", "macos-arm64"


def row(name: str, version: str, *keys: str, index: str = "pypi", **files: str) -> LockedPackage:
    held = {"wheel": "00", **files}
    return LockedPackage(
        name,
        version,
        index,
        keys or (LINUX,),
        (),
        tuple(
            LockedFile(f"{name}-{version}-{part}.whl", sha * 32)
            for part, sha in sorted(held.items())
        ),
    )


def lock(
    *packages: LockedPackage, places: Mapping[str, tuple[str, ...]] | None = None, **changes: Any
) -> Lock:
    """A lock whose environments are named by their platform, with "-FLAVOUR" behind it or not."""
    places = places or {"here": (LINUX,)}
    keys = sorted({key for own in places.values() for key in own})
    flavours = {
        key: key.removeprefix(LINUX).removeprefix(MAC).removeprefix("-") or None for key in keys
    }
    environments = tuple(
        LockedEnvironment(
            key, LINUX if key.startswith(LINUX) else MAC, flavours[key], "2.28", None, ""
        )
        for key in keys
    )
    made = Lock(
        {"packages": ["alpha"]},
        "3.12",
        environments,
        {name: TargetChoice(own, "") for name, own in places.items()},
        {},
        tuple(sorted(packages, key=lambda p: (p.name, p.version))),
    )
    return with_digest(replace(made, **changes))


names = st.sampled_from(["alpha", "beta", "torch"])
keys = st.lists(
    st.sampled_from([LINUX, f"{LINUX}-cpu", f"{LINUX}-cu128", MAC]),
    unique=True,
    min_size=1,
    max_size=1,
).map(tuple)
locks = st.builds(
    lambda rows, places, python: lock(
        *(row(name, version, *own) for (name, own), version in rows.items()),
        places=places,
        python=python,
    ),
    st.dictionaries(st.tuples(names, keys), st.sampled_from(["1.0", "2.0", "2.0+cu128"])),
    st.dictionaries(st.sampled_from(["here", "there"]), keys, min_size=1),
    st.sampled_from(["3.11", "3.12"]),
)


@given(locks)
def test_a_lock_does_not_differ_from_itself(one: Lock) -> None:
    found = diff_locks(one, one)
    assert found.is_empty
    assert found.identical


@given(locks, locks)
def test_the_way_back_is_the_same_way(old: Lock, new: Lock) -> None:
    there, back = diff_locks(old, new), diff_locks(new, old)
    assert there.is_empty == back.is_empty
    assert {change.name for change in there.packages} == {change.name for change in back.packages}
    assert there.unchanged == back.unchanged


def test_added_removed_and_changed() -> None:
    found = diff_locks(
        lock(row("alpha", "1.0"), row("beta", "1.0"), row("gone", "1.0")),
        lock(row("alpha", "2.0"), row("beta", "1.0"), row("new", "1.0")),
    )
    assert found.packages == (
        PackageChange("alpha", LockedVersion("1.0", "pypi"), LockedVersion("2.0", "pypi")),
        PackageChange("gone", LockedVersion("1.0", "pypi"), None),
        PackageChange("new", None, LockedVersion("1.0", "pypi")),
    )
    assert found.unchanged == 1
    assert not found.is_empty


def test_another_index_and_a_hash_that_nobody_confirms_are_changes() -> None:
    found = diff_locks(lock(row("alpha", "1.0")), lock(row("alpha", "1.0", index="private")))
    assert found.packages == (
        PackageChange("alpha", LockedVersion("1.0", "pypi"), LockedVersion("1.0", "private")),
    )
    found = diff_locks(
        lock(row("alpha", "1.0")), lock(replace(row("alpha", "1.0"), unconfirmed=True))
    )
    assert found.packages == (
        PackageChange(
            "alpha", LockedVersion("1.0", "pypi"), LockedVersion("1.0", "pypi", unconfirmed=True)
        ),
    )


CPU, CU126, CU128 = f"{LINUX}-cpu", f"{LINUX}-cu126", f"{LINUX}-cu128"


def flavoured(cpu: str, cuda: str, key: str = CU128) -> Lock:
    """torch for a laptop and a server, and numpy for both."""
    return lock(
        row("numpy", "2.0", CPU, key),
        row("torch", cpu, CPU),
        row("torch", cuda, key),
        places={"laptop": (CPU,), "server": (key,)},
    )


def test_torch_is_said_for_each_target_where_they_differ() -> None:
    found = diff_locks(
        flavoured("2.10.0+cpu", "2.10.0+cu128"), flavoured("2.11.0+cpu", "2.11.0+cu128")
    )
    assert [
        (change.old and change.old.version, change.new and change.new.version, change.where)
        for change in found.packages
    ] == [
        ("2.10.0+cpu", "2.11.0+cpu", ("laptop",)),
        ("2.10.0+cu128", "2.11.0+cu128", ("server",)),
    ]


def test_a_flavour_that_moves_changes_one_target_and_nothing_it_shares() -> None:
    found = diff_locks(
        flavoured("2.11.0+cpu", "2.11.0+cu126", CU126), flavoured("2.11.0+cpu", "2.11.0+cu128")
    )
    assert [(change.name, change.where) for change in found.packages] == [("torch", ("server",))]
    (place,) = found.targets
    assert place.target == "server"
    assert (place.old and place.old.flavour, place.new and place.new.flavour) == ("cu126", "cu128")


def test_a_target_that_came_adds_only_what_nobody_had() -> None:
    both = flavoured("2.11.0+cpu", "2.11.0+cu128")
    alone = lock(
        row("numpy", "2.0", CPU), row("torch", "2.11.0+cpu", CPU), places={"laptop": (CPU,)}
    )
    found = diff_locks(alone, both)
    assert found.packages == (
        PackageChange("torch", None, LockedVersion("2.11.0+cu128", "pypi"), ("server",)),
    )
    assert [(place.target, place.old) for place in found.targets] == [("server", None)]
    assert diff_locks(both, alone).packages == (
        PackageChange("torch", LockedVersion("2.11.0+cu128", "pypi"), None, ("server",)),
    )


def test_a_target_with_another_name_changes_packages_rather_than_exchange_them() -> None:
    found = diff_locks(
        lock(row("alpha", "1.0"), places={"here": (LINUX,)}),
        lock(row("alpha", "2.0"), places={"home": (LINUX,)}),
    )
    assert found.packages == (
        PackageChange("alpha", LockedVersion("1.0", "pypi"), LockedVersion("2.0", "pypi")),
    )
    assert [place.target for place in found.targets] == ["here", "home"]


def test_a_platform_is_named_where_the_others_of_its_target_keep_what_they_had() -> None:
    places = {"here": (LINUX, MAC)}
    found = diff_locks(
        lock(row("alpha", "1.0", LINUX, MAC), places=places),
        lock(row("alpha", "1.0", LINUX), row("alpha", "2.0", MAC), places=places),
    )
    assert [change.where for change in found.packages] == [("here on macos-arm64",)]


def test_one_version_with_another_hash_is_suspicious_and_one_more_file_is_not() -> None:
    (replaced,) = diff_locks(lock(row("alpha", "1.0")), lock(row("alpha", "1.0", wheel="11"))).files
    assert (replaced.replaced, replaced.suspicious) == (("alpha-1.0-wheel.whl",), True)
    (more,) = diff_locks(lock(row("alpha", "1.0")), lock(row("alpha", "1.0", musl="11"))).files
    assert (more.added, more.replaced, more.suspicious) == (("alpha-1.0-musl.whl",), (), False)
    other = replace(row("alpha", "1.0"), files=(LockedFile("alpha-1.0-2-other.whl", "22" * 32),))
    (exchanged,) = diff_locks(lock(row("alpha", "1.0")), lock(other)).files
    assert exchanged.suspicious
    found = diff_locks(lock(row("alpha", "1.0")), lock(row("alpha", "1.0", wheel="11")))
    assert (found.packages, found.unchanged) == ((), 0)


def test_files_of_another_platform_are_no_other_files() -> None:
    wide = lock(row("alpha", "1.0", LINUX, MAC, mac="11"), places={"here": (LINUX, MAC)})
    assert diff_locks(lock(row("alpha", "1.0")), wide).files == ()


def test_python_indexes_and_what_is_asked() -> None:
    old = lock(
        row("alpha", "1.0"),
        indexes={"private": "https://a.example/simple", "gone": "https://g.example/simple"},
        python="3.11",
    )
    asked = {"packages": ["alpha", "beta>=1"], "targets": {"colab": "colab 2026.07"}, "gpu": "T4"}
    new = lock(row("alpha", "1.0"), indexes={"private": "https://b.example/simple"}, inputs=asked)
    found = diff_locks(old, new)
    assert found.python == ValueChange("python", "3.11", "3.12")
    assert found.indexes == (
        ValueChange("gone", "https://g.example/simple", None),
        ValueChange("private", "https://a.example/simple", "https://b.example/simple"),
    )
    assert found.inputs == (
        ValueChange("gpu", None, "T4"),
        ValueChange("packages", None, "beta>=1"),
        ValueChange("targets", None, '{"colab": "colab 2026.07"}'),
    )
    moved = diff_locks(
        new, lock(row("alpha", "1.0"), inputs={**asked, "targets": {"colab": "colab 2026.10"}})
    ).inputs
    assert moved == (ValueChange("targets.colab", "colab 2026.07", "colab 2026.10"),)


def test_locks_that_differ_in_words_only_are_empty_and_not_identical() -> None:
    one = lock(row("alpha", "1.0"))
    found = diff_locks(
        one, with_digest(replace(one, packages=(replace(one.packages[0], requires=("beta",)),)))
    )
    assert found.is_empty
    assert not found.identical
