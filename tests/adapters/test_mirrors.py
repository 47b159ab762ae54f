"""Where packages come from: overrides, pip's mirrors, and when a folder of wheels may stand in for
an index.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.adapters.uv.sources import PipConfig, index_override_variable, locate_sources
from provision.effects.packages import NamedIndex, PackageSources

CPU = NamedIndex(
    "pytorch-cpu", "https://download.pytorch.org/whl/cpu", "cpu", ("torch",), ("linux-x86_64",)
)
PRIVATE = NamedIndex("private", "https://packages.example.com/simple")
GOOD = "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"


def held(folder: Path, *names: str) -> PipConfig:
    """A pip configuration whose find-links folder holds wheels of those names."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).touch()
    return PipConfig(find_links=(str(folder),))


def asked(
    pip: PipConfig, *indexes: NamedIndex, minor: str = "3.11", **environment: str
) -> PackageSources:
    return locate_sources(pip, environment, indexes, minor)


def test_nothing_set_means_the_indexes_own_addresses() -> None:
    found = asked(PipConfig(), CPU, PRIVATE)
    assert found.default.url == ""
    assert [(source.name, source.url, source.wheels) for source in found.named] == [
        (CPU.name, CPU.url, ()),
        (PRIVATE.name, PRIVATE.url, ()),
    ]
    assert found.notes == ()


def test_pips_index_takes_the_place_of_the_default_one_and_a_variable_that_of_both() -> None:
    pip = PipConfig(index_url="https://mirror.example/simple")
    found = asked(pip)
    assert found.default.url == "https://mirror.example/simple"
    assert found.notes == ("default index: https://mirror.example/simple (pip's index-url)",)
    other = asked(pip, PROVISION_INDEX_PYPI="https://jane:s3cret@other.example/simple")
    assert other.default.url == "https://jane:s3cret@other.example/simple"
    assert other.notes == (
        "default index: https://***@other.example/simple (PROVISION_INDEX_PYPI)",
    ), "what is used is told, and nothing else"


def test_a_variable_overrides_a_named_index_even_when_a_folder_could_stand_in(
    tmp_path: Path,
) -> None:
    pip = held(tmp_path / "wheels", GOOD)
    found = asked(pip, CPU, PROVISION_INDEX_PYTORCH_CPU="file:///mirror/cpu")
    (source,) = found.named
    assert found.notes == ("index pytorch-cpu: file:///mirror/cpu (PROVISION_INDEX_PYTORCH_CPU)",)
    assert (source.url, source.wheels) == ("file:///mirror/cpu", ())
    assert index_override_variable("pytorch-cpu") == "PROVISION_INDEX_PYTORCH_CPU"


def test_extra_indexes_are_not_passed_on_and_a_note_says_so() -> None:
    found = asked(
        PipConfig(
            extra_index_urls=(
                "https://user:secret@extra.example/simple",
                "https://more.example/simple",
            )
        ),
        CPU,
    )
    assert "extra" not in str((found.default, found.named, found.find_links, found.wheels))
    (note,) = found.notes
    assert "extra-index-url is not used" in note
    assert "`indexes`" in note
    assert "secret" not in note


def test_a_folder_with_a_fitting_wheel_stands_in(tmp_path: Path) -> None:
    found = asked(held(tmp_path / "wheels", GOOD), CPU)
    assert [wheel.name for wheel in found.named[0].wheels] == [GOOD]
    assert found.named[0].url == CPU.url
    assert found.notes == (
        "using 1 local wheel (pip's find-links) instead of the index pytorch-cpu",
    )


@pytest.mark.parametrize(
    "name",
    [
        "torch-2.13.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.13.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-2.13.0+cpu-cp311-cp311t-manylinux_2_28_x86_64.whl",
        "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_aarch64.whl",
        "torch-2.13.0+cpu-cp311-cp311-macosx_11_0_arm64.whl",
        "torch-2.13.0+cpu-cp311-cp311-win_amd64.whl",
        "torchvision-0.28.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.13.0+cpu.whl",
        "not-a-wheel-at-all.whl",
        "torch-2.13.0+cpu.tar.gz",
    ],
)
def test_a_wheel_of_another_kind_does_not_stand_in(tmp_path: Path, name: str) -> None:
    found = asked(held(tmp_path / "wheels", name), CPU)
    assert found.named[0].wheels == ()
    assert len(found.notes) == ("+cpu-" in name), "a wheel of the flavour that is left out is told"
    assert all(f"has {name} but not all of torch" in note for note in found.notes)


