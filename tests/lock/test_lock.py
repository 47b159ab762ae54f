"""The lock as a value and a file, and resolving with the real uv over a rig's index."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.workshop import Workshop
from provision.adapters import RealSystem
from provision.errors import LockError
from provision.facts import load_facts
from provision.lock import (
    Lock,
    LockedEnvironment,
    LockedFile,
    LockedPackage,
    TargetChoice,
    dumps,
    loads,
    with_digest,
)
from provision.lock.inputs import collect_lock_inputs, list_changed_inputs
from provision.lock.resolve import resolve_spec
from provision.lock.spec_agreement import find_disagreements
from provision.spec import Spec
from tests.rig import MINOR, TAG, Bench, make_index, make_wheel, small_spec

PLATFORMS = ["linux-x86_64", "macos-arm64"]


def spec(*packages: object, **fields: object) -> Spec:
    """A spec with those packages; `training` says that nothing trains."""
    return Spec.model_validate(
        {
            "gpu": "none",
            "python": MINOR,
            "packages": list(packages),
            "training": {"framework": "none"},
            **fields,
        }
    )


def locked(bench: Bench, wanted: Spec, **environment: str) -> Lock:
    """Resolve with the real uv and the bench's index."""
    lock = resolve_spec(
        wanted, load_facts(), RealSystem(bench.environment(**environment)), lambda _: None
    )
    assert find_disagreements(lock, wanted, load_facts()) == ()
    return lock


def sample(version: str = "1.0") -> Lock:
    package = LockedPackage(
        "alpha",
        version,
        "pypi",
        ("linux-x86_64",),
        (),
        (LockedFile(f"alpha-{version}-py3-none-any.whl", "00" * 32),),
    )
    other = LockedPackage(
        "beta",
        "2.0",
        "pypi",
        ("linux-x86_64",),
        ("alpha",),
        (LockedFile("beta-2.0-py3-none-any.whl", "11" * 32),),
        unconfirmed=True,
    )
    environment = LockedEnvironment("linux-x86_64", "linux-x86_64", None, None, None, "sha256:0")
    return with_digest(
        Lock(
            collect_lock_inputs(spec("alpha")),
            MINOR,
            (environment,),
            {"local": TargetChoice(("linux-x86_64",), "torch is not among the packages")},
            {},
            (package, other),
        )
    )


def test_a_lock_is_read_back_as_it_was_written() -> None:
    assert loads(dumps(sample()), "x.lock") == sample()


def test_bumping_a_package_changes_its_line_and_the_digest_only() -> None:
    old, new = dumps(sample("1.0")).splitlines(), dumps(sample("1.1")).splitlines()
    changed = [line for line in new if line not in old]
    assert len(old) == len(new)
    assert [
        "digest" if line.startswith('  "digest"') else json.loads(line.strip().rstrip(","))["name"]
        for line in changed
    ] == ["digest", "alpha"]


@given(st.integers(0, 2000), st.sampled_from(["", "x", '"', "\n", "0"]))
def test_no_edit_of_a_lock_goes_unnoticed(at: int, put: str) -> None:
    text = dumps(sample())
    edited = text[:at] + put + text[at + 1 :]
    try:
        read = loads(edited, "x.lock")
    except LockError:
        return
    assert read == sample()


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("asked", 5),
        ("packages", {}),
        ("targets", []),
        ("environments", None),
        ("indexes", "x"),
        ("python", []),
    ],
)
def test_a_part_of_the_wrong_kind_is_damage(part: str, value: object) -> None:
    document = {**json.loads(dumps(sample())), part: value}
    with pytest.raises(LockError):
        loads(json.dumps(document), "x.lock")


def test_a_lock_holds_no_address_and_no_path_of_this_machine(bench: Bench) -> None:
    text = dumps(locked(bench, spec("beta")))
    assert "file:" not in text
    assert str(bench.folder.parent) not in text
    assert "127.0.0.1" not in text


