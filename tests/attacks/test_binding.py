"""A state counts on the machine and in the folder that it was written in: elsewhere it removes
nothing until a person adopts it.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from provision.errors import ExternalError
from provision.state import State, StateBinding, dumps, loads
from provision.state_store.local import explain_foreign_binding, read_current_binding
from tests.rig import Bench, make_index, make_wheel, small_spec

WITH_KERNEL = small_spec(
    "alpha", "ipykernel", extra="targets: {local: {kind: local, kernel: true}}\n"
)


def state_of(project: Bench) -> State:
    return loads((project.own / "state.json").read_text(), "state.json")


def bind_to(project: Bench, binding: StateBinding | None) -> None:
    (project.own / "state.json").write_text(dumps(replace(state_of(project), binding=binding)))


def copied(project: Bench) -> Bench:
    """Return a copy of a project in another folder, with the same home."""
    folder = project.folder.with_name("copy")
    shutil.copytree(project.folder, folder, symlinks=True)
    return Bench(folder, project.index, {**project.extra, "HOME": str(project.folder / "home")})


@pytest.fixture
def elsewhere(applied: Bench) -> Bench:
    """A project whose state was written on another machine, at the same path."""
    before = state_of(applied).binding
    assert before is not None
    bind_to(applied, replace(before, machine="0" * 32))
    return applied


def test_a_copy_removes_nothing_until_it_is_adopted(applied: Bench) -> None:
    copy = copied(applied)
    refused = copy.run("destroy", "spec.yaml", "--yes")
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert "was written on another machine or in another folder" in refused.stderr
    assert str(applied.own) in refused.stderr
    assert "provision adopt" in refused.stderr
    assert list(copy.own.glob("envs/spec.local-*"))

    adopted = copy.run("adopt", "spec.yaml", "--yes")
    assert adopted.returncode == 0, adopted.stderr
    assert "spec/local environment" in adopted.stderr
    assert copy.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert not copy.own.exists()
    assert applied.run("status", "spec.yaml").returncode == 0


@pytest.mark.parametrize(
    "words",
    [("destroy", "spec.yaml", "--yes"), ("plan", "spec.yaml"), ("apply", "spec.yaml", "--yes")],
)
def test_a_state_of_another_machine_removes_nothing(
    elsewhere: Bench, words: tuple[str, ...]
) -> None:
    before = sorted(elsewhere.own.glob("envs/*"))
    elsewhere.spec(small_spec("beta"))
    refused = elsewhere.run(*words)
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert "was written on another machine or in another folder" in refused.stderr
    assert "on another machine" in refused.stderr
    assert set(before) <= set(elsewhere.own.glob("envs/*"))


def test_what_removes_nothing_goes_on_and_says_so(elsewhere: Bench) -> None:
    done = elsewhere.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert "belongs to another machine or folder: it was written on another machine" in done.stderr
    shown = elsewhere.run("status", "spec.yaml")
    assert "state        foreign: it was written on another machine" in shown.stdout
    assert json.loads(elsewhere.run("status", "spec.yaml", "--output-format", "json").stdout)[
        "state_foreign"
    ]


def test_a_half_made_environment_of_another_machine_stays(elsewhere: Bench) -> None:
    journal = {
        "address": "spec/local",
        "part": "environment",
        "verb": "create",
        "paths": ["envs/spec.local-0123456789ab"],
        "began": "2026-01-01T00:00:00Z",
    }
    (elsewhere.own / "journal.json").write_text(json.dumps(journal))
    (elsewhere.own / "envs/spec.local-0123456789ab").mkdir()
    assert (
        "was written on another machine or in another folder"
        in elsewhere.run("apply", "spec.yaml", "--yes").stderr
    )
    assert (elsewhere.own / "envs/spec.local-0123456789ab").is_dir()


def test_a_state_of_an_older_version_is_bound_once_and_says_so(applied: Bench) -> None:
    bind_to(applied, None)
    serial = state_of(applied).serial
    assert applied.run("plan", "spec.yaml", "--out", "saved.json").returncode == 0
    first = applied.run("apply", "spec.yaml", "--plan", "saved.json", "--yes")
    assert first.returncode == 0, first.stderr
    assert first.stderr.count("is now bound to this machine and folder") == 1
    assert "is now bound to this machine" not in applied.run("apply", "spec.yaml", "--yes").stderr
    assert (state_of(applied).serial, state_of(applied).binding is not None) == (serial, True)


def test_a_folder_that_was_moved_keeps_its_state(applied: Bench) -> None:
    folder = applied.folder.rename(applied.folder.with_name("moved"))
    moved = Bench(folder, applied.index, applied.extra)
    done = moved.run("destroy", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert not moved.own.exists()


def test_the_kernel_of_the_original_stays_with_it(bench: Bench, tmp_path: Path) -> None:
    make_index(tmp_path / "index", (make_wheel(tmp_path / "wheels", "ipykernel", "7.0"),))
    bench.spec(WITH_KERNEL)
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    (kernel,) = (Path(path) for path in state_of(bench).resources["spec/local#kernel"]["outside"])
    copy = copied(bench)
    adopted = copy.run("adopt", "spec.yaml", "--yes")
    assert f"{kernel} is kept; its record is removed" in adopted.stderr
    assert copy.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert kernel.is_dir()
    assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert not kernel.exists()


def test_what_adopt_answers(elsewhere: Bench) -> None:
    before = (elsewhere.own / "state.json").read_text()
    assert elsewhere.run("adopt", "spec.yaml").returncode == 2  # nobody is there to say yes
    assert (elsewhere.own / "state.json").read_text() == before
    told = json.loads(
        elsewhere.run("adopt", "spec.yaml", "--yes", "--output-format", "json").stdout
    )
    assert told["adopted"]
    assert {one["becomes"] for one in told["resources"]} == {"exists"}
    again = elsewhere.run("adopt", "spec.yaml")
    assert (again.returncode, "already" in again.stdout) == (0, True)
    shutil.rmtree(elsewhere.own)
    assert "there is no" in elsewhere.run("adopt", "spec.yaml").stderr


@pytest.mark.parametrize(
    "binding", [{"machine": "x"}, {"machine": 1, "folder": "x", "inode": "x"}, [], "x"]
)
def test_a_binding_of_another_form_is_damage(applied: Bench, binding: object) -> None:
    from provision.state import _checksum

    document = json.loads((applied.own / "state.json").read_text())
    document["binding"] = binding
    document["checksum"] = _checksum(
        {key: value for key, value in document.items() if key != "checksum"}
    )
    (applied.own / "state.json").write_text(json.dumps(document))
    assert "its binding has the wrong type" in applied.run("status", "spec.yaml").stderr


HERE = StateBinding("m", "/project", "1:2")


@pytest.mark.parametrize(
    ("bound", "here", "is_foreign"),
    [
        (HERE, HERE, False),
        (replace(HERE, folder="/before"), HERE, False),  # moved
        (replace(HERE, inode="1:9"), HERE, False),  # restored from a backup
        (replace(HERE, folder="/other", inode="1:9"), HERE, True),  # copied
        (replace(HERE, machine="n"), HERE, True),
        (replace(HERE, machine=""), HERE, True),
        (HERE, replace(HERE, machine=""), True),
        (replace(HERE, machine=""), replace(HERE, machine=""), False),
        (replace(HERE, machine="", inode="1:9"), replace(HERE, machine=""), True),
        (replace(HERE, machine="", folder="/other"), replace(HERE, machine=""), True),
    ],
)
def test_what_is_the_same_place(bound: StateBinding, here: StateBinding, is_foreign: bool) -> None:
    assert bool(explain_foreign_binding(bound, here)) is is_foreign


class Etc:
    """A machine with some files below /etc and /var."""

    def __init__(self, **files: str) -> None:
        self.files = {"machine": files.get("etc"), "dbus": files.get("dbus")}

    def read(self, path: Path, limit: int) -> bytes:
        content = self.files["dbus" if "dbus" in path.parts else "machine"]
        if content is None:
            raise ExternalError(f"cannot read {path}")
        return content[:limit].encode()


def test_the_identity_of_a_machine(tmp_path: Path) -> None:
    def identity(**files: str) -> str:
        return read_current_binding(tmp_path, Etc(**files)).machine  # type: ignore[arg-type]

    assert identity(etc="a" * 32 + "\n") == identity(dbus="a" * 32) != identity(etc="b" * 32)
    assert "a" * 32 not in identity(etc="a" * 32)
    assert identity(etc="uninitialized\n", dbus="a" * 32) == identity(etc="a" * 32)
    assert identity(etc="") == identity() == ""
