"""`provision lock --upgrade [PACKAGE]`: what moves, what stays, and which words it takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rig import MINOR, TAG, Bench, make_index, make_wheel, small_spec

LINUX = f"{TAG}-{TAG}-manylinux_2_28_x86_64"


def versions(bench: Bench, name: str = "spec.lock") -> dict[str, str]:
    return {
        row["name"]: row["version"]
        for row in json.loads((bench.folder / name).read_text())["packages"]
    }


@pytest.fixture
def aged(bench: Bench, tmp_path: Path) -> Bench:
    """A lock of three packages, each with a newer release since: `lead` 2.0 needs `led` 2.0, and
    `alone` has nothing to do with them.
    """
    wheels = tmp_path / "wheels"
    old = (
        make_wheel(wheels, "lead", "1.0", requires=("led==1.0",)),
        make_wheel(wheels, "led", "1.0"),
        make_wheel(wheels, "alone", "1.0"),
    )
    make_index(tmp_path / "index", old)
    bench.spec(small_spec("lead", "alone"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    new = (
        make_wheel(wheels, "lead", "2.0", requires=("led==2.0",)),
        make_wheel(wheels, "led", "2.0"),
        make_wheel(wheels, "alone", "2.0"),
    )
    make_index(tmp_path / "index", (*old, *new))
    return bench


def test_one_package_moves_with_what_it_needs_and_the_rest_stays(aged: Bench) -> None:
    done = aged.run("lock", "spec.yaml", "--upgrade", "lead")
    assert done.returncode == 0, done.stderr
    assert "locking: upgrade requested: lead" in done.stderr
    assert versions(aged) == {"alone": "1.0", "lead": "2.0", "led": "2.0"}


def test_a_package_that_others_hold_stays(aged: Bench) -> None:
    assert aged.run("lock", "spec.yaml", "--upgrade", "led").returncode == 0
    assert versions(aged) == {"alone": "1.0", "lead": "1.0", "led": "1.0"}


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("words", "moved"),
    [
        (("--upgrade", "spec.yaml"), {"alone": "2.0", "lead": "2.0", "led": "2.0"}),
        (("spec.yaml", "--upgrade"), {"alone": "2.0", "lead": "2.0", "led": "2.0"}),
        (("--upgrade=alone", "spec.yaml"), {"alone": "2.0", "lead": "1.0", "led": "1.0"}),
        (
            ("--upgrade", "ALONE", "--upgrade", "lead", "spec.yaml"),
            {"alone": "2.0", "lead": "2.0", "led": "2.0"},
        ),
        (
            ("--upgrade", "alone", "--output-format", "json", "spec.yaml"),
            {"alone": "2.0", "lead": "1.0", "led": "1.0"},
        ),
        (("spec.yaml",), {"alone": "1.0", "lead": "1.0", "led": "1.0"}),
    ],
)
def test_the_words_it_takes(aged: Bench, words: tuple[str, ...], moved: dict[str, str]) -> None:
    done = aged.run("lock", *words)
    assert done.returncode == 0, done.stderr
    assert versions(aged) == moved


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--upgrade", "spec.yaml", "other.yaml"),
            "only one spec is allowed, but spec.yaml and other.yaml were given",
        ),
        (("--upgrade", "spec.yaml", "--upgrade", "other.yml"), "only one spec is allowed"),
        (("--upgrade", "aloen", "spec.yaml"), "did you mean alone?"),
        (("--upgrade", "numpy", "spec.yaml"), "neither the spec nor its lock contains it"),
        (("--upgrade", "alone==2.0", "spec.yaml"), "not a valid package name"),
        (("--upgrade=", "spec.yaml"), "needs a package"),
        (
            ("--upgrade", "alone", "--upgrade", "spec.yaml"),
            "--upgrade without a package upgrades all packages",
        ),
        (("spec.yaml", "--upgrade", "--check"), "--check and --upgrade cannot be combined"),
        (("spec.yaml", "--diff", "old.lock", "--check"), "--check and --diff"),
        (("spec.yaml", "--diff", "old.lock", "--upgrade"), "--upgrade and --diff"),
        (("spec.yaml", "--output-format", "markdown"), "markdown requires --diff"),
    ],
)
def test_words_that_do_not_fit_change_nothing(
    aged: Bench, words: tuple[str, ...], said: str
) -> None:
    before = (aged.folder / "spec.lock").read_bytes()
    done = aged.run("lock", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert (aged.folder / "spec.lock").read_bytes() == before


def test_a_package_of_a_spec_that_has_no_lock_yet(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    done = bench.run("lock", "spec.yaml", "--upgrade", "alpha")
    assert done.returncode == 0, done.stderr
    assert "locking: there is no lock yet" in done.stderr
    assert versions(bench) == {"alpha": "2.0"}


def test_a_spec_that_moved_is_said_beside_what_was_asked_for(aged: Bench) -> None:
    aged.spec(small_spec("lead", "alone", "alpha"))
    done = aged.run("lock", "spec.yaml", "--upgrade", "alone")
    assert "locking: upgrade requested: alone; the spec changed: packages: + alpha" in done.stderr
    assert versions(aged) == {"alone": "2.0", "alpha": "2.0", "lead": "1.0", "led": "1.0"}


@pytest.mark.parametrize("name", ["torch", "torchvision"])
def test_what_is_built_for_one_torch_moves_together(
    bench: Bench, tmp_path: Path, name: str
) -> None:
    def family(torch: str, vision: str) -> tuple[Path, Path]:
        return (
            make_wheel(tmp_path / "c", "torch", f"{torch}+cpu", tag=LINUX),
            make_wheel(
                tmp_path / "c",
                "torchvision",
                f"{vision}+cpu",
                tag=LINUX,
                requires=(f"torch=={torch}",),
            ),
        )

    make_index(
        tmp_path / "index",
        tuple(
            make_wheel(tmp_path / "wheels", "torch", release, tag=LINUX)
            for release in ("2.12.0", "2.13.0")
        ),
    )
    old = family("2.12.0", "0.27.0")
    index = make_index(tmp_path / "cpu", old)
    bench.spec(
        f'gpu: none\npython: "{MINOR}"\npackages: [torchvision, alpha<2]\ntraining: '
        f"{{framework: none}}\n"
    )
    assert bench.run("lock", "spec.yaml", PROVISION_INDEX_PYTORCH_CPU=index).returncode == 0
    make_index(tmp_path / "cpu", (*old, *family("2.13.0", "0.28.0")))
    done = bench.run("lock", "spec.yaml", "--upgrade", name, PROVISION_INDEX_PYTORCH_CPU=index)
    assert done.returncode == 0, done.stderr
    assert versions(bench) == {"alpha": "1.0", "torch": "2.13.0+cpu", "torchvision": "0.28.0+cpu"}