def test_the_same_index_gives_the_same_bytes_at_any_address(bench: Bench, tmp_path: Path) -> None:
    wheels = tuple((tmp_path / "wheels").glob("*.whl"))
    elsewhere = make_index(tmp_path / "mirror", wheels)
    assert dumps(locked(bench, spec("beta"))) == dumps(
        locked(bench, spec("beta"), PROVISION_INDEX_PYPI=elsewhere)
    )


def test_one_version_for_all_platforms_and_files_for_each(bench: Bench, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    places = (
        "manylinux_2_17_x86_64",
        "manylinux_2_34_x86_64",
        "musllinux_1_2_x86_64",
        "macosx_11_0_arm64",
    )
    tags = (*(f"{TAG}-{TAG}-{place}" for place in places), "cp38-cp38-win_amd64")
    make_index(
        tmp_path / "index", tuple(make_wheel(wheels, "native", "1.0", tag=tag) for tag in tags)
    )
    lock = locked(bench, spec("native", platforms=PLATFORMS))
    (package,) = lock.packages
    assert [file.name.split("-", 4)[-1] for file in package.files] == [
        "macosx_11_0_arm64.whl",
        "manylinux_2_17_x86_64.whl",
        "manylinux_2_34_x86_64.whl",
    ]
    linux, mac = lock.environments
    assert (linux.platform, linux.glibc) == ("linux-x86_64", "2.17")
    assert (mac.platform, mac.glibc) == ("macos-arm64", None)


def test_a_dependency_of_one_platform_is_locked_there_only(bench: Bench, tmp_path: Path) -> None:
    make_index(
        tmp_path / "index",
        (
            make_wheel(
                tmp_path / "wheels", "forked", "1.0", requires=("alpha; sys_platform == 'darwin'",)
            ),
        ),
    )
    lock = locked(bench, spec("forked", platforms=PLATFORMS))
    held = {
        environment.platform: sorted(lock.versions(environment))
        for environment in lock.environments
    }
    assert held == {"linux-x86_64": ["forked"], "macos-arm64": ["alpha", "forked"]}
    assert lock.environments[0].digest != lock.environments[1].digest


def test_no_wheel_for_a_platform_is_said(bench: Bench, tmp_path: Path) -> None:
    make_index(
        tmp_path / "index",
        (
            make_wheel(
                tmp_path / "wheels", "linuxonly", "1.0", tag=f"{TAG}-{TAG}-manylinux_2_17_x86_64"
            ),
        ),
    )
    with pytest.raises(LockError) as caught:
        locked(bench, spec("linuxonly", platforms=PLATFORMS))
    assert "linuxonly" in caught.value.why


def test_a_python_that_is_not_here_is_locked_for_by_another(bench: Bench, tmp_path: Path) -> None:
    wanted = spec("alpha", "native").model_copy(update={"python": "3.98"})
    wheels = tmp_path / "wheels"
    make_index(
        tmp_path / "index",
        (make_wheel(wheels, "native", "1.0", tag="cp398-cp398-manylinux_2_17_x86_64"),),
    )

    lock = resolve_spec(wanted, load_facts(), RealSystem(bench.environment()), lambda _: None)
    assert {package.name: package.files[0].name for package in lock.packages}[
        "native"
    ] == "native-1.0-cp398-cp398-manylinux_2_17_x86_64.whl"


def test_for_a_python_that_is_not_here_uv_is_asked_once_and_lists_none(
    bench: Bench, tmp_path: Path
) -> None:
    path = bench.spec(small_spec("alpha").replace(MINOR, "3.98"))
    (tmp_path / "calls").mkdir()
    call = Workshop(tmp_path, variables=bench.environment()).shortened(
        "lock", str(path), record=tmp_path / "calls"
    )
    done = subprocess.run(
        call.argv, env=dict(call.environment), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    calls = [
        json.loads((tmp_path / f"calls/{number}.json").read_text())["argv"] for number in range(3)
    ]
    assert [words[1:3] for words in calls] == [
        ["python", "find"],
        ["lock", "--python"],
        ["export", "--frozen"],
    ]
    assert len(list((tmp_path / "calls").glob("*.json"))) == 3


def test_a_package_is_bound_to_its_index(bench: Bench, tmp_path: Path) -> None:
    private = make_index(tmp_path / "private", (make_wheel(tmp_path / "p", "alpha", "0.5"),))
    wanted = spec(
        {"name": "alpha", "index": "private"}, "beta", indexes={"private": {"url": private}}
    )
    lock = locked(bench, wanted)
    found = {package.name: (package.version, package.index) for package in lock.packages}
    assert found["alpha"] == ("0.5", "private")
    assert found["beta"] == ("1.0", "pypi")
    assert lock.indexes == {"private": private}


def torch_rig(tmp_path: Path, bench: Bench) -> str:
    """On the default index torch 2.13.0 with CUDA packages, as for Linux on the public one; on the
    returned index torch 2.13.0+cpu.
    """
    wheels, linux = tmp_path / "wheels", f"{TAG}-{TAG}-manylinux_2_28_x86_64"
    mac = make_wheel(wheels, "torch", "2.13.0", tag=f"{TAG}-{TAG}-macosx_14_0_arm64")
    cuda = make_wheel(
        wheels,
        "torch",
        "2.13.0",
        tag=linux,
        requires=("nvidia-cublas-cu12; sys_platform == 'linux'",),
    )
    blas = make_wheel(wheels, "nvidia-cublas-cu12", "12.8", tag="py3-none-manylinux_2_27_x86_64")
    trainer = make_wheel(wheels, "trainer", "1.0", requires=("torch>=2",))
    make_index(tmp_path / "index", (mac, cuda, blas, trainer))
    return make_index(
        tmp_path / "cpu", (make_wheel(tmp_path / "c", "torch", "2.13.0+cpu", tag=linux),)
    )


def test_cpu_torch_comes_from_its_own_index_and_brings_no_cuda(
    bench: Bench, tmp_path: Path
) -> None:
    cpu = torch_rig(tmp_path, bench)
    lock = locked(
        bench, spec("torch==2.13.*", platforms=PLATFORMS), PROVISION_INDEX_PYTORCH_CPU=cpu
    )
    torches = {package.environments: (package.version, package.index) for package in lock.packages}
    assert torches == {
        ("linux-x86_64-cpu",): ("2.13.0+cpu", "pytorch-cpu"),
        ("macos-arm64-cpu",): ("2.13.0", "pypi"),
    }
    assert lock.indexes == {"pytorch-cpu": "https://download.pytorch.org/whl/cpu"}


def test_torch_that_another_package_brings_is_held_to_the_flavour_too(
    bench: Bench, tmp_path: Path
) -> None:
    cpu = torch_rig(tmp_path, bench)
    lock = locked(bench, spec("trainer"), PROVISION_INDEX_PYTORCH_CPU=cpu)
    assert {package.name: package.version for package in lock.packages} == {
        "torch": "2.13.0+cpu",
        "trainer": "1.0",
    }


def test_cuda_packages_in_a_cpu_lock_are_refused_with_their_path(
    bench: Bench, tmp_path: Path
) -> None:
    cpu = torch_rig(tmp_path, bench)
    make_index(
        tmp_path / "index",
        (make_wheel(tmp_path / "wheels", "sneaky", "1.0", requires=("nvidia-cublas-cu12",)),),
    )
    with pytest.raises(LockError) as caught:
        locked(bench, spec("torch", "sneaky"), PROVISION_INDEX_PYTORCH_CPU=cpu)
    assert "nvidia-cublas-cu12" in caught.value.what
    assert "nvidia-cublas-cu12 <- sneaky" in caught.value.why


def test_a_cuda_flavour_is_locked_from_its_index(bench: Bench, tmp_path: Path) -> None:
    wheels, linux = tmp_path / "wheels", f"{TAG}-{TAG}-manylinux_2_28_x86_64"
    torch_rig(tmp_path, bench)
    cu128 = make_index(
        tmp_path / "cu128",
        (make_wheel(wheels, "torch", "2.13.0+cu128", tag=linux, requires=("nvidia-cublas-cu12",)),),
    )
    lock = locked(bench, spec("torch", gpu="L4", cuda="12.8"), PROVISION_INDEX_PYTORCH_CU128=cu128)
    assert {package.name: package.version for package in lock.packages} == {
        "torch": "2.13.0+cu128",
        "nvidia-cublas-cu12": "12.8",
    }
    assert lock.environments[0].flavour == "cu128"
    assert lock.targets["local"].reason == "cu128: the spec sets cuda: 12.8"


def test_what_decides_packages_makes_a_lock_stale_and_nothing_else(bench: Bench) -> None:
    lock = locked(bench, spec("alpha"))
    assert (
        list_changed_inputs(
            spec("alpha", env={"A": "b"}, paths={"out": "/tmp/x"}, requires={"ram": "1GiB"}), lock
        )
        == ()
    )
    assert list_changed_inputs(spec("alpha", "beta>=1"), lock) == ("packages: + beta>=1",)
    assert list_changed_inputs(spec("alpha==1.0"), lock) == (
        "packages: + alpha==1.0",
        "packages: - alpha",
    )
    assert list_changed_inputs(spec("alpha", exclude_newer="2026-01-01"), lock) == (
        "exclude_newer: None -> 2026-01-01",
    )
    assert list_changed_inputs(spec("alpha", platforms=PLATFORMS), lock) == (
        "platforms: + macos-arm64",
    )
    assert list_changed_inputs(
        spec("alpha", targets={"local": {"kind": "local", "gpu": "L4", "cuda": "12.8"}}), lock
    )[0].startswith("targets.local: ")


def test_exclude_newer_hides_later_uploads(bench: Bench) -> None:
    # Files of this index carry no upload time, and uv then refuses them rather than guess.
    with pytest.raises(LockError):
        locked(bench, spec("alpha", exclude_newer="2020-01-01"))


def test_a_changed_spec_keeps_the_versions_that_still_fit(bench: Bench, tmp_path: Path) -> None:
    old = locked(bench, spec("alpha"))
    make_index(
        tmp_path / "index",
        (*(tmp_path / "wheels").glob("alpha*"), make_wheel(tmp_path / "wheels", "alpha", "3.0")),
    )
    machine = RealSystem(bench.environment())
    kept = resolve_spec(spec("alpha", "gamma"), load_facts(), machine, lambda _: None, keep=old)
    assert {package.name: package.version for package in kept.packages} == {
        "alpha": "2.0",
        "gamma": "1.0",
    }
    anew = resolve_spec(spec("alpha", "gamma"), load_facts(), machine, lambda _: None)
    assert {package.name: package.version for package in anew.packages}["alpha"] == "3.0"
    moved = resolve_spec(spec("alpha", "beta"), load_facts(), machine, lambda _: None, keep=old)
    assert {package.name: package.version for package in moved.packages}["alpha"] == "1.0"


def test_both_torch_builds_of_a_lock_are_kept(bench: Bench, tmp_path: Path) -> None:
    cpu = torch_rig(tmp_path, bench)
    old = locked(bench, spec("torch", platforms=PLATFORMS), PROVISION_INDEX_PYTORCH_CPU=cpu)
    newer = make_wheel(
        tmp_path / "c", "torch", "2.14.0+cpu", tag=f"{TAG}-{TAG}-manylinux_2_28_x86_64"
    )
    make_index(tmp_path / "cpu", (*(tmp_path / "c").glob("torch-2.13*"), newer))
    machine = RealSystem(bench.environment(PROVISION_INDEX_PYTORCH_CPU=cpu))
    kept = resolve_spec(
        spec("torch", "alpha", platforms=PLATFORMS), load_facts(), machine, lambda _: None, keep=old
    )
    assert sorted(package.version for package in kept.packages if package.name == "torch") == [
        "2.13.0",
        "2.13.0+cpu",
    ]


def test_indexes_that_share_one_mirror_keep_their_names(bench: Bench, tmp_path: Path) -> None:
    wanted = spec(
        {"name": "alpha", "index": "private"},
        "beta",
        indexes={"private": {"url": "https://packages.example.com/simple"}},
    )
    lock = locked(bench, wanted, PROVISION_INDEX_PRIVATE=bench.index)
    assert {package.name: package.index for package in lock.packages} == {
        "alpha": "private",
        "beta": "pypi",
    }
