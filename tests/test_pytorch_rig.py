"""The rig of PyTorch's indexes: the same bytes everywhere, the builds that the facts name, and uv
resolves every flavour of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision.facts import Facts, cuda_of, load_facts
from remaking.index import PipIndex
from tests.pytorch_rig import FLAVOURS, PYTHONS, PyTorch, content, lay_out
from tests.rig import Bench, served
from tests.support import require

UNREACHABLE = {"HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


def locked(bench: Bench) -> dict[str, dict[str, str]]:
    """The packages of spec.lock by name."""
    return {
        package["name"]: package
        for package in json.loads((bench.folder / "spec.lock").read_text())["packages"]
    }


def spec(flavour: str, *packages: str, python: str = "3.12") -> str:
    """A spec of one flavour for Linux."""
    device = "gpu: none" if flavour == "cpu" else f'gpu: L4\ncuda: "{cuda_of(flavour)}"'
    return (
        f'{device}\npython: "{python}"\npackages: {json.dumps(packages)}\nplatforms: '
        "[linux-x86_64]\n"
    )


def hashes(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*.whl")):
        yield str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_same_bytes_come_out_every_time(pytorch: PyTorch, tmp_path: Path) -> None:
    first, again = dict(hashes(pytorch.folder)), dict(hashes(lay_out(tmp_path / "again").folder))
    assert first == again
    named = "cu128/torch/torch-2.11.0+cu128-cp312-cp312-manylinux_2_28_x86_64.whl"
    assert first[named] == "d87b8a1641b794f7ecac39cf283f620cb655bfe1249a4b2208fdf67dabba7852", (
        "on every machine: locks in tests/golden hold this hash"
    )


def test_the_builds_are_those_that_the_facts_name(facts: Facts) -> None:
    for release, row in content()["torch"].items():
        known = facts.torch_release(release)
        assert known is not None
        assert set(row["flavours"]) == {"cpu", *known.builds} & set(FLAVOURS), release
        assert row["default"] == known.default, release
        assert set(PYTHONS) <= set(known.pythons), release
        pins = " ".join(row["flavours"][known.default])
        assert f"triton=={known.triton}" in pins
        assert f"=={known.cudnn}" in pins
        assert f"=={known.nccl}" in pins
        companions = {
            name: {v for v, of in row["versions"].items() if of == release}
            for name, row in content()["companions"].items()
        }
        assert companions == {
            "torchvision": set(known.torchvision),
            "torchaudio": set(known.torchaudio),
        }, release


@pytest.mark.long(after=2)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_flavour_resolves_without_network(
    bench: Bench, pytorch: PyTorch, flavour: str
) -> None:
    bench.spec(spec(flavour, "torch", "torchvision", "transformers[torch]"))
    done = bench.run("lock", "spec.yaml", **pytorch.offline(), **UNREACHABLE)
    assert done.returncode == 0, done.stdout + done.stderr
    found = locked(bench)
    newest = "2.11.0" if flavour == "cu128" else "2.13.0"
    assert (found["torch"]["version"], found["torch"]["index"]) == (
        f"{newest}+{flavour}",
        f"pytorch-{flavour}",
    )
    assert found["torchvision"]["version"].endswith(f"+{flavour}")
    assert found["transformers"]["index"] == "pypi"
    assert any(name.startswith("nvidia-") for name in found) == (flavour != "cpu")


@pytest.mark.long(after=1)
@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_and_aarch64_have_a_cpu_build(
    bench: Bench, pytorch: PyTorch, python: str
) -> None:
    bench.spec(
        spec("cpu", "torch==2.12.*", "torchaudio", python=python).replace(
            "[linux-x86_64]", "[linux-x86_64, linux-aarch64, macos-arm64]"
        )
    )
    done = bench.run("lock", "spec.yaml", **pytorch.offline(), **UNREACHABLE)
    assert done.returncode == 0, done.stdout + done.stderr
    tag = "cp" + python.replace(".", "")
    files = " ".join(
        name
        for package in json.loads((bench.folder / "spec.lock").read_text())["packages"]
        for name in package["files"]
    )
    for system in ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64"):
        assert f"torch-2.12.0+cpu-{tag}-{tag}-{system}.whl" in files
    assert f"torch-2.12.0-{tag}-{tag}-macosx_14_0_arm64.whl" in files


def test_what_a_release_pins_is_what_is_locked(bench: Bench, pytorch: PyTorch) -> None:
    bench.spec(spec("cu130", "torch==2.13.0"))
    assert bench.run("lock", "spec.yaml", **pytorch.offline(), **UNREACHABLE).returncode == 0
    found = {name: package["version"] for name, package in locked(bench).items()}
    assert (found["cuda-toolkit"], found["nvidia-cublas"], found["nvidia-cudnn-cu13"]) == (
        "13.0.3.0",
        "13.1.1.3",
        "9.20.0.48",
    )
    assert (found["triton"], found["cuda-bindings"]) == ("3.7.1", "13.5.0")


@pytest.mark.long
def test_on_loopback_it_is_the_same_lock(bench: Bench, pytorch: PyTorch) -> None:
    bench.spec(spec("cu126", "torch", "accelerate"))
    assert bench.run("lock", "spec.yaml", **pytorch.offline()).returncode == 0
    text = (bench.folder / "spec.lock").read_bytes()
    with served(pytorch.folder) as address:
        done = bench.run("lock", "spec.yaml", "--upgrade", **pytorch.offline(address))
    assert done.returncode == 0, done.stderr
    assert (bench.folder / "spec.lock").read_bytes() == text


@pytest.mark.long
def test_without_the_rigs_default_index_torch_has_nothing_to_stand_on(
    bench: Bench, pytorch: PyTorch
) -> None:
    bench.spec(spec("cpu", "torch"))
    done = bench.run("lock", "spec.yaml", **pytorch.variables(), **UNREACHABLE)
    assert done.returncode == 1, done.stderr
    assert "filelock was not found" in done.stderr


@pytest.mark.long(after=1)
@pytest.mark.network
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_pins_exist_on_the_public_index(bench: Bench, pytorch: PyTorch, flavour: str) -> None:
    newest = [release for release, row in content()["torch"].items() if flavour in row["flavours"]][
        -1
    ]
    bench.spec(spec(flavour, f"torch=={newest}", "torchvision"))
    done = bench.run(
        "lock", "spec.yaml", **pytorch.variables(), PROVISION_INDEX_PYPI=PipIndex().url
    )
    require("index", "could not be reached" not in done.stderr, done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert locked(bench)["torch"]["version"] == f"{newest}+{flavour}"
