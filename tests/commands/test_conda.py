"""A conda environment made, verified, updated, put right and removed, from a channel on disk with a
real Python.
"""

from __future__ import annotations

import base64
import functools
import http.server
import json
import os
import shutil
import signal
import subprocess
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from provision.adapters import RealSystem
from provision.adapters.conda.prefixes import with_conda_packages
from provision.extras import install_command
from provision.lock import loads
from provision.spec import Spec
from provision.state import Ledger, create_empty_state
from provision.targets import TargetContext
from tests.conda_rig import VERSION, CondaChannel
from tests.pytorch_rig import PyTorch
from tests.rig import Bench, make_index, make_wheel, served, small_spec
from tests.support import require
from tests.targets.drivers import DRIVERS

CONDA = "conda_packages: [ffmpeg=7, needs-alpha]\ntargets: {local: {kind: local, manager: conda}}\n"


def applied(bench: Bench, conda: CondaChannel, words: str = CONDA) -> str:
    """Apply a spec with packages of both kinds and no conda on the PATH; return what was said."""
    bench.extra = {**conda.variables(), "PATH": _path_without_conda()}
    bench.spec(small_spec("gamma", extra=words))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def made(bench: Bench, conda: CondaChannel) -> Bench:
    """A bench with an applied conda environment, to do things to."""
    applied(bench, conda)
    return bench


@pytest.fixture(scope="module")
def whole(conda: CondaChannel, tmp_path_factory: pytest.TempPathFactory) -> tuple[Bench, str]:
    """An applied conda environment to look at, and what was said when it was made."""
    folder = tmp_path_factory.mktemp("whole")
    wheels = (
        make_wheel(folder / "wheels", "alpha", "2.0"),
        make_wheel(folder / "wheels", "gamma", "1.0", requires=("alpha>=2",)),
    )
    (folder / "project/home").mkdir(parents=True)
    bench = Bench(folder / "project", make_index(folder / "index", wheels))
    return bench, applied(bench, conda)


def _path_without_conda() -> str:
    names = ("conda", "mamba", "micromamba")
    return os.pathsep.join(
        folder
        for folder in os.environ["PATH"].split(os.pathsep)
        if not any((Path(folder) / name).exists() for name in names)
    )


def prefix(bench: Bench) -> Path:
    return bench.own / "envs/spec.local"


