"""The name by which a person's own conda finds an environment: given, kept, moved and taken back, and nobody else's name touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from provision.errors import WorldError
from provision.world import files
from tests.conda_rig import CondaChannel
from tests.own_conda import found_by_name, is_environment, own_conda
from tests.rig import Bench, small_spec

CONDA = "conda_packages: [ffmpeg=7]\ntargets: {here: {kind: local, manager: conda}}\n"


@pytest.fixture
def envs(bench: Bench) -> tuple[Path, Path]:
    """The folders of environments of a person's own conda; the bench has that conda. The first cannot be made: a file stands in its way."""
    folders = (bench.folder / "shut/envs", bench.folder / "home/.conda/envs")
    (bench.folder / "shut").write_text("")
    folders[1].mkdir(parents=True)
    (folders[1] / "theirs/conda-meta").mkdir(parents=True)
    return folders


@pytest.fixture
def made(bench: Bench, conda: CondaChannel, envs: tuple[Path, Path]) -> Bench:
    """A bench with an environment made by a person's own conda."""
    program = own_conda(bench.folder / "programs", envs)
    bench.extra = {**conda.variables(), "PROVISION_CONDA": str(program)}
    bench.spec(small_spec("gamma", extra=CONDA))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "activate     conda activate spec.here " in done.stdout
    return bench


def asked(bench: Bench) -> list[str]:
    return (bench.folder / "programs/asked.txt").read_text().splitlines()


def recorded(bench: Bench) -> dict[str, str]:
    found: dict[str, str] = json.loads((bench.own / "state.json").read_text())["resources"].get("spec/here#name", {})
    return found


