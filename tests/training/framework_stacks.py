"""Environments with jax or Keras, made from the specs of the repository and the real index."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests import fork_server
from tests.support import make_once

SPECS = Path(__file__).parents[2] / "specs"
KERAS_ON_JAX = (
    ("tensorflow-cpu==2.21.*", "jax==0.10.*"),
    ("KERAS_BACKEND: tensorflow", "KERAS_BACKEND: jax"),
    ("backend: tensorflow", "backend: jax"),
)


class Stack(NamedTuple):
    """A spec of the repository with replaced texts, and what its report contains."""

    spec: str
    replaced: tuple[tuple[str, str], ...]
    library: str
    dtype: str


STACKS = {
    "jax": Stack("jax", (), "jax", "float32"),
    "keras": Stack("keras", (), "tensorflow", "float32"),
    "jax in bf16": Stack("jax", (("precision: fp32", "precision: bf16"),), "jax", "bfloat16"),
    "keras in fp16, with workers": Stack(
        "keras",
        (("precision: fp32", "precision: fp16\n  dataloader_workers: 2"),),
        "tensorflow",
        "float16",
    ),
    "keras on torch": Stack(
        "keras",
        (
            ("tensorflow-cpu==2.21.*", "torch==2.13.*"),
            ("KERAS_BACKEND: tensorflow", "KERAS_BACKEND: torch"),
            ("backend: tensorflow", "backend: torch"),
        ),
        "torch",
        "float32",
    ),
    "keras on jax in bf16": Stack(
        "keras",
        (*KERAS_ON_JAX, ("precision: fp32", "precision: bf16")),
        "jax",
        "bfloat16",
    ),
}


def make_stack(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    """Return the folder of a stack, which is made and verified once for all processes."""
    stack = STACKS[name]

    def make(folder: Path) -> None:
        text = (SPECS / f"{stack.spec}.yaml").read_text(encoding="utf-8")
        for before, after in stack.replaced:
            assert before in text
            text = text.replace(before, after)
        (folder / "stack.yaml").write_text(text, encoding="utf-8")
        words = ["apply", "stack.yaml", "--yes", "--output-format", "json"]
        done = fork_server.run(
            [*fork_server.ARGV, *words], cwd=folder, capture_output=True, text=True, timeout=600
        )
        assert list(folder.glob(".provision/reports/*/report.json")), done.stderr[-3000:]

    return make_once(tmp_path_factory, f"framework {name}", make)
