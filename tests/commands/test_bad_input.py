"""What goes wrong at a person's desk: each with its message, its exit code, and nothing lost."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig import MINOR, Bench, make_index, make_wheel, served, small_spec
from tests.support import require


def test_orphans_are_not_said_to_be_absent_where_no_project_was_asked(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    done = bench.run("orphans", "spec.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no project to search" in done.stderr
    assert "help:" in done.stderr


@pytest.mark.parametrize("verb", ["lint", "lock", "plan", "apply", "status", "run"])
def test_a_missing_file_is_exit_2_and_named(bench: Bench, verb: str) -> None:
    done = bench.run(verb, "nowhere.yaml", *(["--", "true"] if verb == "run" else []))
    assert done.returncode == 2
    assert "nowhere.yaml" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("check", "requirments.txt"),
        ("import", "requirments.txt"),
        ("init", "--from", "requirments.txt"),
        ("lint", "spek.yaml"),
        ("lint", "trian.ipynb"),
        ("lint", "train.ipynb", "--spec", "spek.yaml"),
        ("lock", "spek.yaml"),
        ("apply", "spek.yaml", "--yes"),
        ("run", "spek.yaml", "--", "true"),
        ("suggest", "spek.yaml"),
        ("export", "spek.yaml", "--format", "requirements"),
        ("why", "traec.txt"),
        ("report", "reporrt.json"),
        ("report", "add", "reporrt.json"),
        ("report", "run", "reporrt.json"),
        ("diff", "reporrt.json", "report.json"),
        ("diff", "report.json", "report.json", "--error", "traec.txt"),
        ("parity", "reporrt.json", "report.json"),
    ],
)
def test_a_missing_file_may_be_a_similar_one(bench: Bench, words: tuple[str, ...]) -> None:
    for name in ("requirements.txt", "spec.yaml", "train.ipynb", "trace.txt", "report.json"):
        (bench.folder / name).write_text("{}")
    done = bench.run(*words)
    assert done.returncode == 2
    assert "No such file or directory" in done.stderr
    assert "help: did you mean '" in done.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "U+007F"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "UTF-8"),
        (b"gpu: none\npackages: [\n", "["),
        (b"just words\n", "mapping"),
        (b"- a\n- b\n", "mapping"),
        (b"gpu: none\npython: 3.11\npackages: [alpha]\n", '"3.11"'),
        (b'gpu: none\npython: "3.11"\npackges: [alpha]\n', "packages"),
        (b'gpu: none\npython: "3.11"\npackages: torch\n', "list"),
    ],
)
def test_a_spec_that_cannot_be_understood_is_exit_1_with_its_place(
    bench: Bench, content: bytes, words: str
) -> None:
    (bench.folder / "spec.yaml").write_bytes(content)
    for verb in ("lint", "apply"):
        done = bench.run(verb, "spec.yaml", *(["--yes"] if verb == "apply" else []))
        assert done.returncode == 1, (verb, done.stdout, done.stderr)
        said = done.stdout + done.stderr
        assert "spec.yaml:" in said
        assert words in said
        assert "Traceback" not in said
    assert not bench.own.exists()


def test_a_folder_in_place_of_a_spec(bench: Bench) -> None:
    (bench.folder / "spec.yaml").mkdir()
    done = bench.run("lint", "spec.yaml")
    assert done.returncode == 2
    assert "spec.yaml" in done.stderr


def test_no_spec_named_and_none_here(bench: Bench) -> None:
    done = bench.run("apply")
    assert done.returncode == 2
    assert "provision init" in done.stderr


def test_init_never_overwrites(bench: Bench) -> None:
    assert bench.run("init").returncode == 0
    assert bench.run("lint").returncode == 0
    (bench.folder / "provision.yaml").write_text("mine")
    refused = bench.run("init")
    assert refused.returncode == 2
    assert (bench.folder / "provision.yaml").read_text() == "mine"
    assert bench.run("init", "--force").returncode == 0


def test_a_version_that_does_not_exist(bench: Bench) -> None:
    bench.spec(small_spec("alpha==9.9"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert "no version of alpha==9.9" in done.stderr
    assert "spec.yaml:4:5 requires alpha==9.9" in done.stderr
    assert not (bench.folder / "spec.lock").exists()


def test_a_conflict_shows_the_derivation_and_the_lines_that_asked(bench: Bench) -> None:
    bench.spec(small_spec("alpha==1.0"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    lock = (bench.folder / "spec.lock").read_text()
    bench.spec(small_spec("beta", "gamma"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert "alpha>=2" in done.stderr
    assert "spec.yaml:4:5 requires beta" in done.stderr
    assert "spec.yaml:5:5 requires gamma" in done.stderr
    assert (bench.folder / "spec.lock").read_text() == lock


def test_a_package_that_is_not_on_the_index(bench: Bench) -> None:
    bench.spec(small_spec("nonesuch-package"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert "nonesuch-package" in done.stderr


def test_only_a_source_distribution(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "index/sourceonly"
    folder.mkdir(parents=True)
    (folder / "sourceonly-1.0.tar.gz").write_bytes(b"never read")
    (folder / "index.html").write_text(
        f'<a href="sourceonly-1.0.tar.gz#sha256={"0" * 64}">sourceonly-1.0.tar.gz</a>'
    )
    bench.spec(small_spec("sourceonly"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert "sourceonly has no wheels, only source distributions" in done.stderr
    assert "{name: sourceonly, build: true}" in done.stderr
    assert "spec.yaml:4:5 requires sourceonly" in done.stderr


def test_no_network(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    done = bench.run("lock", "spec.yaml", PROVISION_INDEX_PYPI="http://127.0.0.1:9/simple")
    assert done.returncode == 2
    assert "could not be reached" in done.stderr
    assert "index-url" in done.stderr
    assert "without a connection to 127.0.0.1:9, use --offline" in " ".join(done.stderr.split())
    assert not (bench.folder / "spec.lock").exists()


def test_offline_from_the_cache(bench: Bench, tmp_path: Path) -> None:
    with served(tmp_path / "index") as address:
        bench.spec(small_spec("alpha"))
        assert (
            bench.run("apply", "spec.yaml", "--yes", PROVISION_INDEX_PYPI=address).returncode == 0
        )
        assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
    gone = bench.run("apply", "spec.yaml", "--yes", "--offline", PROVISION_INDEX_PYPI=address)
    assert gone.returncode == 0, gone.stderr
    shutil.rmtree(bench.folder / "uv-cache")
    assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
    cold = bench.run("apply", "spec.yaml", "--yes", "--offline", PROVISION_INDEX_PYPI=address)
    assert cold.returncode == 2
    assert "cache" in cold.stderr


def test_a_tampered_wheel_is_refused(bench: Bench, tmp_path: Path) -> None:
    bench.spec(small_spec("alpha==1.0"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    shutil.rmtree(bench.folder / "uv-cache")
    shutil.rmtree(tmp_path / "index/alpha")
    make_index(
        tmp_path / "index",
        (
            make_wheel(
                tmp_path / "other", "alpha", "1.0", code="import os  # not what was locked\n"
            ),
        ),
    )
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 1
    assert "differs from the locked file" in done.stderr
    assert "incomplete" in bench.run("status", "spec.yaml").stdout


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text[: len(text) // 2], "damaged"),
        (lambda text: text.replace('"version": "2.0"', '"version": "1.0"'), "edited by hand"),
        (lambda text: "<<<<<<< ours\n" + text, "conflict markers"),
        (
            lambda text: text.replace("provision.lock/2", "provision.lock/3"),
            "newer version of provision",
        ),
        (
            lambda text: text.replace("provision.lock/2", "provision.lock/1"),
            "older version of provision",
        ),
        (lambda _: '{"name": "x"}', "spec.lock is not a provision lock"),
        (lambda _: "[]", "spec.lock is not a provision lock"),
        (lambda _: '{"schema": "provision.lock/2"}', "damaged"),
    ],
)
def test_a_damaged_lock_is_refused_with_its_way_out(bench: Bench, change, words: str) -> None:
    bench.spec(small_spec("alpha"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    path = bench.folder / "spec.lock"
    path.write_text(change(path.read_text()))
    damaged = path.read_text()
    for verb in (("lock", "--check"), ("plan",), ("apply", "--yes")):
        done = bench.run(verb[0], "spec.yaml", *verb[1:])
        assert done.returncode == 1, (verb, done.stderr)
        assert words in done.stderr
        assert "`provision lock" in done.stderr
    assert path.read_text() == damaged
    assert bench.run("lock", "spec.yaml", "--upgrade").returncode == 0
    assert bench.run("lock", "spec.yaml", "--check").returncode == 0


def test_an_interpreter_that_is_not_there(bench: Bench) -> None:
    bench.spec(small_spec("alpha").replace(f'"{MINOR}"', '"3.99"'))
    assert bench.run("lock", "spec.yaml").returncode == 0  # a lock is for other machines too
    for words in (("plan",), ("apply", "--yes")):
        done = bench.run(words[0], "spec.yaml", *words[1:])
        assert done.returncode == 2
        assert "there is no Python 3.99 on this machine" in done.stderr
        assert "found: " in done.stderr
    assert not (bench.own / "envs").exists()


@pytest.mark.long
def test_a_missing_interpreter_that_uv_could_fetch_is_an_action_of_the_plan(bench: Bench) -> None:
    wanted = next(minor for minor in ("3.14", "3.13", "3.12") if not _has(bench, minor))
    bench.spec(small_spec("alpha").replace(f'"{MINOR}"', f'"{wanted}"'))
    refused = bench.run("plan", "spec.yaml")
    assert refused.returncode == 2
    assert f"no Python {wanted}" in refused.stderr
    planned = bench.run("plan", "spec.yaml", UV_PYTHON_DOWNLOADS="manual")
    assert planned.returncode == 0, planned.stderr
    assert f"python {wanted}, by uv" in planned.stdout


def test_several_targets_are_named_before_anything_is_done(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra="targets: {one: {kind: local}, two: {kind: local}}\n"))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 2
    assert "one (local), two (local)" in done.stderr
    assert bench.run("plan", "spec.yaml").stdout.count("+    environment") == 2
    assert bench.run("apply", "spec.yaml", "--target", "three", "--yes").returncode == 2
    assert bench.run("apply", "spec.yaml", "--all", "--yes").returncode == 0
    assert bench.run("destroy", "spec.yaml", "--yes").returncode == 2
    assert bench.run("destroy", "spec.yaml", "--target", "one", "--yes").returncode == 0
    assert (bench.own / "envs/spec.two/bin/python").exists()


@pytest.mark.parametrize(
    ("extra", "words", "code"),
    [
        ("cuda_toolkit: '12.8'\n", "installing a CUDA toolkit on a local machine", 1),
        ("system_packages: [surely-not-installed-here]\n", "surely-not-installed-here", 2),
        ("requires: {vram: 16GiB}\n", "`requires.vram` does not apply to `gpu: none`", 1),
        ("secrets: {T: {secret: projects/p/secrets/s/versions/1}}\n", "machine: {env: NAME}", 1),
    ],
)
def test_what_this_version_does_not_do_is_refused_with_its_place(
    bench: Bench, extra: str, words: str, code: int
) -> None:
    """What the text of the spec shows is a finding of lint (1), the rest a refusal (2)."""
    bench.spec(small_spec("alpha", extra=extra))
    done = bench.run("plan", "spec.yaml")
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stderr
    assert "spec.yaml:" in done.stderr


@pytest.mark.parametrize(
    "field",
    [
        "model: {parameters: 1B}",
        "batch_size: 4",
        "torch_compile: true",
        "strategy: ddp",
        "launcher: torchrun",
    ],
)
def test_what_describes_the_training_is_taken_where_none_runs(bench: Bench, field: str) -> None:
    bench.spec(
        small_spec("alpha", extra="verify: {tier: deep}\n").replace(
            "{framework: none}", f"{{framework: none, {field}}}"
        )
    )
    done = bench.run("plan", "spec.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_check_that_does_not_exist_is_named_with_its_neighbours(applied: Bench) -> None:
    done = applied.run("verify", "spec.yaml", "--only", "P22")
    assert done.returncode == 2
    assert "there is no check P22" in done.stderr
    assert "P02" in done.stderr
    assert "help: did you mean P02?\n" in applied.run("verify", "spec.yaml", "--only", "p2").stderr
    one = applied.run("verify", "spec.yaml", "--only", "P02")
    assert one.returncode == 0
    assert "Only some of the checks were run: 1 check passed." in one.stdout
    told = applied.run("verify", "spec.yaml", "--only", "P02", "--output-format", "junit")
    assert (told.returncode, "<testcase " in told.stdout, "P02" in told.stdout) == (0, True, True)
    assert told.stdout.startswith("<?xml ")
    assert applied.run("verify", "spec.yaml", "--only", "P06:alpha").returncode == 0


def test_specs_and_targets_with_hyphens_do_not_meet(bench: Bench) -> None:
    bench.spec(small_spec("alpha"), "a-b.yaml")
    bench.spec(small_spec("alpha", extra="targets: {b-here: {kind: local}}\n"), "a.yaml")
    assert bench.run("apply", "a-b.yaml", "--yes").returncode == 0
    assert bench.run("apply", "a.yaml", "--yes").returncode == 0
    assert bench.run("destroy", "a.yaml", "--yes").returncode == 0
    assert bench.run("run", "a-b.yaml", "--", "python", "-c", "import alpha").returncode == 0


@pytest.mark.long
def test_destroy_keeps_the_schema_that_init_wrote(bench: Bench) -> None:
    assert bench.run("init", "spec.yaml").returncode == 0
    bench.spec(small_spec("alpha"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert (bench.folder / "provision.schema.json").is_file()
    assert not bench.own.exists()


def test_a_bug_of_ours_is_exit_70_with_a_file(bench: Bench) -> None:
    lines = [
        "import sys, provision.cli.main as d",
        "def main(*a, **k): raise LookupError('token hf_' + 'a' * 30)",
        "d.app.main = main",
        "sys.exit(d.main())",
    ]
    code = "\n".join(lines)
    done = subprocess.run(
        [*bench.argv()[:1], "-c", code],
        env=bench.environment(TMPDIR=str(bench.folder)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 70
    (crash,) = bench.folder.glob("provision-bug-*.txt")
    assert str(crash) in done.stderr
    assert "hf_aaa" not in crash.read_text()
    assert "Traceback" not in done.stderr


@pytest.mark.root
def test_a_full_disk_is_said_and_the_next_run_goes_on(bench: Bench, tmp_path: Path) -> None:
    require(
        "root",
        os.geteuid() == 0 and shutil.which("unshare") is not None,
        "a small disk is mounted in a namespace, which needs root and unshare",
    )
    make_index(
        tmp_path / "index", (make_wheel(tmp_path / "wheels", "heavy", "1.0", size=6_000_000),)
    )
    bench.spec(small_spec("heavy"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    bench.own.mkdir(mode=0o700)
    script = (
        f"mount -t tmpfs -o size=3m tmpfs {bench.own} && exec "
        f"{' '.join(bench.argv('apply', 'spec.yaml', '--yes'))}; echo unreachable"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=bench.folder,
        env=bench.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "disk is full" in done.stderr
    again = bench.run("apply", "spec.yaml", "--yes")
    assert again.returncode == 0, again.stderr


@pytest.mark.root
def test_a_read_only_folder_is_refused_before_anything_is_done(bench: Bench) -> None:
    require(
        "root",
        os.geteuid() == 0 and shutil.which("unshare") is not None,
        "a folder is mounted read-only in a namespace, which needs root and unshare",
    )
    bench.spec(small_spec("alpha"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    cache = bench.folder.parent / "cache"
    folder = bench.folder
    script = (
        f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && cd {folder} "
        f"&& exec {' '.join(bench.argv('apply', 'spec.yaml', '--yes'))}"
    )
    env = bench.environment(UV_CACHE_DIR=str(cache), HOME=str(folder.parent))
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "is not writable" in done.stderr
    assert not bench.own.exists()


@pytest.mark.root
def test_in_a_read_only_folder_verify_says_what_to_do(bench: Bench) -> None:
    require(
        "root",
        os.geteuid() == 0 and shutil.which("unshare") is not None,
        "a folder is mounted read-only in a namespace, which needs root and unshare",
    )
    bench.spec(small_spec("alpha"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    folder = bench.folder
    script = (
        f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && cd {folder} "
        f"&& exec {' '.join(bench.argv('verify', 'spec.yaml'))}"
    )
    env = bench.environment(HOME=str(folder.parent))
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Read-only file system" in done.stderr
    assert "help: the spec's folder must be writable" in done.stderr


def test_ctrl_c_while_locking_writes_nothing(bench: Bench, tmp_path: Path) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def wait(_: str) -> None:
        asked.set()
        go_on.wait(300)

    with served(tmp_path / "index", wait) as address:
        bench.spec(small_spec("alpha"))
        running = bench.start("lock", "spec.yaml", PROVISION_INDEX_PYPI=address)
        assert asked.wait(300)
        running.send_signal(signal.SIGINT)
        assert running.wait(300) == 130
        go_on.set()
    assert not (bench.folder / "spec.lock").exists()


@pytest.mark.long(after=1)
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_while_verifying_it_keeps_the_environment_and_leaves_no_process(
    bench: Bench, tmp_path: Path, blow: signal.Signals
) -> None:
    nap = tmp_path / "asleep"
    code = (
        "import time, pathlib\nfirst = not "
        f"pathlib.Path({str(nap)!r}).exists()\npathlib.Path({str(nap)!r}).touch()\ntime.sleep(60 "
        "if first else 0)\n"
    )
    make_index(tmp_path / "index", (make_wheel(tmp_path / "wheels", "sleepy", "1.0", code=code),))
    bench.spec(small_spec("sleepy"))
    running = bench.start("apply", "spec.yaml", "--yes")
    assert _soon(nap.exists)
    running.send_signal(blow)
    assert running.wait(300) == {signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}[blow]
    assert _soon(lambda: not _processes(str(bench.own)))
    state = json.loads((bench.own / "state.json").read_text())
    assert "spec/local#environment" in state["resources"]
    assert "spec/local#verification" not in state["resources"]
    again = bench.run("apply", "spec.yaml", "--yes")
    assert again.returncode == 0, again.stderr
    assert "verifying: " in again.stderr


def _soon(holds: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _processes(needle: str) -> list[str]:
    """The command lines of running processes that name `needle`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().decode("utf-8", "replace")
            if needle in line:
                found.append(line)
    return found


def _has(bench: Bench, minor: str) -> bool:
    from provision.adapters import RealSystem

    return RealSystem(bench.environment()).find_pythons(minor).selected is not None


def test_a_gpu_that_the_facts_do_not_know_is_named(bench: Bench) -> None:
    bench.spec(small_spec("alpha").replace("gpu: none", "gpu: nosuchcard"))
    done = bench.run("lock", "spec.yaml")
    assert (done.returncode, "the facts have no GPU named nosuchcard" in done.stderr) == (
        1,
        True,
    ), done.stderr
    assert "provision facts list gpus" in done.stderr