@pytest.mark.parametrize(
    ("index", "more"),
    [
        (
            NamedIndex(CPU.name, CPU.url, "cpu", ("torch", "torchvision"), ("linux-x86_64",)),
            "torchvision-0.28.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
        ),
        (
            NamedIndex(CPU.name, CPU.url, "cpu", ("torch",), ("linux-aarch64", "linux-x86_64")),
            "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_aarch64.whl",
        ),
    ],
    ids=["package", "platform"],
)
def test_every_package_on_every_platform_must_be_there(
    tmp_path: Path, index: NamedIndex, more: str
) -> None:
    pip = held(tmp_path / "wheels", GOOD)
    assert asked(pip, index).named[0].wheels == ()
    held(tmp_path / "wheels", more)
    assert sorted(wheel.name for wheel in asked(pip, index).named[0].wheels) == sorted([GOOD, more])


@pytest.mark.parametrize(
    ("wanted", "stands_in"),
    [
        ("torch", True),
        ("torch==2.13.*", True),
        ("torch==2.13.0", True),
        ("torch==2.13.0+cpu", True),
        ("torch>=2,<3", True),
        ("Torch==2.13.0", True),
        ("torch==2.12.*", False),
        ("torch==2.13.1", False),
        ("torch==2.13.0+cu128", False),
        ("torch<2.13", False),
    ],
)
def test_a_wheel_of_an_unwanted_version_does_not_stand_in(
    tmp_path: Path, wanted: str, stands_in: bool
) -> None:
    index = NamedIndex(CPU.name, CPU.url, "cpu", (wanted,), ("linux-x86_64",))
    assert bool(asked(held(tmp_path / "wheels", GOOD), index).named[0].wheels) is stands_in


def test_only_an_index_of_a_flavour_can_be_stood_in_for(tmp_path: Path) -> None:
    plain = NamedIndex("pytorch-cpu", CPU.url, None, ("torch",), ("linux-x86_64",))
    assert asked(held(tmp_path / "wheels", GOOD), plain).named[0].wheels == ()


def test_torch_and_cuda_wheels_are_never_plain_wheels(tmp_path: Path) -> None:
    never = (
        GOOD,
        "torchaudio-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "triton-3.5.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "pytorch_triton_rocm-3.5.0-cp311-cp311-linux_x86_64.whl",
        "nvidia_cublas_cu12-12.8.4.1-py3-none-manylinux_2_27_x86_64.whl",
        "cuda_bindings-12.8-cp311-cp311-manylinux_2_27_x86_64.whl",
    )
    pip = held(
        tmp_path / "wheels",
        *never,
        "alpha-1.0-py3-none-any.whl",
        "torchmetrics-1.0-py3-none-any.whl",
    )
    assert [wheel.name for wheel in asked(pip, CPU).wheels] == [
        "alpha-1.0-py3-none-any.whl",
        "torchmetrics-1.0-py3-none-any.whl",
    ]


def test_folders_are_found_as_pip_finds_them_and_links_are_passed_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    held(home / "wheels", "alpha-1.0-py3-none-any.whl")
    held(tmp_path / "with space", "beta-1.0-py3-none-any.whl")
    links = (
        "~/wheels",
        (tmp_path / "with space").as_uri(),
        "https://w.example/page.html",
        "http://w.example/x",
        str(tmp_path / "nowhere"),
    )
    found = asked(PipConfig(find_links=links), HOME=str(home))
    assert [wheel.name for wheel in found.wheels] == [
        "alpha-1.0-py3-none-any.whl",
        "beta-1.0-py3-none-any.whl",
    ]
    assert found.find_links == ("https://w.example/page.html", "http://w.example/x")


def test_a_wheel_that_lies_in_two_folders_is_taken_once_from_the_first(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        held(tmp_path / folder, GOOD, "alpha-1.0-py3-none-any.whl")
    links = (str(tmp_path / "b"), str(tmp_path / "a"), str(tmp_path / "b"))
    found = asked(PipConfig(find_links=links), CPU)
    assert found.wheels == (tmp_path / "b/alpha-1.0-py3-none-any.whl",)
    assert found.named[0].wheels == (tmp_path / "b" / GOOD,)
