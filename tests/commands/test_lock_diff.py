"""`provision lock --diff OLD`: what it compares, what it says of the spec's own card, and what it
answers to what is no lock.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from provision.lock import Lock, LockedEnvironment, LockedFile, LockedPackage, TargetChoice, dumps
from provision.lock.inputs import collect_lock_inputs
from provision.lock.model import with_digest
from provision.spec import Spec
from tests import fork_server
from tests.rig import Bench, make_index, make_wheel, small_spec

V100 = (
    'gpu: V100\ncuda: "12.8"\npython: "3.12"\npackages: ["torch>=2.9"]\ntraining: {framework: '
    "none}\n"
)
KEY = "linux-x86_64-cu128"


def gpu_lock(torch: str, *more: LockedPackage, flavour: str = "cu128", **changes: Any) -> Lock:
    """A lock of the V100 spec by hand: the rules let no such lock be written where the card has no
    code.
    """
    spec = Spec.model_validate(
        {
            "gpu": "V100",
            "cuda": "12.8",
            "python": "3.12",
            "packages": ["torch>=2.9"],
            "training": {"framework": "none"},
        }
    )
    held = LockedPackage(
        "torch",
        torch,
        f"pytorch-{flavour}",
        (KEY,),
        (),
        (LockedFile(f"torch-{torch}-cp312-cp312-manylinux_2_28_x86_64.whl", "00" * 32),),
    )
    environment = LockedEnvironment(KEY, "linux-x86_64", flavour, "2.28", None, "")
    made = {
        "inputs": collect_lock_inputs(spec),
        "python": "3.12",
        "environments": (environment,),
        "targets": {"local": TargetChoice((KEY,), "")},
        "indexes": {},
        "packages": (held, *more),
    }
    return with_digest(Lock(**{**made, **changes}))


@pytest.fixture
def moved(bench: Bench, tmp_path: Path) -> Bench:
    """old.lock with alpha 1.0, and spec.lock with alpha 2.0 and gamma, both made by the real uv."""
    bench.spec(small_spec("alpha<2"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    shutil.move(bench.folder / "spec.lock", bench.folder / "old.lock")
    bench.spec(small_spec("alpha", "gamma"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    return bench


def told(bench: Bench, *words: str) -> dict[str, Any]:
    done = bench.run("lock", "spec.yaml", "--diff", *words, "--output-format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_what_a_person_sees(moved: Bench) -> None:
    done = moved.run("lock", "spec.yaml", "--diff", "old.lock")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "old.lock -> spec.lock",
        "packages: 1 added, 1 changed",
        "  ~ alpha 1.0 (unconfirmed) -> 2.0 (unconfirmed)",
        "  + gamma 1.0 (unconfirmed)",
        "changed fields of the spec:",
        "  - packages: alpha<2",
        "  + packages: alpha",
        "  + packages: gamma",
    ]


def test_nothing_is_written_and_nothing_is_asked_of_an_index(moved: Bench) -> None:
    before = sorted(path.name for path in moved.folder.iterdir())
    done = moved.run(
        "lock",
        "spec.yaml",
        "--diff",
        "old.lock",
        PROVISION_INDEX_PYPI="http://127.0.0.1:9/simple",
        PATH="",
    )
    assert done.returncode == 0
    assert sorted(path.name for path in moved.folder.iterdir()) == before


def test_a_lock_compared_with_itself(moved: Bench) -> None:
    done = moved.run("lock", "spec.yaml", "--diff", "spec.lock")
    assert (done.returncode, done.stdout) == (0, "spec.lock -> spec.lock\nNo changes.\n")
    assert told(moved, "spec.lock")["changed"] is False


def test_the_older_lock_comes_from_standard_input(moved: Bench) -> None:
    def given(content: bytes) -> subprocess.CompletedProcess[bytes]:
        argv = moved.argv("lock", "spec.yaml", "--diff", "-", "--output-format", "markdown")
        return fork_server.run(
            argv,
            cwd=moved.folder,
            env=moved.environment(),
            capture_output=True,
            input=content,
            timeout=600,
        )

    done = given((moved.folder / "old.lock").read_bytes())
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().startswith("### Lock: the lock on standard input → spec\\.lock\n")
    assert (
        b"| \\~ | alpha | 1\\.0 \\(unconfirmed\\) | 2\\.0 \\(unconfirmed\\) |  |\n" in done.stdout
    )
    empty = given(b"")
    assert (empty.returncode, empty.stdout) == (2, b"")
    assert b"standard input is empty" in empty.stderr
    assert b"git show main:" in empty.stderr


def test_a_stale_lock_is_compared_with_a_note(moved: Bench) -> None:
    moved.spec(small_spec("alpha", "gamma", "beta"))
    done = moved.run("lock", "spec.yaml", "--diff", "old.lock")
    assert done.returncode == 0
    assert "note: spec.lock is stale" in done.stderr
    assert "packages: + beta" in done.stderr
    assert "~ alpha 1.0 (unconfirmed) -> 2.0 (unconfirmed)" in done.stdout


def test_another_file_under_the_same_version_is_a_warning(bench: Bench, tmp_path: Path) -> None:
    bench.spec(small_spec("alpha<2"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    shutil.move(bench.folder / "spec.lock", bench.folder / "old.lock")
    other = make_wheel(
        tmp_path / "other", "alpha", "1.0", code="import os  # not what was locked\n"
    )
    index = make_index(tmp_path / "other-index", (other,))
    assert bench.run("lock", "spec.yaml", PROVISION_INDEX_PYPI=index).returncode == 0
    done = bench.run("lock", "spec.yaml", "--diff", "old.lock")
    assert (
        "same version, different files:\n  warning alpha 1.0: different sha256 for "
        "alpha-1.0-py3-none-any.whl\n" in done.stdout
    )
    assert told(bench, "old.lock")["files"][0]["suspicious"] is True


def locks(bench: Bench, old: Lock, new: Lock, spec: str = V100) -> Bench:
    bench.spec(spec)
    (bench.folder / "old.lock").write_text(dumps(old).replace("\ud800", "\\ud800"))
    (bench.folder / "spec.lock").write_text(dumps(new))
    return bench


def test_the_card_of_the_spec_loses_its_code(bench: Bench) -> None:
    locks(bench, gpu_lock("2.10.0+cu128"), gpu_lock("2.11.0+cu128"))
    shown = bench.run("lock", "spec.yaml", "--diff", "old.lock").stdout
    assert "~ torch 2.10.0+cu128 -> 2.11.0+cu128\n" in shown
    assert "error torch 2.10.0 -> 2.11.0 (cu128): V100 loses sm_70" in shown
    assert "error GPU005 spec.yaml:" in shown
    document = told(bench, "old.lock")
    assert [(one["kind"], one["targets"]) for one in document["follows"]] == [
        ("code lost", ["local"])
    ]
    assert [one["id"] for one in document["findings"]["new"]] == ["GPU005"]
    assert "V100-32GB" in document["elsewhere"][0]["text"]
    comment = bench.run(
        "lock", "spec.yaml", "--diff", "old.lock", "--output-format", "markdown"
    ).stdout
    assert "V100 loses sm\\_70" in comment
    assert "TITAN\\-V" in comment.partition("<details>")[2]


def test_and_the_other_way_it_is_settled(bench: Bench) -> None:
    locks(bench, gpu_lock("2.11.0+cu128"), gpu_lock("2.10.0+cu128"))
    document = told(bench, "old.lock")
    assert [one["kind"] for one in document["follows"]] == ["code gained"]
    assert (
        [one["id"] for one in document["findings"]["new"]],
        [one["id"] for one in document["findings"]["settled"]],
    ) == ([], ["GPU005"])


def test_a_finding_that_only_names_another_version_is_not_new(bench: Bench) -> None:
    spec = V100.replace('cuda: "12.8"\n', "")
    locks(
        bench,
        gpu_lock("2.11.0+cu130", flavour="cu130"),
        gpu_lock("2.12.0+cu130", flavour="cu130"),
        spec,
    )
    document = told(bench, "old.lock")
    assert document["packages"][0]["new"]["version"] == "2.12.0+cu130"
    assert document["findings"] == {"new": [], "settled": []}


def test_a_driver_floor_is_held_against_what_the_place_brings(bench: Bench) -> None:
    spec = (
        'gpu: T4\ncuda: "13.0"\npython: "3.12"\npackages: ["torch>=2.9"]\ntraining: '
        '{framework: none}\ntargets: {colab: {kind: colab, runtime: "2026.07"}}\n'
    )
    own = {"targets": {"colab": TargetChoice((KEY,), "")}}
    locks(
        bench,
        gpu_lock("2.11.0+cu128", **own),
        gpu_lock("2.11.0+cu130", flavour="cu130", **own),
        spec,
    )
    (driver,) = [one for one in told(bench, "old.lock")["follows"] if one["kind"] == "driver floor"]
    assert (
        "the oldest supported driver is 580.65.06 (before: 525.60.13); the target has 580.82.07 "
        "(Colab's machines)" in driver["text"]
    )
    assert driver["targets"] == ["colab"]


def test_hostile_names_in_an_older_lock_are_only_text(bench: Bench) -> None:
    name = "evil|`<b>\n# @team \x1b[31m\ud800"
    evil = LockedPackage(name, "no version", name, (KEY,), (name,), (LockedFile(name, "zz"),))
    new = gpu_lock("2.10.0+cu128")
    flavour = LockedEnvironment(KEY, "linux-x86_64", name, name, name, name)
    for old in (
        gpu_lock("2.9.0+cu128", evil),
        gpu_lock("no version", evil, python=name),
        gpu_lock("2.9.0", evil, environments=(flavour,)),
    ):
        locks(bench, old, new)
        for form in ("text", "markdown", "json"):
            done = bench.run("lock", "spec.yaml", "--diff", "old.lock", "--output-format", form)
            assert done.returncode == 0, done.stderr
            assert "\x1b" not in done.stdout + done.stderr
            assert "BUG000" not in done.stdout
            assert "evil" in done.stdout
            assert form != "markdown" or ("<b>" not in done.stdout and "@team" not in done.stdout)


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (None, 2, "cannot read old.lock"),
        ("", 1, "old.lock is damaged"),
        ("not json", 1, "old.lock is damaged"),
        ("[]", 1, "old.lock is not a provision lock"),
        ('{"name": "x"}', 1, "old.lock is not a provision lock"),
        (
            '{"schema": "provision.lock/99"}',
            1,
            "written by a newer version of provision (provision.lock/99)",
        ),
        ("<<<<<<< main\n", 1, "conflict markers"),
        ("cut", 1, "old.lock is damaged"),
        ("edited", 1, "old.lock was edited by hand or truncated"),
        ("python", 1, "old.lock is damaged"),
        ("asked", 1, "old.lock is damaged"),
        ("glibc", 1, "old.lock is damaged"),
    ],
)
def test_what_is_no_lock(moved: Bench, content: str | None, code: int, said: str) -> None:
    path = moved.folder / "old.lock"
    whole = path.read_text()
    match content:
        case None:
            path.unlink()
        case "cut":
            path.write_text(whole[: len(whole) // 2])
        case "edited":
            path.write_text(whole.replace('"version": "1.0"', '"version": "1.1"'))
        case "python" | "asked" | "glibc":
            path.write_text(with_number(whole, content))
        case _:
            path.write_text(content)
    done = moved.run("lock", "spec.yaml", "--diff", "old.lock")
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "--upgrade" not in done.stderr, "the older lock is not made again"
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr


def with_number(text: str, field: str) -> str:
    """The lock with a number where text belongs, and a digest that fits."""
    from provision.lock import digest_of

    document = json.loads(text)
    if field == "glibc":
        next(iter(document["environments"].values()))["glibc"] = 2.28
    else:
        document[field] = 5
    del document["digest"]
    return json.dumps({**document, "digest": digest_of(document)})


@pytest.mark.parametrize(
    ("left", "said"),
    [(None, "there is no spec.lock"), ("{}", "spec.lock is not a provision lock")],
)
def test_the_lock_beside_the_spec_has_to_be_there_and_whole(
    moved: Bench, left: str | None, said: str
) -> None:
    path = moved.folder / "spec.lock"
    path.unlink() if left is None else path.write_text(left)
    done = moved.run("lock", "spec.yaml", "--diff", "old.lock")
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr


def test_a_standard_input_that_cannot_be_read_is_no_bug(moved: Bench) -> None:
    unreadable = os.open(os.devnull, os.O_WRONLY)
    argv = moved.argv("lock", "spec.yaml", "--diff", "-")
    done = fork_server.run(
        argv,
        cwd=moved.folder,
        env=moved.environment(),
        capture_output=True,
        text=True,
        stdin=unreadable,
        timeout=600,
    )
    os.close(unreadable)
    assert done.returncode == 2
    assert "cannot read standard input" in done.stderr
