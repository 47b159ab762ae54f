"""Code from a repository at a local target: locked as a commit, unpacked, run, and removed."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from provision.adapters.code_folder import read_code
from provision.agent.probe.report_json import expand
from provision.lock import loads
from tests.rig import Bench, small_spec

URL = "https://git.example.com/team/job.git"
TRAIN = """\
import os
from helper import VALUE
open("model", "w").write("x")
print("loss", VALUE, os.environ["PROVISION_CODE"], os.getcwd())
"""


def git(bench: Bench, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    return subprocess.run(
        ["git", *identity, *words],
        cwd=bench.folder.parent / "work",
        env={**os.environ, "HOME": str(bench.folder / "home"), "GIT_CONFIG_NOSYSTEM": "1"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def commit(bench: Bench, **files: str) -> str:
    """Write files below src, push them to main, and return the commit."""
    folder = bench.folder.parent / "work/src"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_py", ".py")).write_text(text)
    git(bench, "add", ".")
    git(bench, "commit", "--quiet", "-m", "next")
    push(bench)
    return git(bench, "rev-parse", "HEAD")


def push(bench: Bench) -> None:
    git(bench, "push", "--quiet", str(bench.folder.parent / "remote/team/job.git"), "main")


@pytest.fixture
def repository(bench: Bench) -> Bench:
    """A project whose code is in a repository, which the user's git finds at another address."""
    bare = bench.folder.parent / "remote/team/job.git"
    bare.parent.mkdir(parents=True)
    (bench.folder.parent / "work").mkdir()
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", bare], check=True)
    (bench.folder / "home/.gitconfig").write_text(
        f'[url "file://{bench.folder.parent}/remote/"]\n  insteadOf = https://git.example.com/\n'
    )
    git(bench, "init", "--quiet", "--initial-branch=main")
    commit(bench, train_py=TRAIN, helper_py="VALUE = 1\n")
    return bench


def write(bench: Bench, code: str, verify: str = "") -> None:
    bench.spec(small_spec("alpha", extra=f"code: {code}\n{verify}"))


def locked(bench: Bench, *words: str) -> tuple[str, str]:
    done = bench.run("lock", "spec.yaml", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    code = loads((bench.folder / "spec.lock").read_text(), "spec.lock").code
    assert code is not None
    return code.git, code.commit


def readings(bench: Bench) -> dict[str, Any]:
    report = expand(json.loads((bench.own / "reports/spec.local/report.json").read_bytes()))
    checks = {check["id"]: check["status"] for check in report["checks"]}
    values = {reading["key"]: reading["value"] for reading in report["readings"]}
    return {**checks, **values}


def test_the_code_of_a_commit_runs_and_has_the_digest_of_a_folder(repository: Bench) -> None:
    first = git(repository, "rev-parse", "HEAD")
    write(
        repository,
        f"{{git: '{URL}', rev: main, subdirectory: src}}",
        "verify: {command: [python, train.py], expect: {files: [model]}}\n",
    )
    assert repository.run("lint", "spec.yaml").returncode == 0
    assert not (repository.folder / "home/.cache/provision/repositories").exists()
    assert locked(repository) == (URL, first)
    planned = repository.run("plan", "spec.yaml").stdout
    assert f"code {first[:12]} from {URL}" in planned
    done = repository.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    found = readings(repository)
    assert (found["V01"], found["V02"]) == ("pass", "pass")
    assert (found["code.commit"], found["code.dirty"]) == (first, False)
    work = repository.folder.parent / "work"
    assert found["code.digest"] == read_code(work / "src", work, (), os.environ).digest

    ran = repository.run("run", "spec.yaml", "--", "python", "train.py")
    (tree,) = (repository.own / "code/spec.local").glob("*/tree")
    assert ran.stdout.split() == ["loss", "1", str(tree), str(tree)]
    kept = repository.run("plan", "spec.yaml").stdout
    assert "nothing has changed since" in kept, kept

    (tree / "helper.py").write_text("VALUE = 7\n")
    assert "1 file of it differ" in repository.run("plan", "spec.yaml").stdout
    second = commit(repository, helper_py="VALUE = 2\n")
    assert locked(repository) == (URL, first), "a branch that moves on changes nothing"
    assert locked(repository, "--upgrade", "code") == (URL, second)
    done = repository.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert repository.run("run", "spec.yaml", "--", "python", "train.py").stdout.startswith(
        "loss 2 "
    )

    destroyed = repository.run("destroy", "spec.yaml", "--yes")
    assert "has files that are not of the code" in " ".join(destroyed.stderr.split())
    left = sorted(
        path.name
        for path in repository.own.rglob("*")
        if path.is_file() and "code" in path.parts and path.name != "manifest.json"
    )
    assert left == ["helper.py", "model", "model"], "what people wrote stays"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (f"{{git: '{URL}', path: src}}", "git and path name two sources"),
        ("{rev: main}", "rev has no effect without git"),
        ("{subdirectory: src}", "subdirectory has no effect without git"),
        (f"{{git: '{URL}', branch: main}}", "write rev instead of branch"),
        (f"'{URL}'", "write a repository as {git: URL, rev: REVISION}"),
        ("{git: 'https://me:pw@git.example.com/a.git'}", "would end up in the lock"),
        ("{git: 'git@git.example.com:a.git'}", "write it as a URL: ssh://"),
        ("{git: 'file:///tmp/a.git'}", "write an address such as https://"),
        (f"{{git: '{URL}', rev: '--x'}}", "not the name of a branch"),
        (f"{{git: '{URL}', subdirectory: ../x}}", "not a folder inside of the repository"),
    ],
)
def test_lint_says_what_is_wrong_with_a_repository(bench: Bench, code: str, words: str) -> None:
    write(bench, code)
    done = bench.run("lint", "spec.yaml")
    assert (done.returncode, words in " ".join(done.stdout.split())) == (1, True), done.stdout
    assert "pw@" not in done.stdout + done.stderr


