"""A program that runs keeps its environment: nothing is changed or removed under it, unless a
person insists.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.rig import Bench, make_index, make_wheel, small_spec

PROGRAM = """
import os, sys, time
print(sys.prefix, flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
import alpha
print(alpha.__version__, flush=True)
"""


@contextmanager
def program(project: Bench, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A program that runs in the environment until there is a file `go`, and imports from it then."""  # noqa: E501
    running = project.start("run", "spec.yaml", *options, "--", "python", "-c", PROGRAM)
    try:
        assert running.stdout is not None
        assert running.stdout.readline().strip().startswith(str(project.own / "envs/spec.local-"))
        yield running
    finally:
        running.kill()
        running.communicate(timeout=600)


def environments(project: Bench) -> list[str]:
    return sorted(path.name for path in project.own.glob("envs/spec.local-*"))


@pytest.mark.long(after=1)
@pytest.mark.parametrize("options", [(), ("--no-monitor",)])
def test_apply_makes_the_new_one_beside_it_and_removes_the_old_one_later(
    applied: Bench, options: tuple[str, ...]
) -> None:
    (old,) = environments(applied)
    with program(applied, *options) as running:
        applied.spec(small_spec("beta"))
        assert (
            f"envs/{old} is kept until the program running in it ends"
            in applied.run("plan", "spec.yaml").stdout
        )
        done = applied.run("apply", "spec.yaml", "--yes")
        assert done.returncode == 0, done.stderr
        assert len(environments(applied)) == 2
        assert (applied.own / "envs/spec.local").resolve().name != old
        assert applied.run("plan", "spec.yaml").returncode == 0
        (applied.folder / "go").touch()
        said, _ = running.communicate(timeout=600)
        assert (running.returncode, said) == (0, "2.0\n")
    assert "have ended" in applied.run("plan", "spec.yaml").stdout
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0
    assert old not in environments(applied)
    assert len(environments(applied)) == 1


def test_destroy_is_refused_and_names_the_program(applied: Bench) -> None:
    with program(applied) as running:
        refused = applied.run("destroy", "spec.yaml", "--yes")
        assert refused.returncode == 2
        assert f"process {running.pid}: python" in refused.stderr
        assert environments(applied)
        assert applied.run("destroy", "spec.yaml", "--yes", "--force").returncode == 0
        assert environments(applied) == []


@pytest.mark.long
def test_an_earlier_environment_in_use_goes_with_destroy_too(applied: Bench) -> None:
    with program(applied):
        applied.spec(small_spec("beta"))
        assert applied.run("apply", "spec.yaml", "--yes").returncode == 0
        assert "is in use" in applied.run("destroy", "spec.yaml", "--yes").stderr
        (old,) = {path.parent.name for path in applied.own.glob("use/*/*")}
    done = applied.run("destroy", "spec.yaml", "--yes")
    assert (done.returncode, f", and {old} from an earlier lock" in done.stderr) == (0, True), (
        done.stderr
    )
    assert not applied.own.exists()


def test_a_program_that_was_killed_holds_nothing(applied: Bench) -> None:
    with program(applied):
        assert list(applied.own.glob("use/*/*"))
    assert applied.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert not applied.own.exists()


def test_an_environment_in_use_is_not_mended(applied: Bench) -> None:
    (package,) = applied.own.glob("envs/spec.local-*/lib/python*/site-packages/alpha-2.0.dist-info")
    with program(applied):
        shutil.rmtree(package)
        refused = applied.run("apply", "spec.yaml", "--yes")
        assert refused.returncode == 2, refused.stdout + refused.stderr
        assert (
            "needs a repair (it was changed after it was created: alpha is missing) but "
            "is in use by process" in refused.stderr
        )
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0


@pytest.mark.long
def test_an_earlier_environment_goes_also_when_the_new_one_has_to_be_mended(applied: Bench) -> None:
    (old,) = environments(applied)
    with program(applied):
        applied.spec(small_spec("beta"))
        assert applied.run("apply", "spec.yaml", "--yes").returncode == 0
    (new,) = set(environments(applied)) - {old}
    (package,) = applied.own.glob(f"envs/{new}/lib/python*/site-packages/beta-1.0.dist-info")
    shutil.rmtree(package)
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0
    assert environments(applied) == [new]


def test_looking_removes_no_note_and_the_next_program_removes_old_ones(applied: Bench) -> None:
    with program(applied):
        pass
    (left,) = applied.own.glob("use/*/*")
    assert applied.run("status", "spec.yaml").returncode == 0
    assert left.exists()
    with program(applied):
        assert len(list(applied.own.glob("use/*/*"))) == 1
        assert not left.exists()


@pytest.mark.parametrize("link", ["use", "use/{name}"])
def test_notes_behind_a_link_are_not_touched(applied: Bench, tmp_path: Path, link: str) -> None:
    (name,) = environments(applied)
    victim = tmp_path / "victim"
    (victim / name).mkdir(parents=True)
    for file in (victim / "1", victim / name / "1"):
        file.write_text("precious")
    place = applied.own / link.format(name=name)
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(victim)
    assert applied.run("plan", "spec.yaml").returncode == 0
    assert applied.run("status", "spec.yaml").returncode == 0
    assert [file.read_text() for file in (victim / "1", victim / name / "1")] == [
        "precious",
        "precious",
    ]


def test_a_file_of_another_kind_among_the_notes_stays(applied: Bench) -> None:
    (name,) = environments(applied)
    file = applied.own / "use" / name / "notes.txt"
    file.parent.mkdir(parents=True)
    file.write_text("x")
    assert applied.run("plan", "spec.yaml").returncode == 0
    assert file.exists()


def test_a_kernel_holds_its_environment_and_stays_in_it(bench: Bench, tmp_path: Path) -> None:
    make_index(tmp_path / "index", (make_wheel(tmp_path / "wheels", "ipykernel", "7.0"),))
    data = tmp_path / "jupyter"
    bench.spec(
        small_spec("alpha", "ipykernel", extra="targets: {local: {kind: local, kernel: true}}\n")
    )
    assert bench.run("apply", "spec.yaml", "--yes", JUPYTER_DATA_DIR=str(data)).returncode == 0
    (kernel,) = data.glob("kernels/*/kernel.json")
    (tmp_path / "path").mkdir()
    (tmp_path / "path/ipykernel_launcher.py").write_text(
        "import sys; print(sys.prefix, *sys.argv[1:], flush=True); sys.stdin.readline()\n"
    )
    argv = [
        word.replace("{connection_file}", "file.json")
        for word in json.loads(kernel.read_text())["argv"]
    ]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "path")}
    running = subprocess.Popen(
        argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        (old,) = environments(bench)
        assert running.stdout.readline() == f"{bench.own / 'envs' / old} -f file.json\n"
        assert (
            f"process {running.pid}: a Jupyter kernel"
            in bench.run("destroy", "spec.yaml", "--yes", JUPYTER_DATA_DIR=str(data)).stderr
        )
    finally:
        running.communicate("\n", timeout=600)
    assert bench.run("destroy", "spec.yaml", "--yes", JUPYTER_DATA_DIR=str(data)).returncode == 0
