"""A GPU that jax or TensorFlow computes on is planned without torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rig import MINOR, Bench, make_index, make_wheel

JAX = ('"jax[cuda12]"', "framework: jax")
TENSORFLOW = ("keras, tensorflow", "framework: keras, backend: tensorflow")
SPEC = 'gpu: L4\npython: "{minor}"\npackages: [{packages}]\ntraining: {{{training}}}\n'


@pytest.fixture
def stocked(bench: Bench, tmp_path: Path) -> Bench:
    """A project whose index has small jax, keras and TensorFlow wheels."""
    folder = tmp_path / "wheels"
    wheels = (
        make_wheel(
            folder,
            "jax",
            "0.10.2",
            requires=('jax-cuda12-plugin ; extra == "cuda12"',),
            headers=("Provides-Extra: cuda12",),
        ),
        make_wheel(folder, "jax-cuda12-plugin", "0.10.2"),
        make_wheel(folder, "keras", "3.13.2"),
        make_wheel(folder, "tensorflow", "2.21.0"),
        make_wheel(folder, "numpy", "2.4.6"),
    )
    make_index(tmp_path / "index", wheels)
    return bench


@pytest.mark.parametrize(("packages", "training"), [JAX, TENSORFLOW])
def test_a_gpu_without_torch_is_planned(stocked: Bench, packages: str, training: str) -> None:
    stocked.spec(SPEC.format(minor=MINOR, packages=packages, training=training))
    done = stocked.run("plan", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert "can only be tested" not in done.stderr
    assert "1 to create" in done.stdout


@pytest.mark.parametrize(
    ("packages", "training"),
    [
        ("numpy", "framework: none"),
        # A library that the declared framework does not use tests nothing.
        ("jax, jax-cuda12-plugin, numpy", "framework: none"),
    ],
)
def test_a_gpu_that_nothing_computes_on_is_refused(
    stocked: Bench, packages: str, training: str
) -> None:
    stocked.spec(SPEC.format(minor=MINOR, packages=packages, training=training))
    done = stocked.run("plan", "spec.yaml")
    assert done.returncode == 2
    assert "can only be tested through torch" in done.stderr