def test_what_a_repository_does_not_have_is_said_with_its_line(repository: Bench) -> None:
    for code, words in {
        f"{{git: '{URL}', rev: v9}}": "has no branch, tag or commit v9",
        f"{{git: '{URL}', subdirectory: no}}": "has no folder no at commit",
        f"{{git: '{URL}', subdirectory: src/train.py}}": "has no folder src/train.py",
        "{git: 'https://git.example.com/none.git'}": "cannot be read",
    }.items():
        write(repository, code)
        done = repository.run("lock", "spec.yaml")
        shown = " ".join(done.stderr.split())
        assert (done.returncode in (1, 2), words in shown) == (True, True), shown
        assert "spec.yaml:" in shown
    write(repository, f"{{git: '{URL}', rev: main}}")
    offline = repository.run("lock", "spec.yaml", "--offline")
    assert "is not in the cache" in offline.stderr, offline.stderr


def test_pointers_and_submodules_of_a_commit_are_refused_until_they_are_excluded(
    repository: Bench,
) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    link = f"160000,{git(repository, 'rev-parse', 'HEAD')},src/fast"
    commit(repository, weights=pointer)
    git(repository, "update-index", "--add", "--cacheinfo", link)
    git(repository, "commit", "--quiet", "-m", "link")
    push(repository)
    write(repository, f"{{git: '{URL}', subdirectory: src}}")
    locked(repository)
    shown = " ".join(repository.run("plan", "spec.yaml").stderr.split())
    assert "spec.yaml:" in shown
    assert "weights is a Git LFS pointer, not the file itself (clone the repository" in shown
    assert "fast is a submodule" in shown
    write(repository, f"{{git: '{URL}', subdirectory: src, exclude: [weights, fast]}}")
    done = repository.run("plan", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert "code: 2 files from https" in done.stdout


def test_a_plan_fetches_a_locked_commit_that_another_machine_locked(repository: Bench) -> None:
    write(repository, f"{{git: '{URL}', rev: main}}")
    locked(repository)
    (repository.folder / "home/.cache/provision").rename(repository.folder / "gone")
    offline = repository.run("plan", "spec.yaml", "--offline")
    assert "is not in the cache" in offline.stderr, offline.stdout + offline.stderr
    assert "code: 2 files from" in repository.run("plan", "spec.yaml").stdout


def test_a_changed_lock_is_named_and_a_foreign_one_refused(repository: Bench) -> None:
    write(repository, f"{{git: '{URL}', rev: main}}")
    _, first = locked(repository)
    path = repository.folder / "spec.lock"
    (repository.folder / "old.lock").write_bytes(path.read_bytes())
    second = commit(repository, helper_py="VALUE = 3\n")
    locked(repository, "--upgrade", "code")
    moved = repository.run("lock", "spec.yaml", "--diff", "old.lock").stdout
    assert f"{URL} at {first[:12]}" in moved, moved
    assert f"{URL} at {second[:12]}" in moved

    write(repository, f"{{git: '{URL}'}}")
    relocked = " ".join(repository.run("lock", "spec.yaml").stderr.split())
    assert f"code: the default branch is at commit {second[:12]} of {URL}" in relocked
    write(repository, f"{{git: '{URL}', rev: '{first}'}}")
    stale = repository.run("lock", "spec.yaml", "--check")
    assert stale.returncode == 1
    assert f"code: git+{URL} -> git+{URL}@{first}" in stale.stdout + stale.stderr
    path.write_text(path.read_text().replace(second, first))
    assert "was edited by hand" in repository.run("lock", "spec.yaml", "--check").stderr
