"""Packages that need AVX, on a processor without it: /proc/cpuinfo is another file there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.instructions import (
    MissingInstructionsError,
    avx_packages,
    require_instructions,
)
from tests.agent.probe.bench import Environment, checks, in_namespace

DIES = "import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n"
"""What an import does that meets an instruction which the processor lacks."""
TRAINING = {
    "framework": "keras",
    "backend": "tensorflow",
    "precision": "fp32",
    "dataloader_workers": 0,
    "gradient_checkpointing": False,
    "optimizer": "adamw_torch",
    "arguments": {},
    "method": "full",
    "model": None,
    "batch_size": None,
    "sequence_length": None,
    "torch_compile": False,
    "strategy": "none",
    "launcher": "auto",
}
MESSAGE = "tensorflow not imported: AVX instructions are required, and this processor does not"


@pytest.mark.parametrize(
    ("packages", "platform", "needing"),
    [
        ({"tensorflow-cpu": "2.21.0", "jaxlib": "0.10.2"}, "linux-x86_64", True),
        ({"tensorflow": "2.21.0"}, "linux-aarch64", False),
        ({"tensorflow": "2.21.0"}, "macos-arm64", False),
        ({"tensorflow": "2.21.0+selfbuild"}, "linux-x86_64", False),
        ({"torch": "2.13.0"}, "linux-x86_64", False),
    ],
)
def test_wheels_for_x86_need_avx(packages: dict[str, str], platform: str, needing: bool) -> None:
    assert avx_packages(packages, platform) == (sorted(packages) if needing else [])


@pytest.mark.parametrize(
    ("cpuinfo", "is_refused"),
    [
        ("flags\t\t: fpu sse4_2\n", True),
        ("flags\t\t: fpu sse4_2 avx\n", False),
        ("flags\t\t: fpu sse4_2 avx2\n", True),
        ("processor: 0\n", False),
        (None, False),
    ],
)
def test_only_a_processor_that_lists_other_flags_is_refused(
    tmp_path: Path, cpuinfo: str | None, is_refused: bool
) -> None:
    (tmp_path / "proc").mkdir()
    if cpuinfo is not None:
        (tmp_path / "proc/cpuinfo").write_text(cpuinfo)
    require_instructions([], tmp_path)
    if not is_refused:
        require_instructions(["tensorflow"], tmp_path)
        return
    with pytest.raises(MissingInstructionsError, match="AVX instructions are required"):
        require_instructions(["tensorflow"], tmp_path)


def verified_with(environment: Environment, tmp_path: Path, flags: str) -> dict[str, Any]:
    """Return the checks of a real verification where /proc/cpuinfo has some flags."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nmodel name\t: Made up CPU\nflags\t\t: fpu {flags}\n\n")
    there = replace(environment, before=in_namespace(f'mount --bind "{cpuinfo}" /proc/cpuinfo'))
    there.add("tensorflow", DIES, "2.21.0").add("keras", "import tensorflow\n", "3.15.1")
    _, report, said = there.verify(
        "--only", "H13", "--only", "P06", "--only", "J01", "--only", "J05", training=TRAINING
    )
    assert report, said
    return checks(report)


@pytest.mark.root
def test_tensorflow_is_not_imported_on_a_processor_without_avx(
    environment: Environment, tmp_path: Path
) -> None:
    found = verified_with(environment, tmp_path, "sse4_2")
    assert found["H13"]["status"] == "fail"
    assert "lacks the AVX instructions required by tensorflow" in found["H13"]["message"]
    assert "Illegal instruction" in found["H13"]["cause"]
    assert "different machine type" in found["H13"]["fix"]
    for name in ("P06:tensorflow", "P06:keras", "J01", "J05"):
        assert found[name]["status"] == "fail"
        assert MESSAGE in found[name]["message"], found[name]["message"]
        assert "processor" in found[name]["cause"]


@pytest.mark.root
def test_without_this_check_the_import_ends_the_process(
    environment: Environment, tmp_path: Path
) -> None:
    found = verified_with(environment, tmp_path, "sse4_2 avx")
    assert found["H13"]["status"] == "pass"
    assert "ended by SIGILL" in found["P06:tensorflow"]["message"]
