"""The installer on a device: variables that lie about, other installers' markers, no network, and
questions that cannot be asked.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import provision
from provision.verification.device_files import installer_zipapp, probe_zipapp
from tests.agent.install.bench import Device, copy_of_python
from tests.rig import MINOR, served

ISLAND = Path(provision.__file__).parent / "installing"
NOWHERE = "http://127.0.0.1:9/simple"


def test_it_runs_as_a_file_on_every_promised_python(device: Device, pythons: list[str]) -> None:
    for python in pythons:
        device.uv("venv", "--quiet", "--clear", "--python", python, str(device.folder / "env"))
        minor = subprocess.run(
            [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for told in ("1 hash-checked\n", "1 preinstalled\n"):
            done = device.install(
                device.document("alpha==1.0", python_version=minor),
                interpreter=(python, "-I", "-S"),
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, told, ""), python


def test_without_a_path_it_installs_for_the_python_that_runs_it(device: Device) -> None:
    document = device.document("alpha==1.0")
    del document["python"]
    done = device.install(document, interpreter=(str(device.python), "-I"))
    assert done.returncode == 0, done.stderr
    assert (device.packages / "alpha").is_dir()


def test_it_runs_as_a_module_of_the_source_tree(device: Device) -> None:
    (device.folder / "install.json").write_text(json.dumps(device.document("alpha==1.0")))
    argv = [
        sys.executable,
        "-m",
        "provision.agent.install",
        "install",
        "--document",
        "install.json",
        "--result",
        "installed.json",
    ]
    done = subprocess.run(
        argv,
        cwd=device.folder,
        env=device.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stdout) == (0, "1 hash-checked\n"), done.stderr


def test_its_file_has_the_same_bytes_every_time_and_is_not_the_probes() -> None:
    assert installer_zipapp() == installer_zipapp()
    assert installer_zipapp() != probe_zipapp()


@pytest.mark.parametrize("mode", ["own", "shared"])
def test_variables_that_lie_about_decide_nothing(device: Device, mode: str) -> None:
    missing = "/backend-container/containers/requirements.constraints"
    foreign = dict.fromkeys(
        (
            "UV_CONSTRAINT",
            "UV_BUILD_CONSTRAINT",
            "UV_OVERRIDE",
            "PIP_CONSTRAINT",
            "PIP_REQUIREMENT",
            "UV_CONFIG_FILE",
        ),
        missing,
    )
    foreign |= {
        "UV_SYSTEM_PYTHON": "true",
        "UV_NO_INDEX": "1",
        "UV_TORCH_BACKEND": "cu128",
        "UV_REQUIRE_HASHES": "0",
        "UV_INDEX_URL": NOWHERE,
    }
    foreign |= {
        "UV_PYTHON": "3.8",
        "UV_EXCLUDE_NEWER": "2001-01-01",
        "PYTHONPATH": "/foreign",
        "VIRTUAL_ENV": "/foreign",
        "UV_NO_BINARY": "1",
    }
    done = device.install(
        device.document("alpha==1.0", mode=mode), interpreter=(sys.executable,), **foreign
    )
    assert done.returncode == 0, done.stderr
    assert device.provenance() == {"alpha": "hash-checked"}


@pytest.fixture
def system(device: Device) -> Path:
    return copy_of_python(device.folder / "system")


def test_the_marker_of_another_installer_is_passed_over_only_where_it_is(
    device: Device, system: Path
) -> None:
    document = device.document("alpha==1.0", python=str(system))
    done = device.install(document)
    assert done.returncode == 0, done.stderr
    assert device.provenance() == {"alpha": "hash-checked"}
    assert list((device.folder / "system").rglob("alpha-1.0.dist-info"))
    own = device.install({**document, "mode": "own"})
    assert own.returncode == 2, "what is not ours is never synced"
    assert "externally managed" in own.stderr
    assert list((device.folder / "system").rglob("alpha-1.0.dist-info"))


def test_without_network_it_installs_what_is_in_the_cache(device: Device) -> None:
    with served(device.folder / "index") as address:
        document = device.document("alpha==1.0", mode="own", indexes={"pypi": address})
        assert device.install(document).returncode == 0
    device.uv("venv", "--quiet", "--clear", str(device.folder / "env"))
    done = device.install(document, "--offline")
    assert done.returncode == 0, done.stderr
    assert device.provenance() == {"alpha": "hash-checked"}
    device.uv("venv", "--quiet", "--clear", str(device.folder / "env"))
    shutil.rmtree(device.folder / "cache")
    for words, said in ((("--offline",), "network access is off"), ((), "uv failed")):
        cold = device.install(document, *words)
        assert cold.returncode == 2, cold.stderr
        assert said in cold.stderr
        assert "alpha" in cold.stderr
    assert list(device.packages.glob("*.dist-info")) == []


def test_what_is_there_already_needs_no_network(device: Device) -> None:
    device.bring("alpha==1.0")
    done = device.install(device.document("alpha==1.0", indexes={"pypi": NOWHERE}))
    assert (done.returncode, done.stdout) == (0, "1 preinstalled\n"), done.stderr


def test_a_password_is_not_in_what_is_said(device: Device) -> None:
    done = device.install(
        device.document("alpha==1.0", indexes={"pypi": "http://jane:pass-w0rd@127.0.0.1:9/simple"})
    )
    assert done.returncode == 2
    assert "pass-w0rd" not in done.stdout + done.stderr


def test_packages_of_another_python_are_refused(device: Device) -> None:
    done = device.install(device.document("alpha==1.0", python_version="3.99"))
    assert done.returncode == 1
    assert f"is Python {MINOR}" in done.stderr
    assert "locked for Python 3.99" in done.stderr


def test_a_version_that_is_not_on_the_index_does_not_hold(device: Device) -> None:
    document = device.document("alpha==1.0")
    document["packages"][0]["version"] = "7.7"
    done = device.install(document)
    assert done.returncode == 1
    assert "alpha==7.7" in done.stderr


PIN: dict[str, Any] = {
    "name": "alpha",
    "version": "1.0",
    "index": "pypi",
    "files": {"alpha-1.0.whl": "0" * 64},
}


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": "provision.install/9"}, "for a different version of the installer"),
        ({"mode": "sync"}, "mode must be own or shared"),
        ({"mode": ["own"]}, "mode must be own or shared"),
        ({"python": "/no/python"}, "cannot start the interpreter /no/python"),
        ({"python": "/bin/true"}, "did not report its package folders"),
        ({"python": 3}, "python must be a string"),
        ({"python_version": None}, "python_version must be a version"),
        ({"audit": "none"}, "audit must be full or size"),
        ({"packages": {}}, "packages must be a list"),
        ({"packages": ["alpha"]}, "packages[0] must be an object"),
        ({"packages": [{**PIN, "name": "al pha"}]}, "packages[0].name must be"),
        ({"packages": [{**PIN, "name": "--reinstall"}]}, "packages[0].name must be"),
        ({"packages": [{**PIN, "version": "1.0 --hash=x"}]}, "packages[0].version must be"),
        ({"packages": [{**PIN, "files": {}}]}, "packages[0].files is empty"),
        (
            {"packages": [{**PIN, "files": {"a.whl": "md5"}}]},
            "packages[0].files.a.whl must be a sha256",
        ),
        (
            {"packages": [{**PIN, "index": "bound"}]},
            "alpha comes from the index bound, which has no URL",
        ),
        ({"packages": [PIN, PIN]}, "alpha is listed twice"),
        ({"indexes": {"pypi": None}}, "indexes.pypi must be a string"),
        ({"links": ["a\nb"]}, "links[0] must be a string on one line"),
    ],
)
def test_a_bad_document_is_refused_with_the_place_and_without_a_traceback(
    device: Device, changes: dict[str, Any], words: str
) -> None:
    done = device.install({**device.document("alpha==1.0"), **changes})
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert not done.stdout
    assert list(device.packages.glob("*.dist-info")) == []


def test_a_file_that_is_no_document_and_a_place_that_cannot_be_written(device: Device) -> None:
    def ask(document: Path, result: Path, *words: str) -> str:
        argv = [
            sys.executable,
            str(device.folder / "installer.pyz"),
            "install",
            "--document",
            str(document),
            "--result",
            str(result),
            *words,
        ]
        done = subprocess.run(
            argv,
            env=device.environment(PATH="/nowhere"),
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr

    good, bad = device.folder / "good.json", device.folder / "bad.json"
    good.write_text(json.dumps(device.document("alpha==1.0")))
    bad.write_bytes(b"{\xff")
    out = device.folder / "installed.json"
    assert "cannot read the document" in ask(device.folder / "absent.json", out)
    assert "damaged" in ask(bad, out)
    bad.write_text("[" * 100_000)
    assert "damaged" in ask(bad, out)
    assert "it is a folder" in ask(good, device.folder)
    assert "cannot write the result" in ask(good, Path("/no/such/result.json"))
    assert "cannot start /no/uv" in ask(good, out, "--uv", "/no/uv")


def test_a_machine_without_uv_says_how_to_get_it(device: Device) -> None:
    lonely = device.folder / "env/bin/python"
    (device.folder / "install.json").write_text(json.dumps(device.document("alpha==1.0")))
    argv = [
        str(lonely),
        str(device.folder / "installer.pyz"),
        "install",
        "--document",
        "install.json",
        "--result",
        "out.json",
    ]
    done = subprocess.run(
        argv,
        cwd=device.folder,
        env=device.environment(PATH="/nowhere"),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 2
    assert "uv is not installed" in done.stderr
    assert "pip install uv" in done.stderr


def test_another_copy_that_comes_first_is_told(device: Device) -> None:
    (device.packages / "first.pth").write_text(
        f"import sys; sys.path.insert(0, {str(device.folder / 'first')!r})\n"
    )
    (device.folder / "first/alpha-0.9.dist-info").mkdir(parents=True)
    done = device.install(device.document("alpha==1.0"))
    assert done.returncode == 1
    assert f"alpha 1.0: found 0.9 in {device.folder / 'first'}" in done.stderr
