"""The name by which a person's own conda finds an environment: given, kept, moved and taken back,
and nobody else's name touched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from provision.adapters import files
from provision.errors import ExternalError
from provision.state import dumps, loads
from tests.conda_rig import CondaChannel
from tests.own_conda import found_by_name, is_environment, own_conda
from tests.rig import Bench, make_index, make_wheel, small_spec

CONDA = "conda_packages: [ffmpeg=7]\ntargets: {local: {kind: local, manager: conda}}\n"


def begun(folder: Path, conda: CondaChannel) -> Bench:
    """A bench with an environment made by a person's own conda, whose first folder of environments
    cannot be made: a file stands in its way.
    """
    wheels = (
        make_wheel(folder / "wheels", "alpha", "2.0"),
        make_wheel(folder / "wheels", "gamma", "1.0", requires=("alpha>=2",)),
    )
    (folder / "project/home/.conda/envs/theirs").mkdir(parents=True)
    (folder / "project/shut").write_text("")
    bench = Bench(folder / "project", make_index(folder / "index", wheels))
    bench.extra = {
        **conda.variables(),
        "PROVISION_CONDA": str(own_conda(bench.folder / "programs", envs(bench))),
    }
    bench.spec(small_spec("gamma", extra=CONDA))
    said = applied(bench)
    assert "activate conda activate spec.local " in said
    return bench


def envs(bench: Bench) -> tuple[Path, Path]:
    """The folders in which the bench's conda looks for environments by name."""
    return bench.folder / "shut/envs", bench.folder / "home/.conda/envs"


def asked(bench: Bench) -> list[str]:
    return (bench.folder / "programs/asked.txt").read_text().splitlines()


def recorded(bench: Bench) -> dict[str, str]:
    found: dict[str, str] = json.loads((bench.own / "state.json").read_text())["resources"].get(
        "spec/local#name", {}
    )
    return found


