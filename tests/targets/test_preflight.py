"""What `plan` and `apply` say about this machine and the download before they fetch anything."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from provision.effects.machine import MachineResources
from provision.lock import LockedFile
from provision.targets.local.preflight import preflight_notes
from tests.rig import Bench, small_spec
from tests.targets.test_contracts import Dictionary, place

GIB = 2**30


class Machine(Dictionary):
    """A World with these resources."""

    resources = MachineResources(10 * GIB, 16 * GIB)

    def machine_resources(self, folder: Path, *, with_gpus: bool) -> MachineResources:
        return self.resources if with_gpus else self.resources._replace(gpus=None)


def notes(gpus: tuple[str, ...] | None = None, **fields: object) -> tuple[str, ...]:
    machine = Machine()
    machine.resources = MachineResources(10 * GIB, 16 * GIB, gpus)
    return preflight_notes(place(**fields), machine)


@pytest.mark.parametrize(
    ("gpus", "fields", "expected"),
    [
        (None, {}, ()),
        (("NVIDIA L4",), {"gpu": "L4"}, ()),
        (
            None,
            {"gpu": "L4"},
            (
                (
                    "the spec declares `gpu: L4`, but this machine has no NVIDIA driver "
                    "(nvidia-smi is missing)"
                ),
            ),
        ),
        (
            ("Tesla T4",),
            {"gpu": "L4"},
            ("the spec declares `gpu: L4`, but nvidia-smi lists Tesla T4",),
        ),
        (
            ("NVIDIA L4",),
            {"gpu": "L4:2"},
            ("the spec declares `gpu: L4:2`, but nvidia-smi lists NVIDIA L4",),
        ),
        ((), {"gpu": "L4"}, ("the spec declares `gpu: L4`, but nvidia-smi lists no GPU",)),
        (
            None,
            {"requires": {"ram": "64GiB", "disk": "1TB"}},
            (
                "`requires.ram` is 64GiB, but this machine has 16 GiB of memory",
                "`requires.disk` is 1TB, but / has only 10 GiB free",
            ),
        ),
        (None, {"requires": {"ram": "16GiB", "disk": "9GiB"}}, ()),
        (None, {"paths": {"data": "/data"}}, ("paths.data: /data does not exist",)),
        (
            None,
            {"secrets": {"TOKEN": {"env": "HF_TOKEN"}}},
            (
                (
                    "secrets.TOKEN: the environment variable HF_TOKEN is not set or is empty; the "
                    "verification will fail (Y01)"
                ),
            ),
        ),
    ],
)
def test_it_warns_of_what_this_machine_lacks(
    gpus: tuple[str, ...] | None, fields: dict[str, object], expected: tuple[str, ...]
) -> None:
    assert [note.removeprefix("warning: ") for note in notes(gpus, **fields)] == [
        note.replace("but / has", f"but {place().folder.parent} has") for note in expected
    ]


def test_it_names_the_size_of_the_download_as_far_as_it_is_known() -> None:
    context = place()
    package = context.lock.packages[0]
    wheel = LockedFile("alpha-1.0-py3-none-any.whl", "0" * 64)

    def sized(*sizes: int | None) -> tuple[str, ...]:
        packages = tuple(
            replace(package, name=f"p{number}", files=(replace(wheel, size=size),))
            for number, size in enumerate(sizes)
        )
        lock = replace(context.lock, packages=packages)
        return preflight_notes(replace(context, lock=lock), Machine())

    end = "files in uv's cache are not downloaded again"
    assert sized(None, None) == sized(0) == ()
    assert sized(2_000_000_000, 800_000_000) == (f"downloads about 2.8 GB for 2 packages; {end}",)
    assert sized(5_000_000, None) == (
        f"downloads about 5 MB for 1 package, plus 1 package of unknown size (p1); {end}",
    )
    assert sized(20 * 10**9)[1].endswith("has only 10 GiB of free disk space")


def test_plan_warns_and_pip_of_the_environment_refuses(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra="paths: {data: /nonexistent}\nrequires: {ram: 900TiB}\n"))
    plan = bench.run("plan", "spec.yaml")
    assert plan.returncode == 0, plan.stderr
    assert "warning: `requires.ram` is 900TiB, but this machine has " in plan.stdout
    assert "warning: paths.data: /nonexistent does not exist" in plan.stdout
    bench.spec(small_spec("alpha"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    pip = bench.own / "envs/spec.local/bin/pip"
    done = bench.run("run", "spec.yaml", "--", "pip", "install", "numpy")
    assert shutil.which(str(pip)), pip
    assert done.returncode == 1
    assert "change `packages` in the spec, then run `provision apply spec.yaml`" in done.stderr
