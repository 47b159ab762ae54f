"""Nothing is removed that was not made here: whatever state, journal, links and folders say."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from provision.state import State, dumps, loads
from tests.rig import Bench, small_spec
from tests.support import require


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of somebody, with a file."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years")
    return folder


def state_of(project: Bench) -> State:
    return loads((project.own / "state.json").read_text(), "state.json")


def forge(project: Bench, part: str, **changes: Any) -> None:
    """Change a record in the state, and give the state a right checksum again."""
    state = state_of(project)
    record = {**(state.resource("spec/local", part) or {}), **changes}
    (project.own / "state.json").write_text(
        dumps(
            state.with_record(
                "spec/local",
                part,
                {name: value for name, value in record.items() if value is not None},
            )
        )
    )


def test_after_a_lost_state_only_what_the_new_one_names_is_removed(applied: Bench) -> None:
    other = applied.spec(small_spec("gamma"), "other.yaml")
    assert applied.run("apply", str(other), "--yes").returncode == 0
    (applied.own / "envs/mine.txt").write_text("mine")
    (applied.own / "state.json").unlink()
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0
    done = applied.run("destroy", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert (applied.own / "envs/other.local/bin/python").exists()
    assert (applied.own / "envs/mine.txt").read_text() == "mine"
    assert (applied.own / "reports/other.local/report.json").exists()
    assert not (applied.own / "envs/spec.local").exists()
    assert "is kept because it contains files that the state does not list" in done.stderr


@pytest.mark.parametrize(
    "path",
    [
        "envs/",
        "envs",
        "envs/other.local",
        "envs/l/home",
        "reports/",
        "envs/..",
        "../x",
        "envs/spec.local-0123456789ab/bin",
        "envs/spec.hereafter",
    ],
)
def test_a_state_that_names_other_folders_is_refused(
    applied: Bench, victim: Path, path: str
) -> None:
    (applied.own / "envs/l").symlink_to(victim)
    (applied.own / "envs/other.local").mkdir()
    forge(applied, "environment", paths=[path])
    done = applied.run("destroy", "spec.yaml", "--yes")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert (applied.own / "envs/spec.local/bin/python").exists()
    assert (applied.own / "envs/other.local").is_dir()
    assert (victim / "thesis.txt").exists()


def test_a_state_that_names_another_kernel_is_refused(applied: Bench, victim: Path) -> None:
    kernel = victim / "kernels/provision-other.local-01234567"
    kernel.mkdir(parents=True)
    forge(applied, "kernel", title="kernel", outside=[str(kernel)])
    assert applied.run("destroy", "spec.yaml", "--yes").returncode == 2
    assert kernel.is_dir()


@pytest.mark.parametrize("place", ["envs", "reports"])
def test_a_link_in_place_of_our_folders_is_refused(
    applied: Bench, victim: Path, place: str
) -> None:
    (victim / "spec.local").mkdir()
    (applied.own / place).rename(applied.own / "away")
    (applied.own / place).symlink_to(victim)
    done = applied.run("destroy", "spec.yaml", "--yes")
    assert done.returncode == 2
    assert "is a link" in done.stderr
    assert (victim / "spec.local").is_dir()


def test_a_link_in_place_of_an_environment_is_removed_and_not_followed(
    applied: Bench, victim: Path
) -> None:
    for path in (applied.own / "envs").iterdir():
        if not path.is_symlink():
            path.rename(victim / path.name)
            path.symlink_to(victim)
    assert applied.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert (victim / "thesis.txt").exists()


@pytest.mark.parametrize("version", ["2", "4"])
def test_what_a_repository_brings_along_is_refused(applied: Bench, version: str) -> None:
    git = ["git", "-C", str(applied.folder), "-c", f"index.version={version}"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run(
        [*git, "add", "--force", "spec.yaml", ".provision/state.json", ".provision/envs"],
        check=True,
    )
    for words in (("destroy", "spec.yaml", "--yes"), ("apply", "spec.yaml", "--yes")):
        done = applied.run(*words)
        assert done.returncode == 2, done.stdout
        assert "is tracked by git" in done.stderr
        assert "git rm -r --cached" in done.stderr
    assert (applied.own / "envs/spec.local/bin/python").exists()
    subprocess.run([*git, "rm", "--quiet", "-r", "--cached", ".provision"], check=True)
    assert applied.run("destroy", "spec.yaml", "--yes").returncode == 0


def test_a_folder_that_others_may_write_to_is_closed_to_them(applied: Bench) -> None:
    applied.own.chmod(0o777)
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0
    assert applied.own.stat().st_mode & 0o777 == 0o700


@pytest.mark.long(after=3)
@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "null",
        "1",
        '"x"',
        "{}",
        '{"address": 1}',
        '{"address": "x", "part": "environment", "verb": "+", "paths": [], "began": ""}',
        "[" * 5000,
    ],
)
def test_a_damaged_journal_is_said_so(applied: Bench, text: str) -> None:
    (applied.own / "journal.json").write_text(text)
    for verb in ("status", "plan", "apply", "destroy"):
        done = applied.run(verb, "spec.yaml", *(["--yes"] if verb in {"apply", "destroy"} else []))
        assert done.returncode == 2, (verb, done.stdout, done.stderr)
        assert "is damaged" in done.stderr
    assert (applied.own / "envs/spec.local/bin/python").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"resources": []},
        {"resources": {"x": {}}},
        {"resources": {"spec/local#environment": 1}},
        {"serial": "1"},
        {"lineage": None},
        {"serial": True},
    ],
)
def test_a_state_with_a_right_checksum_and_wrong_parts_is_damaged(
    applied: Bench, change: dict[str, Any]
) -> None:
    content = json.loads((applied.own / "state.json").read_text())
    forged = State(
        **{
            "lineage": content["lineage"],
            "serial": content["serial"],
            "resources": content["resources"],
            **change,
        }
    )
    (applied.own / "state.json").write_text(dumps(forged))
    for verb in ("status", "plan", "destroy"):
        done = applied.run(verb, "spec.yaml")
        assert done.returncode == 2, (verb, done.stdout, done.stderr)
        assert "is damaged" in done.stderr


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("verb", "part"),
    list(product(["apply", "plan", "status", "verify", "report"], ["environment", "verification"])),
)
def test_a_record_that_lacks_a_part_is_no_bug(applied: Bench, verb: str, part: str) -> None:
    before = (applied.own / "state.json").read_text()
    for name in state_of(applied).resource("spec/local", part) or {}:
        forge(applied, part, **{name: None})
        done = applied.run(verb, "spec.yaml", *(["--yes"] if verb == "apply" else []))
        assert done.returncode in {0, 1, 2, 3}, (name, done.stderr)
        (applied.own / "state.json").write_text(before)


_STRANGER = 65534
"""A user who is not the owner: nobody, on most systems."""


@pytest.fixture
def shared(applied: Bench) -> Iterator[Path]:
    """A copy of the project that everyone may read and write; its files still belong to the user
    who made them.
    """
    require("root", os.geteuid() == 0, "a command is run as another user, which needs root")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        subprocess.run(["cp", "-a", str(applied.folder), folder], check=True)
        subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
        yield Path(folder) / applied.folder.name


def as_stranger(argv: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        user=_STRANGER,
        group=_STRANGER,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=600,
        **options,
    )


def python_of_strangers() -> str:
    """Return a Python of this version that another user may run; skips when there is none."""
    here = (
        f"import sys; sys.path += {sys.path!r}; import click, pydantic, provision; "
        f"sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    )
    for python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            if as_stranger([python, "-c", here], cwd="/").returncode == 0:
                return python
    pytest.skip("no Python of this version that another user may run")


@pytest.mark.parametrize("words", [("apply", "--yes"), ("destroy", "--yes")])
def test_a_folder_of_another_user_is_refused(
    applied: Bench, shared: Path, words: tuple[str, str]
) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    variables = applied.environment(
        HOME=str(shared / "home"),
        UV_CACHE_DIR=str(shared / "uv-cache"),
        TMPDIR="/tmp",
        PYTHONPATH=paths,
    )
    argv = [python_of_strangers(), "-m", "provision", words[0], "spec.yaml", *words[1:]]
    done = as_stranger(argv, cwd=shared, env=variables)
    assert done.returncode == 2, done.stdout + done.stderr
    assert ".provision belongs to a different user" in done.stderr
    assert "run the command as that user" in done.stderr
    assert (shared / ".provision/envs/spec.local/bin/python").exists()


@pytest.mark.parametrize("missing", [{"digest": None}, {}])
def test_a_title_in_a_state_is_never_a_command_of_a_workflow(
    applied: Bench, missing: dict[str, None]
) -> None:
    for part in ("environment", "verification"):
        forge(applied, part, title="here\n::error file=x::forged", **missing)
    shown = ""
    for words in (("status",), ("plan",), ("apply", "--yes"), ("destroy", "--yes")):
        done = applied.run(words[0], "spec.yaml", *words[1:], GITHUB_ACTIONS="true")
        shown += done.stdout + done.stderr
        lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
        assert not [line for line in lines if line.lstrip().startswith("::")], lines
    assert "digest" not in missing or "forged" in shown


def test_an_interrupted_verification_leaves_nothing_behind_destroy(applied: Bench) -> None:
    state = state_of(applied)
    (applied.own / "state.json").write_text(
        dumps(state.with_record("spec/local", "verification", None))
    )
    assert (applied.own / "reports/spec.local").exists()
    done = applied.run("destroy", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert not applied.own.exists()
