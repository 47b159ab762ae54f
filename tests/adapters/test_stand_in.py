"""A folder of wheels in pip's find-links stands in for PyTorch's CPU index, and nothing ever falls
back to CUDA builds.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from provision.effects.packages import IndexSource
from tests.rig import TAG, Bench, make_index, make_wheel, small_spec

LINUX = f"{TAG}-{TAG}-manylinux_2_28_x86_64"
OTHER = "cp38-cp38-manylinux_2_28_x86_64"
UNREACHABLE = {"HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
"""Keeps PyTorch's own index out of reach, also on a machine with network."""


@pytest.fixture
def cuda_by_default(bench: Bench, tmp_path: Path) -> Bench:
    """A bench whose default index holds what the public one does for Linux: a torch 2.13.0 that
    brings CUDA packages.
    """
    wheels = tmp_path / "wheels"
    torch = make_wheel(
        wheels,
        "torch",
        "2.13.0",
        tag=LINUX,
        requires=("nvidia-cublas; sys_platform == 'linux'", "alpha"),
    )
    make_index(
        tmp_path / "index",
        (torch, make_wheel(wheels, "nvidia-cublas", "13.0", tag="py3-none-manylinux_2_27_x86_64")),
    )
    bench.spec(small_spec("torch==2.13.*", extra="platforms: [linux-x86_64]\n"))
    return bench


def lock(
    bench: Bench, folder: Path | None = None, **changes: str
) -> subprocess.CompletedProcess[str]:
    """Lock with `folder` in PIP_FIND_LINKS."""
    links = {"PIP_FIND_LINKS": str(folder)} if folder is not None else {}
    return bench.run("lock", "spec.yaml", **{**links, **UNREACHABLE, **changes})


def locked(bench: Bench) -> dict[str, dict[str, object]]:
    return {
        package["name"]: package
        for package in json.loads((bench.folder / "spec.lock").read_text())["packages"]
    }


@pytest.mark.parametrize("way", ["variable", "file"])
def test_a_fitting_wheel_is_chosen_marked_and_warned_about(
    cuda_by_default: Bench, tmp_path: Path, way: str
) -> None:
    folder = tmp_path / "links"
    make_wheel(folder, "torch", "2.13.0+cpu", tag=LINUX, requires=("alpha",))
    configuration = tmp_path / "pip.conf"
    configuration.write_text(f"[global]\nfind-links = {folder}\n")
    done = (
        lock(cuda_by_default, folder)
        if way == "variable"
        else lock(cuda_by_default, PIP_CONFIG_FILE=str(configuration))
    )
    assert done.returncode == 0, done.stderr
    torch = locked(cuda_by_default)["torch"]
    assert (torch["version"], torch["index"], torch["origin"]) == (
        "2.13.0+cpu",
        "pytorch-cpu",
        "unconfirmed",
    )
    assert sorted(locked(cuda_by_default)) == ["alpha", "torch"]
    assert "instead of the index pytorch-cpu" in done.stderr
    assert (
        "warning: the hashes of these packages come from files on this machine, and no index or "
        "other source has confirmed them: alpha 2.0, torch 2.13.0+cpu" in done.stderr
    )
    text = (cuda_by_default.folder / "spec.lock").read_text()
    assert json.loads(text)["indexes"] == {"pytorch-cpu": "https://download.pytorch.org/whl/cpu"}
    assert "file:" not in text
    assert str(tmp_path) not in text


def test_the_chosen_wheel_is_what_gets_installed(cuda_by_default: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    make_wheel(folder, "torch", "2.13.0+cpu", tag=LINUX)
    cuda_by_default.run("apply", "spec.yaml", "--yes", PIP_FIND_LINKS=str(folder), **UNREACHABLE)
    told = cuda_by_default.run(
        "run", "spec.yaml", "--", "python", "-c", "import torch; print(torch.__version__)"
    )
    assert told.stdout == "2.13.0+cpu\n", told.stderr


def test_an_override_may_be_a_folder_index_and_confirms_nothing(
    cuda_by_default: Bench, tmp_path: Path
) -> None:
    index = make_index(
        tmp_path / "cpu", (make_wheel(tmp_path / "c", "torch", "2.13.0+cpu", tag=LINUX),)
    )
    done = lock(cuda_by_default, PROVISION_INDEX_PYTORCH_CPU=index)
    assert done.returncode == 0, done.stderr
    torch = locked(cuda_by_default)["torch"]
    assert (torch["version"], torch["index"]) == ("2.13.0+cpu", "pytorch-cpu")
    assert torch["origin"] == "unconfirmed"
    assert "no index or other source has confirmed them: torch 2.13.0+cpu" in done.stderr


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("", False),
        ("https://packages.example.com/simple", False),
        ("http://packages.localhost.example.com/simple", False),
        ("file:///srv/mirror", True),
        ("http://127.0.0.1:8000/simple", True),
        ("http://localhost/simple", True),
        ("http://[::1]:8000/simple", True),
    ],
)
def test_only_an_index_elsewhere_confirms_a_hash(url: str, here: bool) -> None:
    assert IndexSource("pypi", url).is_local is here


