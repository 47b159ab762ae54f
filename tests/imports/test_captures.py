"""Captures as a format of imports: what becomes a spec, what is listed, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from provision.adapters.system import RealSystem
from provision.errors import ProvisionError
from provision.facts.lazy_tables import load_colab_packages
from provision.imports.captures import read_capture
from provision.imports.formats import detect_format
from provision.imports.model import ImportContext, ImportedFile

TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
READINGS = {
    "driver.error": -1,
    "gpu.count": 0,
    "gpu.name": None,
    "host.platform": "linux-x86_64",
    "place.product": None,
    "python.minor": "3.11",
}
L4 = {
    "driver.error": None,
    "gpu.count": 1,
    "gpu.name": "NVIDIA L4",
    "gpu.compute_capability": "8.9",
    "gpu.vram_bytes": 24152899584,
}


def package(version: str, *requires: str, origin: str = "uv", **more: Any) -> dict[str, Any]:
    row = {"version": version, "origin": origin, "requested": None, "requires": [*requires]}
    return row | more


def document(packages: dict[str, Any], **readings: Any) -> dict[str, Any]:
    return {
        "schema": "provision.capture/1",
        "readings": READINGS | readings,
        "packages": packages,
        "modules": {},
        "variables": ["HF_TOKEN"],
        "unread": [],
    }


def read_text(text: str) -> ImportedFile:
    return read_capture(Path("c.json"), text, ImportContext(Path(), RealSystem()))


def read(packages: dict[str, Any], **readings: Any) -> ImportedFile:
    return read_text(json.dumps(document(packages, **readings), indent=1))


def requirements(file: ImportedFile) -> list[str]:
    return [one.requirement for one in file.packages]


def settings(file: ImportedFile) -> dict[str, Any]:
    return {".".join(map(str, one.route)): one.value for one in file.settings}


def messages(file: ImportedFile) -> str:
    return "\n".join(f"{one.message} | {one.why} | {one.help}" for one in file.leftovers)


def test_packages_that_no_other_requires_are_taken_with_their_line() -> None:
    file = read({"torch": package("2.6.0+cu124", "numpy"), "numpy": package("2.1.3")}, **L4)

    assert requirements(file) == ["torch==2.6.0"]
    assert settings(file) == {"cuda": "12.4", "python": "3.11", "gpu": "L4"}
    span = file.packages[0].span
    text = file.texts[span.file].content
    assert text[span.start.offset : span.end.offset] == '"2.6.0+cu124"'
    assert "numpy: left out | other packages require them" in messages(file)


def test_a_package_that_a_person_named_is_taken_although_another_requires_it() -> None:
    rows = {"a": package("1.0", "b", "c"), "b": package("1.0", requested=True), "c": package("2.0")}
    assert requirements(read(rows)) == ["a==1.0", "b==1.0"]


def test_of_packages_that_only_require_one_another_one_is_taken() -> None:
    rows = {
        "a": package("1.0", "b", "leaf"),
        "b": package("1.0", "a"),
        "leaf": package("1.0"),
        "self": package("3.0", "self"),
    }
    assert requirements(read(rows)) == ["a==1.0", "self==3.0"]


@pytest.mark.parametrize(
    ("origin", "reason"),
    [
        ("editable", "it was installed in editable mode"),
        ("vcs", "it was installed from a repository"),
        ("file", "it was installed from a file on that machine"),
        ("url", "it was installed from a URL"),
    ],
)
def test_a_package_without_an_index_is_named_and_what_it_requires_is_kept(
    origin: str, reason: str
) -> None:
    file = read({"ours": package("0.1", "numpy", origin=origin), "numpy": package("2.1.3")})

    assert requirements(file) == ["numpy==2.1.3"]
    assert f"ours 0.1 is not imported: {reason} | " in messages(file)


def test_installers_and_packages_of_the_system_are_listed() -> None:
    rows = {
        "pip": package("25.0"),
        "setuptools": package("80.0"),
        "python-apt": package("2.4", origin="system"),
        "scipy": package("1.14.1", origin="conda"),
    }
    file = read(rows)

    assert requirements(file) == ["scipy==1.14.1"]
    for text in (
        "pip, setuptools: left out | they install packages",
        "python-apt: left out | the operating system",
        "scipy: taken from the package index | conda installed them",
    ):
        assert text in messages(file)


def test_packages_of_a_colab_runtime_in_its_version_are_left_out() -> None:
    held = load_colab_packages()["2026.07-cpu"]
    rows = {name: package("1.0" if version == "?" else version) for name, version in held.items()}
    rows |= {"numpy": package("2.2.0"), "pandas": package(held["pandas"], "numpy")}
    rows |= {"einops-exts": package("0.0.4", "numpy")}
    product = {"place.product": "Google Colab release-colab_20260714", "python.minor": "3.12"}
    file = read(rows, **product)

    assert requirements(file) == ["einops-exts==0.0.4"]
    assert "numpy: left out" in messages(file)
    assert f"{len(held) - 1} packages of the Colab runtime 2026.07 were left out" in messages(file)
    expected = {"targets.colab.kind": "colab", "targets.colab.runtime": "2026.07", "gpu": "none"}
    assert settings(file) == expected | {"python": "3.12"}

    del rows["einops-exts"]
    assert requirements(read(rows, **product)) == ["numpy==2.2.0"]
    few = read({"numpy": package("2.2.0")}, **product)
    assert requirements(few) == ["numpy==2.2.0"]
    assert "the Colab runtime in this capture is unknown" in messages(few)


@pytest.mark.parametrize(
    ("readings", "gpu"),
    [
        ({"gpu.name": "NVIDIA L4", "gpu.count": 2}, "L4:2"),
        ({"gpu.name": "NVIDIA A100-SXM4-80GB"}, "A100-80GB"),
        ({"gpu.name": "Tesla V100-SXM2-16GB"}, "V100"),
        ({"gpu.name": "NVIDIA H200"}, "H200-141GB"),
        ({"gpu.name": "NVIDIA L40S"}, "L40S"),
        ({"gpu.name": "NVIDIA GeForce RTX 3060 Ti"}, "RTX-3060-Ti"),
        ({"host.platform": "macos-arm64", "driver.error": -1}, "mps"),
    ],
)
def test_the_gpu_is_found_by_its_name(readings: dict[str, Any], gpu: str) -> None:
    assert settings(read({}, **{"gpu.count": 1, "driver.error": None} | readings))["gpu"] == gpu


@pytest.mark.parametrize(
    ("readings", "message"),
    [
        ({"gpu.name": "NVIDIA X9000"}, "the GPU NVIDIA X9000 was left out"),
        ({"gpu.name": "NVIDIA L4 + Tesla T4"}, "the GPU NVIDIA L4 + Tesla T4 was left out"),
        ({**L4, "gpu.vram_bytes": 2**33}, "the GPU NVIDIA L4 was left out"),
        ({"driver.error": 999}, "the driver failed when the capture was made"),
        ({"host.platform": "freebsd-x86_64"}, "the platform freebsd-x86_64 was left out"),
        ({"python.minor": "2.7"}, "Python 2.7 was left out"),
    ],
)
def test_a_machine_that_a_spec_cannot_name_is_listed(
    readings: dict[str, Any], message: str
) -> None:
    assert message in messages(read({}, **readings))


def test_a_cpu_build_on_a_machine_with_a_gpu_keeps_its_build() -> None:
    file = read({"torch": package("2.6.0+cpu")}, **L4)

    assert settings(file) == {"cuda": "none", "gpu": "none", "python": "3.11"}
    assert "the GPU L4 was left out | the installed torch is a CPU build" in messages(file)


def test_cuda_is_that_of_torch_also_if_another_package_requires_it() -> None:
    rows = {"peft": package("0.15.0", "torch"), "torch": package("2.6.0+cu124")}
    assert settings(read(rows, **L4))["cuda"] == "12.4"
    rows["torch"] = package("2.6.0")
    file = read(rows, **{"torch.cuda": "12.4"}, **L4)
    assert settings(file)["cuda"] == "12.4"


def test_hostile_text_is_shown_without_secrets_and_never_taken() -> None:
    rows = {
        f"evil @ https://user:{TOKEN}@example.com/x.whl": package("1.0"),
        "late": package("1.0 ; sys_platform == 'linux'"),
        "lines": package("1.0\npackages: [x]"),
        "\ud800": package("1.0"),
        "fine": package("1.0", origin=f"https://{TOKEN}@example.com"),
    }
    file = read(rows)

    assert requirements(file) == ["fine==1.0"]
    assert TOKEN not in messages(file)
    assert messages(file).count("is not imported: it") == 4
    assert "\npackages" not in messages(file)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"packages": []}, "packages is not an object"),
        ({"packages": {"a": 1}}, "package a has no version"),
        ({"packages": {"a": package("1.0", requires="b")}}, "is not a list of names"),
        ({"packages": {"a": package("1.0", requires=[1])}}, "is not a list of names"),
        ({"packages": {"a": "1.0"}}, "is not a list of names"),
        ({"packages": {"a": package("1.0") | {"origin": 1}}}, "the origin of the package a"),
        ({"readings": "x"}, "readings is not an object"),
        ({"readings": {"gpu.name": ["L4"]}}, "gpu.name is list; expected a string or null"),
        ({"readings": {"python.minor": 3.11}}, "python.minor is float"),
    ],
)
def test_values_of_another_type_are_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ProvisionError) as error:
        read_text(json.dumps(document({}) | change))
    assert error.value.what == "c.json is damaged"
    assert why in error.value.why


def test_a_newer_and_a_truncated_capture_are_refused() -> None:
    text = json.dumps(document({}))
    with pytest.raises(ProvisionError, match=r"provision\.capture/2, which this version") as error:
        read_text(text.replace("capture/1", "capture/2"))
    assert "update `provision`" in error.value.hint
    with pytest.raises(ProvisionError) as error:
        read_text(text[: len(text) // 2])
    assert error.value.why.startswith("it is not valid JSON")
    with pytest.raises(ProvisionError, match="is not a capture"):
        read_text(text.replace("capture/1", "env/1"))


def test_a_capture_is_recognized_by_its_schema() -> None:
    found = detect_format(Path("colab.json"), json.dumps(document({}), indent=1))
    assert found is not None
    assert found.name == "capture"
    assert detect_format(Path("other.json"), '{"schema": "provision.env/1"}') is None
