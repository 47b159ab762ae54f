"""Resolutions of proposals by the real uv, from a folder of small wheels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from measures.resolution import Outcome, resolve
from provision.spec import Spec
from remaking.index import PipIndex
from remaking.wheels import Shelf
from tests.remaking.serving import wheel

OFF = "http://127.0.0.1:9/simple"
"""An index that cannot be reached."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a uv whose index is a folder with three wheels."""
    folder = tmp_path_factory.mktemp("index")
    for version, tag in (("1.0", "cp310-cp310-manylinux_2_17_x86_64"), ("2.0", "py3-none-any")):
        _publish(folder, "tiny", wheel("tiny", version, tag))
    _publish(folder, "torch", wheel("torch", "2.0.1", head="Requires-Dist: tiny<2"))
    return {
        "PATH": os.environ["PATH"],
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_DEFAULT_INDEX": folder.as_uri(),
        "UV_PYTHON_DOWNLOADS": "never",
    }


def _publish(index: Path, name: str, files: Mapping[str, bytes]) -> None:
    page = index / name / "index.html"
    page.parent.mkdir(exist_ok=True)
    for file, data in files.items():
        (index / file).write_bytes(data)
        with page.open("a", encoding="utf-8") as text:
            text.write(f'<a href="{(index / file).as_uri()}">{file}</a>')


@pytest.mark.parametrize(
    ("python", "packages", "outcome", "reason"),
    [
        ("3.10", ["torch==2.0.1+cu118", "tiny"], Outcome.RESOLVED, ""),
        ("3.10", ["torch==2.0.1", "tiny==2.0"], Outcome.REFUSED, "unsatisfiable"),
        ("3.11", ["torch==2.0.1"], Outcome.REFUSED, "tiny"),
        ("3.10", [{"name": "tiny", "index": "ours"}], Outcome.UNKNOWN, "not on the index: tiny"),
    ],
)
def test_what_uv_finds(
    environment: Mapping[str, str],
    python: str,
    packages: list[object],
    outcome: Outcome,
    reason: str,
) -> None:
    indexes = {"ours": {"url": "https://packages.example.com/simple"}}
    spec = Spec.model_validate(
        {"name": "s", "gpu": "none", "python": python, "packages": packages, "indexes": indexes}
    )
    found = resolve(spec, Shelf(PipIndex()), environment)
    assert found.outcome is outcome
    assert reason in found.reason


def test_an_index_out_of_reach_refuses_nothing(environment: Mapping[str, str]) -> None:
    spec = Spec.model_validate(
        {"name": "s", "gpu": "none", "python": "3.10", "packages": ["torch"]}
    )
    offline = {**environment, "UV_DEFAULT_INDEX": OFF, "UV_HTTP_RETRIES": "0"}
    assert resolve(spec, Shelf(PipIndex()), offline).outcome is Outcome.UNKNOWN