def test_a_cpu_wheel_that_needs_cuda_packages_is_refused_with_the_path(
    cuda_by_default: Bench, tmp_path: Path
) -> None:
    folder = tmp_path / "links"
    make_wheel(folder, "torch", "2.13.0+cpu", tag=LINUX, requires=("nvidia-cublas",))
    done = lock(cuda_by_default, folder)
    assert done.returncode == 1
    assert "the spec is for CPU only, but nvidia-cublas 13.0 is built for CUDA" in done.stderr
    assert "required by nvidia-cublas <- torch" in done.stderr
    assert not (cuda_by_default.folder / "spec.lock").exists()


@pytest.mark.parametrize(
    ("name", "version", "tag"),
    [
        ("torch", "2.13.0+cpu", OTHER),
        ("torch", "2.13.0+cpu", f"{TAG}-{TAG}-manylinux_2_28_aarch64"),
        ("torch", "2.13.0", LINUX),
        ("torchvision", "0.28.0+cpu", LINUX),
    ],
    ids=["another python", "another machine", "no flavour", "another package"],
)
def test_without_a_fitting_wheel_the_index_is_named_and_cuda_is_not_taken(
    cuda_by_default: Bench, tmp_path: Path, name: str, version: str, tag: str
) -> None:
    folder = tmp_path / "links"
    make_wheel(folder, name, version, tag=tag)
    done = lock(cuda_by_default, folder)
    assert done.returncode == 2, done.stderr
    assert "could not be reached" in done.stderr
    assert "PROVISION_INDEX_PYTORCH_CPU" in done.stderr
    assert "nvidia" not in done.stderr
    assert not (cuda_by_default.folder / "spec.lock").exists()


@pytest.mark.long
def test_an_index_without_a_wheel_for_this_python_says_so(
    cuda_by_default: Bench, tmp_path: Path
) -> None:
    index = make_index(
        tmp_path / "cpu", (make_wheel(tmp_path / "c", "torch", "2.13.0+cpu", tag=OTHER),)
    )
    done = lock(cuda_by_default, PROVISION_INDEX_PYTORCH_CPU=index)
    assert done.returncode == 1, done.stderr
    assert "torch" in done.stderr
    assert "cp38" in done.stderr
    assert not (cuda_by_default.folder / "spec.lock").exists()


def test_torch_that_comes_in_unasked_is_taken_from_the_folder_too(
    cuda_by_default: Bench, tmp_path: Path
) -> None:
    make_index(
        tmp_path / "index",
        (make_wheel(tmp_path / "wheels", "trainer", "1.0", requires=("torch>=2",)),),
    )
    folder = tmp_path / "links"
    make_wheel(folder, "torch", "2.13.0+cpu", tag=LINUX)
    cuda_by_default.spec(small_spec("trainer", extra="platforms: [linux-x86_64]\n"))
    done = lock(cuda_by_default, folder)
    assert done.returncode == 0, done.stderr
    assert {name: package["version"] for name, package in locked(cuda_by_default).items()} == {
        "torch": "2.13.0+cpu",
        "trainer": "1.0",
    }


def test_other_wheels_of_the_folder_count_and_are_marked(
    cuda_by_default: Bench, tmp_path: Path
) -> None:
    folder = tmp_path / "links"
    make_wheel(folder, "homemade", "1.0")
    cuda_by_default.spec(small_spec("homemade", "alpha"))
    done = lock(cuda_by_default, folder)
    assert done.returncode == 0, done.stderr
    assert {name: package.get("origin") for name, package in locked(cuda_by_default).items()} == {
        "alpha": "unconfirmed",
        "homemade": "unconfirmed",
    }
