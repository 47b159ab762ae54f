"""Where uv comes from, pip where there is none, system packages, and an environment of its own."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.agent.install.bench import UV, sha256
from tests.agent.notebook.bench import MINOR, Runtime
from tests.conda_rig import bundled_wheel
from tests.rig import make_index, make_source, make_wheel


def with_pip(runtime: Runtime) -> None:
    shutil.unpack_archive(bundled_wheel("pip"), runtime.packages, "zip")


def path_without_uv(runtime: Runtime) -> dict[str, str]:
    return {"PATH": f"{runtime.folder}/bin:/usr/bin:/bin"}


@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("uv", path="/usr/bin:/bin") is not None, reason="the system has a uv of its own"
)
def test_pip_installs_the_same_files_where_no_uv_can_be_had(runtime: Runtime) -> None:
    with_pip(runtime)
    runtime.bring("gamma==1.0", "delta==1.0")
    (runtime.packages / "delta/__init__.py").write_text("longer than it was\n" * 9)
    folder = runtime.lay_out(runtime.document("alpha==1.0", "gamma==2.0", "delta==1.0", uv=None))
    lying = {
        "PIP_CONSTRAINT": "/no/such",
        "PIP_INDEX_URL": "http://127.0.0.1:9",
        "PIP_TARGET": "/no/where",
    }
    done = runtime.start(folder, **path_without_uv(runtime), **lying)
    assert done.returncode == 0, done.stderr + done.stdout
    assert (
        "installing with pip: uv is not installed, and the cell does not specify a version"
        in done.stdout
    )
    assert runtime.status["counts"] == {"hash-checked": 1, "preinstalled": 0, "reinstalled": 2}
    assert runtime.start(folder, **path_without_uv(runtime)).stdout.count("nothing to install") == 1


@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("uv", path="/usr/bin:/bin") is not None, reason="the system has a uv of its own"
)
def test_pip_checks_hashes_and_builds_nothing(runtime: Runtime) -> None:
    with_pip(runtime)
    document = runtime.document("alpha==1.0", uv=None)
    document["install"]["packages"][0]["files"] = {"alpha-1.0-py3-none-any.whl": 64 * "0"}
    done = runtime.start(runtime.lay_out(document), **path_without_uv(runtime))
    assert "pip could not install the locked packages; nothing was changed" in done.stderr
    assert not (runtime.packages / "alpha").exists()
    source = make_source(runtime.folder / "wheels", "omega", "1.0")
    built = runtime.document("alpha==1.0", "omega==1.0", uv=None)
    built["install"]["packages"][1]["files"] = {source.name: sha256(source)}
    assert (
        "only uv can build locked source distributions: omega"
        in runtime.start(runtime.lay_out(built), **path_without_uv(runtime)).stderr
    )


@pytest.mark.skipif(
    shutil.which("uv", path="/usr/bin:/bin") is not None, reason="the system has a uv of its own"
)
def test_the_locked_uv_is_fetched_by_its_hash(runtime: Runtime) -> None:
    with_pip(runtime)
    runner = f"#!{sys.executable}\nimport os, sys\nos.execv({UV!r}, ['uv', *sys.argv[1:]])\n"
    wheel = uv_wheel(runtime, runner)
    document = runtime.document(
        "alpha==1.0", uv={"version": "0.13.9", "files": {wheel.name: sha256(wheel)}}
    )
    done = runtime.start(runtime.lay_out(document), **path_without_uv(runtime))
    assert done.returncode == 0, done.stderr
    assert "downloaded uv 0.13.9, checked against its hash" in done.stdout
    other = runtime.document("beta==1.0", uv={"version": "0.13.9", "files": {wheel.name: 64 * "0"}})
    done = runtime.start(runtime.lay_out(other), **path_without_uv(runtime))
    assert done.returncode == 0, done.stderr
    assert "uv 0.13.9 is not available" in done.stdout
    assert "installing with pip" in done.stdout


def uv_wheel(runtime: Runtime, program: str) -> Path:
    """A wheel that is called uv and brings a program of that name."""
    wheel = make_wheel(runtime.folder / "wheels", "uv", "0.13.9")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["uv-0.13.9.data/scripts/uv"] = program.encode()
    listed = (
        base64.urlsafe_b64encode(hashlib.sha256(program.encode()).digest()).rstrip(b"=").decode()
    )
    files["uv-0.13.9.dist-info/RECORD"] += (
        f"\nuv-0.13.9.data/scripts/uv,sha256={listed},{len(program)}".encode()
    )
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, content)
    runtime.wheels["uv==0.13.9"] = wheel
    runtime.index = make_index(runtime.folder / "index", (*runtime.wheels.values(),))
    return wheel


def test_an_old_uv_is_not_used(runtime: Runtime) -> None:
    runtime.program("uv", 'case "$1" in --version) echo "uv 0.4.30";; *) exit 9;; esac')
    done = runtime.start(
        runtime.lay_out(runtime.document("alpha==1.0", uv=None)), **path_without_uv(runtime)
    )
    assert "installing with pip" in done.stdout


DPKG = (
    'for name in "$@"; do case $name in git) echo "git:amd64 installed";; gone) echo '
    '"gone config-files";; esac; done; exit 1'
)


def test_only_missing_system_packages_are_installed(runtime: Runtime) -> None:
    runtime.program("dpkg-query", DPKG)
    runtime.program("id", "echo 0")
    runtime.program("apt-get", f'echo "$@" >> {runtime.folder}/apt.txt')
    document = runtime.document("alpha==1.0", system_packages=["git", "gone", "ffmpeg"])
    done = runtime.start(runtime.lay_out(document))
    if os.geteuid() == 0:
        assert done.returncode == 0, done.stderr
        asked = (runtime.folder / "apt.txt").read_text()
        assert asked.startswith("install --quiet --quiet --yes --no-install-recommends -o ")
        assert asked.endswith(" -- gone ffmpeg\n")
    else:
        assert "only root can install them" in done.stderr
    assert "installing gone, ffmpeg" in done.stdout


def test_apts_own_words_are_shown_when_it_fails(runtime: Runtime) -> None:
    runtime.program("dpkg-query", DPKG)
    runtime.program(
        "apt-get",
        f'echo "$1" >> {runtime.folder}/apt.txt; [ "$1" = update ] || {{ echo "E: Unable '
        f'to locate package ffmpeg" >&2; exit 100; }}',
    )
    done = runtime.start(
        runtime.lay_out(runtime.document("alpha==1.0", system_packages=["ffmpeg"]))
    )
    if os.geteuid() == 0:
        assert "E: Unable to locate package ffmpeg" in done.stderr
        assert (runtime.folder / "apt.txt").read_text() == "install\nupdate\ninstall\n"
    assert runtime.status["stage"] == "system"
    assert not (runtime.packages / "alpha").exists()


def test_an_environment_of_its_own_leaves_the_image_alone(runtime: Runtime) -> None:
    runtime.in_kernel()
    runtime.bring("gamma==1.0")
    before = {
        path: path.read_bytes()
        for path in runtime.packages.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    folder = runtime.lay_out(
        runtime.document(
            "gamma==2.0", "ipykernel==2.0", isolation="venv", expectations__direct=["gamma"]
        )
    )
    done = runtime.cell(folder, before="import gamma, IPython")
    assert done.returncode == 0, done.stderr + done.stdout
    assert runtime.status["counts"] == {"hash-checked": 2, "preinstalled": 0, "reinstalled": 0}
    assert {
        path: path.read_bytes()
        for path in runtime.packages.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    } == before
    ran = runtime.cell(
        folder,
        "print(provision_cell.run(FOLDER, ['-c', 'import gamma, sys; "
        "print(gamma.__version__); sys.exit(4)']))",
    )
    assert ran.stdout == "2.0\nrun         python exited with code 4\n4\n", ran.stderr
    again = runtime.cell(folder)
    assert "stored report" in again.stdout
    assert "nothing to install" in again.stdout


def test_an_environment_can_have_another_python(runtime: Runtime, pythons: list[str]) -> None:
    minors = {
        python: subprocess.run(
            [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
        ).stdout.strip()
        for python in pythons
    }
    other = next(((python, minor) for python, minor in minors.items() if minor != MINOR), None)
    if other is None:
        pytest.skip("no Python of another version was found")
    python, minor = other
    real = subprocess.run(
        [python, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True
    ).stdout.strip()
    (runtime.folder / "bin" / f"python{minor}").symlink_to(real)
    changes = {
        "python": minor,
        "install__python_version": minor,
        "expectations__python": {"version": minor, "prefix": ""},
    }
    done = runtime.start(
        runtime.lay_out(runtime.document("alpha==1.0", isolation="venv", **changes))
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert runtime.status["outcome"] == "verified"


def test_a_python_that_is_nowhere_is_said(runtime: Runtime) -> None:
    changes = {"python": "3.99", "install__python_version": "3.99"}
    done = runtime.start(
        runtime.lay_out(runtime.document("alpha==1.0", isolation="venv", **changes))
    )
    assert "Python 3.99 is not installed, and uv cannot download it" in done.stderr
    assert runtime.status["stage"] == "install"