def test_it_is_made_and_verified(whole: tuple[Bench, str]) -> None:
    bench, said = whole
    assert "5 from conda, by py-rattler" in said
    assert "with py-rattler (no conda, mamba or micromamba was found" in said
    assert "conda activate .provision/envs/spec.local " in said
    code = (
        "import sys, alpha, gamma; print(sys.version_info[:3], alpha.__version__, "
        "gamma.__version__)"
    )
    done = subprocess.run(
        [prefix(bench) / "bin/python", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"{tuple(map(int, VERSION.split('.')))} 2.0 1.0"
    report = json.loads((bench.own / "reports/spec.local/report.json").read_text())
    assert report["verdict"]["result"] == "verified"
    assert [check for check in report["checks"] if check["status"] not in ("pass", "skip")] == []


def test_conda_takes_it_for_one_of_its_own(whole: tuple[Bench, str]) -> None:
    bench, _ = whole
    meta = prefix(bench) / "conda-meta"
    history = (meta / "history").read_text()
    assert f"+conda-forge/linux-64::python-{VERSION}-h0_cpython" in history
    record = json.loads((meta / "ffmpeg-7.1.1-h0_gpl.json").read_text())
    lock = json.loads((bench.folder / "spec.lock").read_text())
    assert record["sha256"] == next(
        row["sha256"] for row in lock["conda"] if row["name"] == "ffmpeg"
    )
    assert record["requested_specs"] == ["ffmpeg ==7.1.1 h0_gpl"]


def test_a_second_plan_is_empty_and_a_program_runs_in_it(whole: tuple[Bench, str]) -> None:
    made, _ = whole
    again = made.run("plan", "spec.yaml", "--detailed-exitcode")
    assert again.returncode == 0, again.stdout
    done = made.run(
        "run", "spec.yaml", "--", "python", "-c", "import alpha, sys; print(sys.prefix)"
    )
    assert (done.returncode, Path(done.stdout.strip()).resolve()) == (0, prefix(made).resolve())


@pytest.mark.long
def test_another_lock_makes_another_prefix_and_removes_the_old_one(made: Bench) -> None:
    old = prefix(made).resolve()
    made.spec(small_spec("gamma", extra=CONDA.replace("ffmpeg=7", "ffmpeg=6")))
    done = made.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not old.exists()
    assert (prefix(made) / "conda-meta/ffmpeg-6.1.2-h0_gpl.json").exists()


@pytest.mark.long
@pytest.mark.parametrize("harm", ["conda-meta", "package", "half"])
def test_what_was_changed_or_left_half_made_is_made_anew(made: Bench, harm: str) -> None:
    if harm == "conda-meta":
        (prefix(made) / "conda-meta/ffmpeg-7.1.1-h0_gpl.json").unlink()
    elif harm == "package":
        shutil.rmtree(next(prefix(made).glob("lib/python*/site-packages/gamma-1.0.dist-info")))
    else:
        (prefix(made) / "provision.json").unlink()
    assert made.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 2
    done = made.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    words = {
        "conda-meta": "conda package ffmpeg 7.1.1 is missing",
        "package": "gamma is missing",
        "half": "incomplete",
    }
    assert words[harm] in done.stdout + done.stderr
    assert made.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 0


def test_destroy_leaves_nothing(made: Bench) -> None:
    done = made.run("destroy", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert not made.own.exists()


def test_a_lock_is_verified_on_its_channel(
    bench: Bench, conda: CondaChannel, tmp_path: Path
) -> None:
    channel = tmp_path / "conda-forge"
    shutil.copytree(conda.folder, channel)
    bench.extra = {"PROVISION_CHANNEL_CONDA_FORGE": channel.as_uri()}
    bench.spec(small_spec("gamma", extra=CONDA))
    assert bench.run("lock", "spec.yaml").returncode == 0
    done = bench.run("lock", "spec.yaml", "--verify")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "conda-forge (conda channel): " in done.stdout
    for repodata in channel.glob("*/repodata.json"):
        document = json.loads(repodata.read_text())
        for rows in (document["packages"], document["packages.conda"]):
            for name, row in [*rows.items()]:
                if name.startswith("ffmpeg-"):
                    row["sha256"] = "0" * 64
                elif name.startswith("needs-alpha-"):
                    del rows[name]
        repodata.write_text(json.dumps(document))
    done = bench.run("lock", "spec.yaml", "--verify")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"on conda-forge: the channel lists sha256 {'0' * 64}, but the lock has" in done.stdout
    assert "on conda-forge: the channel does not list this file" in done.stdout
    shutil.rmtree(channel)
    done = bench.run("lock", "spec.yaml", "--verify")
    assert (done.returncode, done.stdout) == (2, "")
    assert "conda channel conda-forge cannot be reached" in done.stderr


def test_a_file_that_is_not_the_locked_one_is_refused(
    bench: Bench, conda: CondaChannel, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    shutil.copytree(conda.folder, mirror)
    bench.extra = {
        "PROVISION_CHANNEL_CONDA_FORGE": mirror.as_uri(),
        "PROVISION_CONDA": "py-rattler",
    }
    bench.spec(small_spec("gamma", extra=CONDA))
    assert bench.run("lock", "spec.yaml").returncode == 0
    shutil.copy(
        mirror / "linux-64/ffmpeg-6.1.2-h0_gpl.conda", mirror / "linux-64/ffmpeg-7.1.1-h0_gpl.conda"
    )
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "differs from the locked file" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_channel_that_is_gone_is_named(bench: Bench, conda: CondaChannel, tmp_path: Path) -> None:
    bench.extra = {**conda.variables(), "PROVISION_CONDA": "py-rattler"}
    bench.spec(small_spec("gamma", extra=CONDA))
    assert bench.run("lock", "spec.yaml").returncode == 0
    done = bench.run(
        "apply", "spec.yaml", "--yes", PROVISION_CHANNEL_CONDA_FORGE="http://127.0.0.1:9/gone"
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "PROVISION_CHANNEL_CONDA_FORGE" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)]
)
def test_killed_midway_it_is_made_anew(
    bench: Bench, conda: CondaChannel, number: int, code: int
) -> None:
    bench.extra = {**conda.variables(), "PROVISION_CONDA": "py-rattler"}
    bench.spec(small_spec("gamma", extra=CONDA))
    assert bench.run("lock", "spec.yaml").returncode == 0
    child = bench.start("apply", "spec.yaml", "--yes")
    deadline = time.monotonic() + 300
    while (
        not list(bench.own.glob("envs/*/conda-meta"))
        and time.monotonic() < deadline
        and child.poll() is None
    ):
        time.sleep(0.01)
    os.killpg(child.pid, number)
    _, said = child.communicate()
    assert (child.returncode, "Traceback" in said) == (code, False), said
    assert not list(bench.own.glob("envs/*/provision.json"))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (prefix(bench) / "conda-meta/history").exists()
    assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert not bench.own.exists()


def test_a_prefix_that_is_not_ours_is_left_as_it_is(bench: Bench, conda: CondaChannel) -> None:
    bench.extra = {**conda.variables(), "PROVISION_CONDA": "py-rattler"}
    bench.spec(small_spec("gamma", extra=CONDA))
    assert bench.run("lock", "spec.yaml").returncode == 0
    lock = loads((bench.folder / "spec.lock").read_text(), "spec.lock")
    (environment,) = lock.environments
    foreign = bench.own / f"envs/spec.local-{environment.digest.removeprefix('sha256:')[:12]}"
    (foreign / "conda-meta").mkdir(parents=True)
    (foreign / "conda-meta/history").write_text("somebody's own")
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"{foreign} already exists" in done.stderr
    assert "then move or remove it" in done.stderr
    assert (foreign / "conda-meta/history").read_text() == "somebody's own"
    bench.run("destroy", "spec.yaml", "--yes")
    assert (foreign / "conda-meta/history").exists()
    foreign.rename(foreign.with_name("moved"))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.root
def test_a_full_disk_is_said_and_the_next_run_goes_on(bench: Bench, conda: CondaChannel) -> None:
    require(
        "root",
        os.geteuid() == 0 and shutil.which("unshare") is not None,
        "a small disk is mounted in a namespace, which needs root and unshare",
    )
    bench.extra = {**conda.variables(), "PROVISION_CONDA": "py-rattler"}
    bench.spec(small_spec("gamma", extra=CONDA))
    assert bench.run("lock", "spec.yaml").returncode == 0
    bench.own.mkdir(mode=0o700)
    script = (
        f"mount -t tmpfs -o size=8m tmpfs {bench.own} && exec "
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
    assert "free up space" in done.stderr
    assert "Traceback" not in done.stderr
    again = bench.run("apply", "spec.yaml", "--yes")
    assert again.returncode == 0, again.stderr


FAKE = """#!/usr/bin/env python3
import json, pathlib, sys
words = sys.argv[1:]
listed = pathlib.Path(words[words.index("--file") + 1])
mode = oct(listed.stat().st_mode & 0o777)
pathlib.Path({log!r}).write_text(json.dumps([words[:3], listed.read_text(), mode]))
prefix = pathlib.Path(words[words.index("--prefix") + 1])
(prefix / "conda-meta").mkdir(parents=True)
(prefix / "conda-meta/history").write_text("")
for line in listed.read_text().splitlines()[1:{upto}]:
    name = line.partition("#")[0].rpartition("/")[2].removesuffix(".conda")
    (prefix / f"conda-meta/{{name}}.json").write_text("{{}}")
(prefix / "bin").mkdir()
(prefix / "bin/python").symlink_to({python!r})
sys.exit({code})
"""


def fake_conda(folder: Path, name: str = "conda", *, code: int = 0, upto: str = "") -> Path:
    """Write a program that records its arguments and makes what conda would, with our Python."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(
        FAKE.format(
            log=str(folder / "log.json"), python=shutil.which("python3"), code=code, upto=upto
        )
    )
    path.chmod(0o755)
    return path


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("name", "variable"), [("conda", ""), ("mamba", "CONDA_EXE"), ("micromamba", "MAMBA_EXE")]
)
def test_the_users_own_program_is_given_the_locked_files(
    bench: Bench, conda: CondaChannel, tmp_path: Path, name: str, variable: str
) -> None:
    own = fake_conda(tmp_path / "programs", name)
    bench.extra = {
        **conda.variables(),
        "PATH": f"{own.parent}{os.pathsep}{_path_without_conda()}",
        **({variable: str(own)} if variable else {}),
    }
    bench.spec(small_spec("gamma", extra=CONDA))
    assert bench.run("lock", "spec.yaml").returncode == 0
    plan = bench.run("plan", "spec.yaml")
    assert f"5 from conda, by {name}" in plan.stdout
    # The packages of the index cannot be installed into the caller's Python: any exit code is fine.
    bench.run("apply", "spec.yaml", "--yes")
    said, listed, mode = json.loads((own.parent / "log.json").read_text())
    assert (said, mode) == (["create", "--yes", "--quiet"], "0o600")
    rows = json.loads((bench.folder / "spec.lock").read_text())["conda"]
    assert listed.splitlines() == [
        "@EXPLICIT",
        *(f"{conda.address}/{row['subdir']}/{row['file']}#{row['md5']}" for row in rows),
    ]


@pytest.mark.long
def test_pixi_is_said_to_be_there_and_is_not_used(
    bench: Bench, conda: CondaChannel, tmp_path: Path
) -> None:
    pixi = fake_conda(tmp_path / "programs", "pixi")
    bench.extra = {**conda.variables(), "PATH": f"{pixi.parent}{os.pathsep}{_path_without_conda()}"}
    bench.spec(small_spec("gamma", extra=CONDA))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert (
        f"with py-rattler (no conda, mamba or micromamba was found; {pixi} "
        "creates environments only from projects, not from a list of files; "
        "py-rattler is" in said
    )
    assert not (pixi.parent / "log.json").exists()
    done = bench.run("plan", "spec.yaml", PROVISION_CONDA="pixi")
    assert (done.returncode, "pixi creates environments only from projects" in done.stderr) == (
        2,
        True,
    ), done.stderr
    assert "set PROVISION_CONDA to py-rattler" in done.stderr


def test_a_program_that_makes_something_else_or_fails_is_named(
    bench: Bench, conda: CondaChannel, tmp_path: Path
) -> None:
    bench.spec(small_spec("gamma", extra=CONDA))
    bench.extra = conda.variables()
    assert bench.run("lock", "spec.yaml").returncode == 0
    for folder, options, code, words in (
        ("a", {"upto": "-1"}, 1, "created an environment that differs"),
        ("b", {"code": 3}, 2, "could not create the environment"),
    ):
        own = fake_conda(tmp_path / folder, **options)  # type: ignore[arg-type]
        done = bench.run("apply", "spec.yaml", "--yes", PROVISION_CONDA=str(own))
        assert (done.returncode, words in done.stderr) == (code, True), done.stdout + done.stderr
        assert "PROVISION_CONDA=py-rattler" in done.stderr
    done = bench.run("plan", "spec.yaml", PROVISION_CONDA="/nowhere/conda")
    assert (done.returncode, "is not a program" in done.stderr) == (2, True), done.stderr


def test_without_the_extra_it_is_refused_before_anything_is_made(
    bench: Bench, conda: CondaChannel
) -> None:
    bench.extra = conda.variables()
    bench.spec(small_spec("gamma", extra=CONDA))
    assert bench.run("lock", "spec.yaml").returncode == 0
    world = RealSystem(bench.environment())
    spec = Spec.model_validate(yaml.safe_load((bench.folder / "spec.yaml").read_text()))
    lock = loads((bench.folder / "spec.lock").read_text(), "spec.lock")
    place = TargetContext(
        spec.for_target("local"), "local", "spec", bench.own, lock, world.platform()
    )
    have = DRIVERS["local"].observe(place, Ledger(create_empty_state("l")), world)
    said = [refusal.hint for refusal in DRIVERS["local"].refusals(place, replace(have, conda=None))]
    assert said == [install_command("conda")]
    assert DRIVERS["local"].refusals(place, have) == ()


@pytest.mark.long
def test_offline_takes_what_was_fetched_before(bench: Bench, conda: CondaChannel) -> None:
    with served(conda.folder) as address:
        applied(bench, conda, CONDA)
        shutil.rmtree(bench.folder / "home/.cache/provision/conda")
        bench.extra = {"PROVISION_CHANNEL_CONDA_FORGE": address, "PROVISION_CONDA": "py-rattler"}
        assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
        nothing = bench.run("apply", "spec.yaml", "--yes", "--offline")
        assert nothing.returncode == 2
        assert "not all conda files are in the cache" in nothing.stderr
        assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
        assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
    done = bench.run("apply", "spec.yaml", "--yes", "--offline")  # the server is gone
    assert done.returncode == 0, done.stderr
    assert (prefix(bench) / "conda-meta/history").exists()


def test_an_interrupt_ends_a_channel_that_does_not_answer(
    bench: Bench, conda: CondaChannel
) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def wait(_: str) -> None:
        asked.set()
        go_on.wait(300)

    bench.spec(small_spec("gamma", extra=CONDA))
    with served(conda.folder, wait) as address:
        child = bench.start("lock", "spec.yaml", PROVISION_CHANNEL_CONDA_FORGE=address)
        assert asked.wait(300)
        began = time.monotonic()
        child.send_signal(signal.SIGINT)
        try:
            _, said = child.communicate(timeout=600)
        finally:
            go_on.set()
    assert (child.returncode, time.monotonic() - began < 15) == (130, True), said
    assert not (bench.folder / "spec.lock").exists()
    assert "Traceback" not in said


def test_a_package_that_conda_brings_is_verified_in_its_version(
    bench: Bench, conda: CondaChannel
) -> None:
    bench.extra = {**conda.variables(), "PROVISION_CONDA": "py-rattler"}
    bench.spec(small_spec("gamma", "{name: alpha, source: conda}", extra=CONDA))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    expected = json.loads((bench.own / "reports/spec.local/expectations.json").read_text())
    assert {"name": "alpha", "version": "2.0"} in expected["packages"]
    assert expected["direct"] == ["alpha", "gamma"]
    noted = json.loads((prefix(bench) / "installed.json").read_text())
    assert noted["packages"]["alpha"]["provenance"] == "preinstalled"
    assert noted["packages"]["gamma"]["provenance"] == "hash-checked"
    assert (
        "files match the installation (by size and modification time)"
        in bench.run("plan", "spec.yaml").stdout
    )
    next(prefix(bench).glob("lib/python*/site-packages/alpha/__init__.py")).write_text(
        "__version__ = '6.6'\n"
    )
    done = bench.run("verify", "spec.yaml")
    assert done.returncode == 1, done.stdout
    assert "alpha/__init__.py was changed" in " ".join(done.stdout.split())
    plan = bench.run("plan", "spec.yaml").stdout
    assert "-/+  environment" in plan
    assert "alpha: alpha/__init__.py was changed" in plan


@pytest.mark.long
def test_what_conda_brings_under_another_name_is_known_by_its_files(
    bench: Bench, conda: CondaChannel
) -> None:
    """The channel's gizmo-base 1.0 contains the Python package gizmo 1.0.post1; no lock does."""
    bench.extra = {**conda.variables(), "PROVISION_CONDA": "py-rattler"}
    bench.spec(small_spec("gamma", extra=CONDA.replace("ffmpeg=7, needs-alpha", "gizmo-base")))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {
        row["id"]: (row["status"], row["message"])
        for row in json.loads((bench.own / "reports/spec.local/report.json").read_text())["checks"]
    }
    assert rows["P02"] == (
        "pass",
        (
            "all 2 locked packages are installed at their locked versions; 2 more conda "
            "packages match their locked files"
        ),
    )
    assert (rows["P03"][0], rows["P07"][0]) == ("pass", "pass")
    noted = json.loads((prefix(bench) / "installed.json").read_text())["packages"]["gizmo"]
    assert (noted["version"], noted["conda"]) == ("1.0.post1", "gizmo-base-1.0-pyh0_0")
    assert bench.run("plan", "spec.yaml", "--detailed-exitcode").returncode == 0, (
        "it was not added by hand"
    )
    (info,) = prefix(bench).resolve().glob("lib/python*/site-packages/gizmo-*.dist-info")
    (info / "METADATA").write_text(
        (info / "METADATA").read_text().replace("Version: 1.0.post1", "Version: 1.5")
    )
    done = bench.run("verify", "spec.yaml")
    assert (
        done.returncode,
        "gizmo 1.5, locked conda file has 1.0.post1" in " ".join(done.stdout.split()),
    ) == (1, True), done.stdout
    info.rename(info.with_name("gizmo-1.5.dist-info"))
    assert "gizmo is 1.5, not 1.0.post1" in " ".join(bench.run("plan", "spec.yaml").stdout.split())


@pytest.mark.long
def test_a_torch_that_conda_did_not_really_bring_is_not_green(
    bench: Bench, conda: CondaChannel, pytorch: PyTorch
) -> None:
    bench.extra = {**conda.variables(), **pytorch.offline(), "PROVISION_CONDA": "py-rattler"}
    bench.spec(
        small_spec(
            "{name: torch, version: ==2.13.0, source: conda}",
            extra=CONDA.replace("ffmpeg=7, needs-alpha", "ffmpeg"),
        )
    )
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "torch is not installed, locked 2.13.0" in " ".join(done.stdout.split())


def test_a_package_that_never_fitted_its_record_is_noted(tmp_path: Path) -> None:
    folder = tmp_path / "lib/python3.11/site-packages"
    make_wheel(tmp_path, "alpha", "1.0")
    with zipfile.ZipFile(tmp_path / "alpha-1.0-py3-none-any.whl") as archive:
        archive.extractall(folder)
    before: dict[str, object] = {"packages": {}, "counts": {"hash-checked": 0}, "notes": []}
    noted = with_conda_packages(before, tmp_path, "3.11")["packages"]["alpha"]
    assert {
        "version": "1.0",
        "provenance": "preinstalled",
        "files_checked": 3,
    }.items() <= noted.items()
    assert "record_fits" not in noted
    (folder / "alpha/__init__.py").write_text("#!/a/prefix/that/conda/wrote\n")
    assert (
        with_conda_packages(before, tmp_path, "3.11")["packages"]["alpha"]["record_fits"] is False
    )
    rows = [
        {"_path": "site-packages/alpha/a.so", "sha256": "0", "sha256_in_prefix": "1"},
        {
            "_path": "lib/python3.11/site-packages/alpha/b.py",
            "prefix_placeholder": "/opt/placehold",
        },
        {"_path": "bin/alpha", "path_type": "unix_python_entry_point"},
        {"_path": "site-packages/alpha/c.py", "sha256": "0", "sha256_in_prefix": "0"},
    ]
    files = ["lib/python3.11/site-packages/alpha-1.0.dist-info/METADATA"]
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta/alpha-py-1.0-h0.json").write_text(
        json.dumps({"files": files, "paths_data": {"paths": rows}})
    )
    (tmp_path / "conda-meta/odd-1-h0.json").write_text('{"files": 3}')
    noted = with_conda_packages(before, tmp_path, "3.11")["packages"]["alpha"]
    assert (noted["conda"], "record_fits" in noted) == ("alpha-py-1.0-h0", False)
    package = "lib/python3.11/site-packages/alpha"
    assert noted["remade"] == [
        "bin/alpha",
        f"{package}/__init__.py",
        f"{package}/a.so",
        f"{package}/b.py",
    ]


def test_credentials_of_a_mirror_are_sent_there_and_are_in_no_file(
    bench: Bench, conda: CondaChannel
) -> None:
    sent: list[str | None] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(self.headers.get("Authorization"))
            super().do_GET()

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(conda.folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    bench.spec(small_spec("gamma", extra=CONDA))
    mirror = address.replace("://", "://someone:s3cr3t-of-mine@")
    done = bench.run(
        "apply",
        "spec.yaml",
        "--yes",
        PROVISION_CHANNEL_CONDA_FORGE=mirror,
        PROVISION_CONDA="py-rattler",
    )
    server.shutdown()
    server.server_close()
    assert done.returncode == 0, done.stderr
    word = base64.b64encode(b"someone:s3cr3t-of-mine")
    assert set(sent) == {f"Basic {word.decode()}"}
    assert "s3cr3t" not in done.stdout + done.stderr
    held = {path: path.read_bytes() for path in bench.folder.rglob("*") if path.is_file()}
    assert [path for path, content in held.items() if b"s3cr3t" in content or word in content] == []
    record = json.loads((prefix(bench) / "conda-meta/ffmpeg-7.1.1-h0_gpl.json").read_text())
    assert record["url"].endswith("/conda-forge/linux-64/ffmpeg-7.1.1-h0_gpl.conda")
    assert address not in json.dumps(record)
