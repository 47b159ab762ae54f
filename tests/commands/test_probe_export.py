"""provision probe export: the probe is carried to a machine by hand, runs there on its own, and its
report comes home.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.report_json import canonical_digest, compact, expand, to_canonical_json
from tests.rig import MINOR, Bench, make_index, make_wheel, small_spec

TWO = "targets:\n  local: {kind: local}\n  there: {kind: local}\n"


@dataclass
class Carry:
    """A project whose probe was exported into `folder`, and an environment as the lock says, made
    by hand elsewhere.
    """

    bench: Bench
    folder: Path
    python: Path

    def verify(
        self, *flags: str, python: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        command = [
            python or str(self.python),
            *flags,
            "probe.pyz",
            "verify",
            "--expectations",
            "expectations.json",
            "--out",
            "report.json",
        ]
        environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            **variables,
        }
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    @property
    def report(self) -> dict[str, Any]:
        document: dict[str, Any] = expand(json.loads((self.folder / "report.json").read_bytes()))
        return document


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Carry:
    folder = tmp_path_factory.mktemp("carry")
    wheels = tuple(make_wheel(folder / "wheels", "alpha", version) for version in ("1.0", "2.0"))
    index = make_index(folder / "index", wheels)
    (folder / "project/home").mkdir(parents=True)
    bench = Bench(folder / "project", index)
    bench.spec(small_spec("alpha"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    done = bench.run("probe", "export", str(folder / "usb"), "--spec", "spec.yaml")
    assert done.returncode == 0, done.stderr
    environment = folder / "elsewhere"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    with zipfile.ZipFile(wheels[-1]) as wheel:
        wheel.extractall(next(environment.glob("lib/python*/site-packages")))
    return Carry(bench, folder / "usb", environment / "bin/python")


@pytest.fixture
def carry(origin: Carry, tmp_path: Path) -> Carry:
    project, usb = tmp_path / "project", tmp_path / "usb"
    shutil.copytree(origin.bench.folder, project)
    shutil.copytree(origin.folder, usb)
    return Carry(Bench(project, origin.bench.index), usb, origin.python)


def test_the_folder_holds_all_that_is_needed_and_says_how_to_use_it(carry: Carry) -> None:
    assert sorted(path.name for path in carry.folder.iterdir()) == [
        "README.txt",
        "expectations.json",
        "probe.pyz",
    ]
    text = (carry.folder / "README.txt").read_text()
    assert len(text.splitlines()) <= 20
    assert "PYTHON probe.pyz verify --expectations expectations.json --out report.json" in text
    assert "provision report add report.json --spec spec.yaml --target local" in text
    assert json.loads((carry.folder / "expectations.json").read_bytes())["python"] == {
        "version": MINOR,
        "prefix": "",
    }


def test_its_report_comes_home_and_changes_no_verdict(carry: Carry) -> None:
    ran = carry.verify()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    done = carry.bench.run(
        "report", "add", str(carry.folder / "report.json"), "--spec", "spec.yaml"
    )
    assert done.returncode == 0, done.stderr
    assert "VERIFIED" in done.stdout.upper()
    kept = carry.bench.own / "carried/spec.local/report.json"
    assert expand(json.loads(kept.read_bytes())) == carry.report
    assert kept.with_suffix(".html").exists()
    assert not (carry.bench.own / "state.json").exists()
    status = carry.bench.run("status", "spec.yaml")
    assert "verified at" not in status.stdout
    parity = carry.bench.run("parity", "spec.yaml")
    assert parity.returncode == 3, parity.stdout
    assert "nothing to compare" in parity.stdout
    assert "from an exported probe" in parity.stdout


def test_another_environment_fails_there(carry: Carry, tmp_path: Path) -> None:
    shutil.copytree(carry.python.parents[1], tmp_path / "moved", symlinks=True)
    shutil.rmtree(next((tmp_path / "moved").glob("lib/python*/site-packages/alpha-*")))
    ran = carry.verify(python=str(tmp_path / "moved/bin/python"))
    assert ran.returncode == 1
    assert "alpha is not installed" in ran.stdout
    done = carry.bench.run(
        "report", "add", str(carry.folder / "report.json"), "--spec", "spec.yaml"
    )
    assert done.returncode == 1
    parity = carry.bench.run("parity", "spec.yaml", "--output-format", "json")
    assert parity.returncode == 1
    assert json.loads(parity.stdout)["result"] == "differs"


def test_the_stages_of_the_standard_library_run_on_every_promised_python(
    carry: Carry, pythons: list[str]
) -> None:
    carry.bench.spec(small_spec("alpha", extra="verify: {tier: inventory}\n"))
    assert (
        carry.bench.run("probe", "export", str(carry.folder), "--spec", "spec.yaml").returncode == 0
    )
    for python in pythons:
        ran = carry.verify("-I", "-S", python=python)
        assert ran.returncode == 1, (
            ran.stdout + ran.stderr
        )  # another Python, and nothing of the lock in it
        assert [stage["name"] for stage in carry.report["stages"]] == ["host", "packages"]
        assert all(stage["exit"] == 0 for stage in carry.report["stages"])
        assert "unknown" not in {
            check["status"] for check in carry.report["checks"] if check["id"].startswith("H")
        }
        bare = subprocess.run(
            [python, "-I", "-S", "probe.pyz", "env"],
            cwd=carry.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert (bare.returncode, bare.stderr) == (0, "")
        assert bare.stdout.startswith("system ")


def test_a_python_that_is_too_old_is_told_so(carry: Carry) -> None:
    found = (shutil.which(f"python3.{minor}") for minor in (9, 8, 7))
    old = next(
        (
            path
            for path in found
            if path
            and not subprocess.run([path, "-c", ""], check=False, capture_output=True).returncode
        ),
        None,
    )
    if old is None:
        pytest.skip("no Python older than 3.10 was found")
    ran = carry.verify(python=old)
    assert ran.returncode == 2
    assert ran.stderr.startswith("probe: this is Python 3.")
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("put", "said"),
    [
        ({"thesis.docx": "x"}, "it contains other files: thesis.docx"),
        ({"README.txt": "mine"}, "it contains other files: README.txt"),
        ({"probe.pyz": "x"}, "it contains other files: probe.pyz"),
    ],
)
def test_a_folder_of_someone_else_is_left_alone(
    carry: Carry, tmp_path: Path, put: dict[str, str], said: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in put.items():
        (folder / name).write_text(text)
    done = carry.bench.run("probe", "export", str(folder), "--spec", "spec.yaml")
    assert done.returncode == 2
    assert said in done.stderr
    assert "choose an empty folder" in done.stderr
    assert {path.name: path.read_text() for path in folder.iterdir()} == put


def test_an_export_is_made_anew_in_its_own_folder(carry: Carry) -> None:
    before = {
        name: (carry.folder / name).read_bytes()
        for name in ("probe.pyz", "expectations.json", "README.txt")
    }
    (carry.folder / "report.json").write_text("{}")
    assert (
        carry.bench.run("probe", "export", str(carry.folder), "--spec", "spec.yaml").returncode == 0
    )
    assert {name: (carry.folder / name).read_bytes() for name in before} == before
    file = carry.folder / "README.txt"
    assert (
        "is a file" in carry.bench.run("probe", "export", str(file), "--spec", "spec.yaml").stderr
    )


@pytest.mark.parametrize(
    ("spec", "words", "code", "said"),
    [
        (small_spec("alpha", extra=TWO), (), 2, "the spec has several targets"),
        (small_spec("alpha"), ("--target", "there"), 2, "the spec has no target `there`"),
        (small_spec("alpha<2"), (), 1, "the spec has changed since the lock was created"),
        ("gpu: [", (), 1, "spec.yaml"),
    ],
)
def test_bad_questions(
    carry: Carry, tmp_path: Path, spec: str, words: tuple[str, ...], code: int, said: str
) -> None:
    carry.bench.spec(spec)
    done = carry.bench.run("probe", "export", str(tmp_path / "new"), "--spec", "spec.yaml", *words)
    assert done.returncode in (1, 2)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert not (tmp_path / "new").exists()


def resealed(document: dict[str, Any]) -> bytes:
    """The bytes of a document whose own digest was made to fit again, as a forger would."""
    document.pop("digests", None)
    identity = {
        one["key"]: one["value"] for one in document["readings"] if one["class"] == "identity"
    }
    document["digests"] = {
        "identity": canonical_digest(identity),
        "report": canonical_digest(compact(document)),
    }
    return (to_canonical_json(compact(document)) + "\n").encode()


def test_a_forged_report_is_refused_and_nothing_is_written(carry: Carry) -> None:
    assert carry.verify().returncode == 0
    genuine = carry.report
    forgeries: list[tuple[dict[str, Any], str]] = []

    def forged(said: str, change: Any) -> None:
        document = json.loads(json.dumps(genuine))
        change(document)
        forgeries.append((document, said))

    forged(
        "contradicts itself",
        lambda one: next(check for check in one["checks"] if check["id"] == "P02").update(
            status="fail"
        ),
    )
    forged("its lock digest is", lambda one: one["lock"].update(digest="sha256:0"))
    forged("its spec name is", lambda one: one["spec"].update(name="other"))
    forged("its machine is simulated", lambda one: one["subject"].update(simulated=["the GPU"]))
    forged(
        "a timestamp in the future",
        lambda one: one["subject"].update(created_utc="2099-01-01T00:00:00Z"),
    )
    forged(
        "was written by a different version of the probe",
        lambda one: one["tool"].update(probe_sha256=hashlib.sha256(b"").hexdigest()),
    )
    for document, said in forgeries:
        path = carry.bench.folder / "forged.json"
        path.write_bytes(resealed(document))
        done = carry.bench.run("report", "add", "forged.json", "--spec", "spec.yaml")
        assert done.returncode == 2, (said, done.stdout)
        assert said in done.stderr, (said, done.stderr)
        assert not (carry.bench.own / "carried").exists()


def test_a_report_of_an_earlier_spec_is_no_answer(carry: Carry) -> None:
    assert carry.verify().returncode == 0
    carry.bench.spec(small_spec("alpha", extra="requires: {ram: 1MiB}\n"))
    done = carry.bench.run(
        "report", "add", str(carry.folder / "report.json"), "--spec", "spec.yaml"
    )
    assert done.returncode == 2
    assert "provision probe export" in done.stderr
    assert not (carry.bench.own / "carried").exists()


def test_the_report_is_private_in_the_project(carry: Carry) -> None:
    assert carry.verify().returncode == 0
    assert (
        carry.bench.run(
            "report", "add", str(carry.folder / "report.json"), "--spec", "spec.yaml"
        ).returncode
        == 0
    )
    assert (carry.bench.own / "carried/spec.local/report.json").stat().st_mode & 0o077 == 0
    assert (carry.bench.own / ".gitignore").read_text().strip() == "*"