def applied(bench: Bench, *words: str) -> str:
    done = bench.run("apply", "spec.yaml", "--yes", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


def planned(bench: Bench) -> str:
    return " ".join(bench.run("plan", "spec.yaml").stdout.split())


def forgotten(bench: Bench) -> None:
    """Leave a bench as a run does that is killed between making the link and saving the state."""
    details = recorded(bench)
    state = loads((bench.own / "state.json").read_text(), "state.json")
    kept = {key: value for key, value in state.resources.items() if not key.endswith("here#name")}
    (bench.own / "state.json").write_text(dumps(replace(state, resources=kept)))
    journal = {
        "address": "spec/local",
        "part": "name",
        "verb": "+",
        "paths": [],
        "began": "2026-01-01T00:00:00Z",
        "names": [],
        "details": details,
    }
    (bench.own / "journal.json").write_text(json.dumps(journal))


@pytest.fixture(scope="module")
def shared(conda: CondaChannel, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A bench with an environment, made once."""
    return begun(tmp_path_factory.mktemp("shared"), conda)


@pytest.fixture
def made(shared: Bench) -> Iterator[Bench]:
    """The shared bench, put back afterwards as it was: its conda, its link and its state, but for
    the environment itself.
    """
    link, extra = envs(shared)[1] / "spec.local", shared.extra
    kept = {name: (shared.own / name).read_text() for name in ("state.json", "journal.json")}
    yield shared
    shared.extra = extra
    own_conda(shared.folder / "programs", envs(shared))
    files.remove_tree(link)
    link.symlink_to(shared.own / "envs/spec.local")
    for name, text in kept.items():
        (shared.own / name).write_text(text)


def test_conda_finds_it_by_name_until_it_is_destroyed(conda: CondaChannel, tmp_path: Path) -> None:
    bench = begun(tmp_path, conda)
    found = found_by_name("spec.local", envs(bench))
    assert found == envs(bench)[1] / "spec.local"
    assert is_environment(found)
    code = "import sys, gamma; print(sys.prefix)"
    done = subprocess.run(
        [found / "bin/python", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(found)
    before = asked(bench).count("info --json")
    assert bench.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 0
    assert asked(bench).count("info --json") == before, "conda is asked only while there is no name"
    bench.spec(
        small_spec("gamma", extra=f"name: another-name\n{CONDA.replace('ffmpeg=7', 'ffmpeg=6')}")
    )
    applied(
        bench
    )  # another lock, another prefix, another `name`: the link leads to the stable path, and stays
    assert (found / "conda-meta/ffmpeg-6.1.2-h0_gpl.json").exists()
    forgotten(bench)
    bench.spec(small_spec("gamma", extra=CONDA.replace("local:", "there:")))
    # Another target gets another name, and what the killed run of the first made is not forgotten.
    applied(bench)
    assert [
        found_by_name(name, envs(bench)) is not None for name in ("spec.local", "spec.there")
    ] == [True, True]
    assert bench.run("destroy", "spec.yaml", "--target", "local", "--yes").returncode == 0
    assert [os.path.lexists(envs(bench)[1] / name) for name in ("spec.local", "spec.there")] == [
        False,
        True,
    ]
    bench.spec(small_spec("gamma", extra="targets: {there: {kind: local}}\n"))
    assert "conda no longer creates this environment" in applied(bench)
    assert sorted(path.name for path in envs(bench)[1].iterdir()) == ["theirs"]


@pytest.mark.long
def test_a_name_that_is_taken_stays_as_it_is_and_is_said(made: Bench) -> None:
    later = made.folder / "later"
    theirs = later / "spec.local"
    (theirs / "conda-meta").mkdir(parents=True)
    (theirs / "conda-meta/history").write_text("somebody's own")
    (envs(made)[1] / "spec.local").unlink()
    program = own_conda(
        made.folder / "programs", (*envs(made), later), name="micromamba", key="envs directories"
    )
    made.extra = {**made.extra, "PROVISION_CONDA": str(program)}
    said = applied(made)
    assert (
        f"no name spec.local for micromamba: {theirs} is a different environment and is kept"
        in said
    )
    assert "activate conda activate .provision/envs/spec.local " in said
    assert found_by_name("spec.local", (*envs(made), later)) == theirs, (
        "a link in an earlier folder would hide theirs"
    )
    before = len(asked(made))
    assert made.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 0
    assert len(asked(made)) == before
    theirs.rename(later / "renamed")
    assert "activate micromamba activate spec.local " in applied(made)
    assert found_by_name("spec.local", (*envs(made), later)) == envs(made)[1] / "spec.local"
    assert (later / "renamed/conda-meta/history").read_text() == "somebody's own"


@pytest.mark.long
def test_what_took_the_place_of_our_link_stays(made: Bench) -> None:
    link = envs(made)[1] / "spec.local"
    link.unlink()
    link.symlink_to(envs(made)[1] / "nowhere")
    assert f"no name spec.local for conda: {link} is a different environment" in planned(made)
    applied(made)
    assert link.readlink() == envs(made)[1] / "nowhere"


@pytest.mark.long
def test_a_link_that_was_removed_is_made_again(made: Bench) -> None:
    (envs(made)[1] / "spec.local").unlink()
    assert made.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 2
    applied(made)
    assert found_by_name("spec.local", envs(made)) is not None


@pytest.mark.long
def test_a_copy_of_the_project_takes_no_name_from_it(made: Bench, tmp_path: Path) -> None:
    link = envs(made)[1] / "spec.local"
    copy = Bench(
        tmp_path / "copy",
        made.index,
        {
            **made.extra,
            "HOME": str(made.folder / "home"),
            "UV_CACHE_DIR": str(made.folder / "uv-cache"),
        },
    )
    shutil.copytree(
        made.folder,
        copy.folder,
        symlinks=True,
        ignore=shutil.ignore_patterns("home", "uv-cache", "programs", "later"),
    )
    assert copy.run("adopt", "spec.yaml", "--yes").returncode == 0
    assert f"no name spec.local for conda: {link} is a different environment" in planned(copy)
    done = copy.run("destroy", "spec.yaml", "--yes")
    assert (done.returncode, "it is kept" in done.stderr) == (0, True), done.stderr
    assert link.readlink() == made.own / "envs/spec.local"


@pytest.mark.long
def test_a_link_to_where_the_project_was_is_pointed_at_where_it_is(made: Bench) -> None:
    link, before = (
        envs(made)[1] / "spec.local",
        str(made.folder / "before/.provision/envs/spec.local"),
    )
    state = loads((made.own / "state.json").read_text(), "state.json")
    resources = {
        key: {**value, "end": before} if key.endswith("#name") else value
        for key, value in state.resources.items()
    }
    (made.own / "state.json").write_text(dumps(replace(state, resources=resources)))
    link.unlink()
    link.symlink_to(before)
    assert "the spec's folder was moved" in applied(made)
    assert link.readlink() == made.own / "envs/spec.local"


@pytest.mark.long
def test_where_no_name_can_be_given_the_reason_is_said(made: Bench) -> None:
    (envs(made)[1] / "spec.local").unlink()
    own_conda(made.folder / "programs", envs(made)[:1])
    words = (
        f"none of conda's environment folders is writable ({envs(made)[0]}); add a writable folder "
        "to `envs_dirs`, or activate the environment by its path"
    )
    assert f"no name spec.local for conda: {words}" in planned(made)
    own_conda(made.folder / "programs", (made.own / "envs", envs(made)[1]))
    assert "not needed: conda already searches the folder of this environment" in planned(made)
    own_conda(made.folder / "programs", ())
    assert "`conda info --json` lists no environment folders" in planned(made)
    (made.folder / "my spec.yaml").write_text((made.folder / "spec.yaml").read_text())
    shutil.copy(made.folder / "spec.lock", made.folder / "my spec.lock")
    assert "conda does not accept names that contain ' '" in " ".join(
        made.run("plan", "my spec.yaml").stdout.split()
    )


def test_killed_before_it_was_written_down_the_name_is_known_still(made: Bench) -> None:
    details = recorded(made)
    forgotten(made)
    applied(made)
    assert recorded(made) == details


@pytest.mark.long
def test_a_name_that_a_killed_run_gave_is_taken_back_by_destroy(made: Bench) -> None:
    link = envs(made)[1] / "spec.local"
    forgotten(made)
    done = made.run("destroy", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert not os.path.lexists(link)
    made.own.mkdir(exist_ok=True)
    assert "it does not exist yet" in applied(made)


def test_with_py_rattler_there_is_no_name_and_one_that_is_there_stays(made: Bench) -> None:
    made.extra = {**made.extra, "PROVISION_CONDA": "py-rattler"}
    assert made.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 0
    (envs(made)[1] / "spec.local").unlink()
    (made.folder / "other.yaml").write_text((made.folder / "spec.yaml").read_text())
    shutil.copy(made.folder / "spec.lock", made.folder / "other.lock")
    assert "other.local for" not in " ".join(made.run("plan", "other.yaml").stdout.split())


def test_a_link_never_takes_the_place_of_anything(tmp_path: Path) -> None:
    path = tmp_path / "folder/name"
    files.create_symlink(path, "/a", "")
    files.create_symlink(path, "/a", "")
    with pytest.raises(ExternalError, match="cannot create the link") as caught:
        files.create_symlink(path, "/b", "")
    assert (caught.value.why, caught.value.hint) == (
        "it already exists",
        "move it out of the way, or choose a different path",
    )
    files.create_symlink(path, "/b", "/a")
    assert str(path.readlink()) == "/b"
    assert files.remove_symlink(path, "/a", dead=False) is False
    assert files.remove_symlink(path, "/b", dead=True) is True
    assert files.remove_symlink(path, "/b", dead=True) is True
    path.symlink_to(tmp_path)
    assert files.remove_symlink(path, str(tmp_path), dead=True) is False
    assert files.remove_symlink(path, str(tmp_path), dead=False) is True