def applied(bench: Bench, *words: str) -> str:
    done = bench.run("apply", "spec.yaml", "--yes", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


def test_conda_finds_it_by_name_until_it_is_destroyed(made: Bench, envs: tuple[Path, Path]) -> None:
    found = found_by_name("spec.here", envs)
    assert found == envs[1] / "spec.here"
    assert is_environment(found)
    code = "import sys, gamma; print(sys.prefix)"
    done = subprocess.run([found / "bin/python", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(found)
    assert asked(made).count("info --json") == 2, "when it was shown and when it was made"
    assert made.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 0
    assert asked(made).count("info --json") == 2, "conda is asked only while there is no name"
    made.spec(small_spec("gamma", extra=f"name: another-name\n{CONDA.replace('ffmpeg=7', 'ffmpeg=6')}"))
    applied(made)  # another lock, another prefix, another `name`: the link leads to the stable path, and stays
    assert (found / "conda-meta/ffmpeg-6.1.2-h0_gpl.json").exists()
    done = made.run("destroy", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert not os.path.lexists(found)
    assert sorted(path.name for path in envs[1].iterdir()) == ["theirs"]


def test_another_target_gets_another_name_and_the_old_one_stays_until_it_is_destroyed(made: Bench, envs: tuple[Path, Path]) -> None:
    made.spec(small_spec("gamma", extra=CONDA.replace("here:", "there:")))
    applied(made)
    assert [found_by_name(name, envs) is not None for name in ("spec.here", "spec.there")] == [True, True]
    assert made.run("destroy", "spec.yaml", "--target", "here", "--yes").returncode == 0
    assert [found_by_name(name, envs) is not None for name in ("spec.here", "spec.there")] == [False, True]


def test_a_name_that_is_taken_stays_as_it_is_and_is_said(bench: Bench, conda: CondaChannel, envs: tuple[Path, Path]) -> None:
    later = bench.folder / "later"
    theirs = later / "spec.here"
    (theirs / "conda-meta").mkdir(parents=True)
    (theirs / "conda-meta/history").write_text("somebody's own")
    program = own_conda(bench.folder / "programs", (*envs, later), name="micromamba", key="envs directories")
    bench.extra = {**conda.variables(), "PROVISION_CONDA": str(program)}
    bench.spec(small_spec("gamma", extra=CONDA))
    said = applied(bench)
    assert f"no name spec.here for micromamba: {theirs} is there already and is not this environment; it stays" in said
    assert "activate conda activate .provision/envs/spec.here " in said
    assert found_by_name("spec.here", (*envs, later)) == theirs, "a link in an earlier folder would hide theirs"
    before = len(asked(bench))
    assert bench.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 0
    assert len(asked(bench)) == before
    theirs.rename(later / "renamed")
    applied(bench)
    assert found_by_name("spec.here", (*envs, later)) == envs[1] / "spec.here"
    assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert (later / "renamed/conda-meta/history").read_text() == "somebody's own"


def test_what_took_the_place_of_our_link_is_not_removed(made: Bench, envs: tuple[Path, Path]) -> None:
    link = envs[1] / "spec.here"
    link.unlink()
    link.symlink_to(envs[1] / "theirs")
    assert f"no name spec.here for conda: {link} is there already" in " ".join(made.run("plan", "spec.yaml").stdout.split())
    assert made.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert link.readlink() == envs[1] / "theirs"


def test_a_link_that_was_removed_is_made_again(made: Bench, envs: tuple[Path, Path]) -> None:
    (envs[1] / "spec.here").unlink()
    assert made.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 2
    applied(made)
    assert found_by_name("spec.here", envs) is not None


def test_a_copy_of_the_project_takes_no_name_from_it_and_a_moved_one_keeps_it(made: Bench, envs: tuple[Path, Path], tmp_path: Path) -> None:
    link = envs[1] / "spec.here"
    copy = Bench(tmp_path / "copy", made.index, {**made.extra, "HOME": str(made.folder / "home"), "UV_CACHE_DIR": str(made.folder / "uv-cache")})
    shutil.copytree(made.folder, copy.folder, symlinks=True, ignore=shutil.ignore_patterns("home", "uv-cache", "programs", "index"))
    assert f"no name spec.here for conda: {link} is there already" in " ".join(copy.run("plan", "spec.yaml").stdout.split())
    done = copy.run("destroy", "spec.yaml", "--yes")
    assert (done.returncode, "it stays" in done.stderr) == (0, True), done.stderr
    assert link.readlink() == made.own / "envs/spec.here"
    moved = Bench(made.folder / "moved", made.index, {**made.extra, "HOME": str(made.folder / "home"), "UV_CACHE_DIR": str(made.folder / "uv-cache")})
    moved.folder.mkdir()
    for name in ("spec.yaml", "spec.lock", ".provision"):
        (made.folder / name).rename(moved.folder / name)
    applied(moved)
    assert link.readlink() == moved.own / "envs/spec.here"
    assert is_environment(link)


def test_where_nothing_may_be_written_it_is_found_by_path_only(bench: Bench, conda: CondaChannel, envs: tuple[Path, Path]) -> None:
    program = own_conda(bench.folder / "programs", envs[:1])
    bench.extra = {**conda.variables(), "PROVISION_CONDA": str(program)}
    bench.spec(small_spec("gamma", extra=CONDA))
    said = applied(bench)
    assert f"none of its folders may be written to ({envs[0]}); add one of yours to envs_dirs, or activate it by its path" in said
    assert recorded(bench) == {}


def test_a_conda_that_tells_nothing_and_a_folder_that_is_ours(made: Bench, envs: tuple[Path, Path]) -> None:
    own_conda(made.folder / "programs", (made.own / "envs", envs[1]))
    (envs[1] / "spec.here").unlink()
    assert "it has that already: the folder of environments here is one of conda's own" in " ".join(made.run("plan", "spec.yaml").stdout.split())
    own_conda(made.folder / "programs", ())
    assert "`conda info --json` does not tell where it looks for environments" in " ".join(made.run("plan", "spec.yaml").stdout.split())


def test_a_name_that_conda_would_misread_is_not_given(made: Bench, envs: tuple[Path, Path]) -> None:
    (made.folder / "my spec.yaml").write_text((made.folder / "spec.yaml").read_text())
    shutil.copy(made.folder / "spec.lock", made.folder / "my spec.lock")
    assert "conda takes no name with ' ' in it" in " ".join(made.run("plan", "my spec.yaml").stdout.split())


def test_killed_before_it_was_written_down_the_name_is_known_still(made: Bench, envs: tuple[Path, Path]) -> None:
    """As a run leaves it that is killed between making the link and saving the state."""
    state = made.own / "state.json"
    details = recorded(made)
    journal = {"address": "spec/here", "part": "name", "verb": "+", "paths": [], "began": "2026-01-01T00:00:00Z", "names": [], "details": details}
    forgotten = _without_name(made)
    state.write_text(forgotten)
    (made.own / "journal.json").write_text(json.dumps(journal))
    applied(made)
    assert recorded(made) == details
    state.write_text(forgotten)
    (made.own / "journal.json").write_text(json.dumps(journal))
    made.spec(small_spec("gamma", extra=CONDA.replace("here:", "there:")))
    applied(made)  # of another target: what the first run made is not forgotten
    assert recorded(made) == details
    state.write_text(forgotten)
    (made.own / "journal.json").write_text(json.dumps(journal))
    assert made.run("destroy", "spec.yaml", "--target", "here", "--yes").returncode == 0
    assert not os.path.lexists(envs[1] / "spec.here")


def test_the_name_goes_with_conda(made: Bench, envs: tuple[Path, Path]) -> None:
    made.spec(small_spec("gamma", extra="targets: {here: {kind: local}}\n"))
    assert "the environment is no longer one of conda" in applied(made)
    assert not os.path.lexists(envs[1] / "spec.here")
    assert recorded(made) == {}


def test_with_py_rattler_there_is_no_name_and_one_that_is_there_stays(made: Bench, envs: tuple[Path, Path]) -> None:
    made.extra = {**made.extra, "PROVISION_CONDA": "py-rattler"}
    assert made.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 0
    (made.folder / "other.yaml").write_text((made.folder / "spec.yaml").read_text())
    done = made.run("apply", "other.yaml", "--yes")
    assert "activate     conda activate .provision/envs/other.here " in done.stdout
    assert found_by_name("other.here", envs) is None
    assert found_by_name("spec.here", envs) is not None


def test_a_link_never_takes_the_place_of_anything(tmp_path: Path) -> None:
    path = tmp_path / "folder/name"
    files.add_link(path, "/a", "")
    files.add_link(path, "/a", "")
    with pytest.raises(WorldError, match="cannot make the link") as caught:
        files.add_link(path, "/b", "")
    assert (caught.value.why, caught.value.hint) == ("something that is not ours is there", "look at it, and move it away or remove it")
    files.add_link(path, "/b", "/a")
    assert str(path.readlink()) == "/b"
    assert files.remove_link(path, "/a", dead=False) is False
    assert files.remove_link(path, "/b", dead=True) is True
    assert files.remove_link(path, "/b", dead=True) is True
    path.symlink_to(tmp_path)
    assert files.remove_link(path, str(tmp_path), dead=True) is False
    assert files.remove_link(path, str(tmp_path), dead=False) is True


def _without_name(bench: Bench) -> str:
    """The text of the state as it was before the name was written down."""
    from dataclasses import replace

    from provision.state import dumps, loads

    state = loads((bench.own / "state.json").read_text(), "state.json")
    return dumps(replace(state, resources={key: value for key, value in state.resources.items() if not key.endswith("#name")}))
