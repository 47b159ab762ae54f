"""provision capture --spec and provision import of a capture: an environment as a spec."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import uv
import yaml

from tests.rig import MINOR, Bench, make_index, make_wheel, small_spec

TOKEN = "s3cr3t-t0ken"


def locked(bench: Bench, name: str) -> Mapping[str, str]:
    lock = yaml.safe_load((bench.folder / name).read_text())
    return {one["name"]: one["version"] for one in lock["packages"]}


def install(bench: Bench, python: Path, *words: str) -> None:
    command = [uv.find_uv_bin(), "pip", "install", "--python", str(python), *words]
    environment = bench.environment(UV_DEFAULT_INDEX=bench.index)
    done = subprocess.run(
        command, cwd=bench.folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def environment(bench: Bench) -> Path:
    """An environment that was made by applying a spec: alpha 1.0, because beta limits it."""
    bench.spec(small_spec("beta==1.0", "alpha"))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    return bench.own / "envs/spec.local"


def test_the_spec_of_an_applied_environment_locks_the_same_versions(
    bench: Bench, environment: Path
) -> None:
    done = bench.run("capture", "--python", str(environment), "--spec", "-o", "again.yaml")

    assert done.returncode == 0, done.stderr
    assert "wrote again.yaml" in done.stdout
    text = (bench.folder / "again.yaml").read_text()
    assert "packages:\n  - beta==1.0\n" in text
    assert f'python: "{MINOR}"\n' in text
    assert "alpha: left out" in done.stderr
    lint = bench.run("lint", "again.yaml")
    assert (lint.returncode, "error" in lint.stdout) == (0, False), lint.stdout
    assert bench.run("lock", "again.yaml").returncode == 0
    assert locked(bench, "again.lock") == locked(bench, "spec.lock")
    assert locked(bench, "again.lock") == {"alpha": "1.0", "beta": "1.0"}


def test_a_stored_capture_gives_the_same_spec(bench: Bench, environment: Path) -> None:
    direct = bench.run("capture", "--python", str(environment), "--spec")
    bench.run("capture", "--python", str(environment), "-o", "kept.json")
    stored = bench.run("import", "kept.json")

    assert (direct.returncode, stored.returncode) == (0, 0)
    assert stored.stdout == direct.stdout.replace("from capture", "from kept.json")
    captured, _, rest = direct.stderr.partition("\n")
    assert captured.startswith("captured: Python 3.")
    assert captured.endswith(f"in {environment}/bin/python")
    assert stored.stderr == rest.replace("capture (capture)", "kept.json (capture)").replace(
        "  capture:", "  kept.json:"
    )
    document = json.loads(bench.run("import", "kept.json", "--output-format", "json").stdout)
    assert document["files"][0]["format"] == "capture"
    assert [one["requirement"] for one in document["packages"]] == ["beta==1.0"]


@pytest.mark.long
def test_packages_from_folders_repositories_and_urls_are_named(
    bench: Bench, environment: Path, tmp_path: Path
) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "setup.py").write_text("")
    (ours / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (ours / "backend.py").write_text(BACKEND)
    install(bench, environment / "bin/python", "-e", str(ours))
    wheel = make_wheel(tmp_path / "elsewhere", "private", "3.0", requires=("alpha",))
    index = make_index(tmp_path / "other", (make_wheel(tmp_path / "w", "delta", "4.0"),))
    install(bench, environment / "bin/python", str(wheel))
    install(bench, environment / "bin/python", "delta", "--index", index)
    done = bench.run("capture", "--python", str(environment), "--spec")

    assert done.returncode == 0, done.stderr
    assert "ours 0.1 is not imported: it was installed in editable mode" in done.stderr
    assert "private 3.0 is not imported: it was installed from a file" in done.stderr
    assert "packages:\n  - beta==1.0\n  - delta==4.0\n" in done.stdout
    assert str(tmp_path) not in done.stdout + done.stderr.partition("\n")[2]


BACKEND = """
import zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "ours-0.1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as archive:
        info = "ours-0.1.dist-info"
        archive.writestr("ours.pth", ".")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: ours\\nVersion: 0.1\\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        archive.writestr(f"{info}/RECORD", "")
    return name
"""


def test_the_token_of_a_url_is_in_no_capture_and_no_spec(bench: Bench, environment: Path) -> None:
    site = next((environment / "lib").glob("python*/site-packages"))
    url = {"url": f"https://u:{TOKEN}@example.com/beta.git", "vcs_info": {"vcs": "git"}}
    (site / "beta-1.0.dist-info/direct_url.json").write_text(json.dumps(url))
    capture = bench.run("capture", "--python", str(environment), SECRET_TOKEN=TOKEN)
    done = bench.run("capture", "--python", str(environment), "--spec", SECRET_TOKEN=TOKEN)

    assert "beta 1.0 is not imported: it was installed from a repository" in done.stderr
    assert "  - alpha==1.0\n" in done.stdout
    assert TOKEN not in capture.stdout + capture.stderr + done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--spec", "--print-cell"), "--print-cell and --spec cannot be combined"),
        (("--spec", "-o", "a.json"), "a.json is not a valid name for a spec"),
        (("--spec", "-o", "there.yaml"), "there.yaml already exists"),
        (("--spec", "--python", "nowhere/python"), "cannot start"),
    ],
)
def test_bad_input_is_refused(bench: Bench, words: tuple[str, ...], says: str) -> None:
    (bench.folder / "there.yaml").write_text("kept")
    done = bench.run("capture", *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert (bench.folder / "there.yaml").read_text() == "kept"


def test_a_damaged_capture_is_refused_by_import(bench: Bench) -> None:
    bench.run("capture", "--python", sys.executable, "-o", "c.json")
    text = (bench.folder / "c.json").read_text()
    for content, says in (
        (text[: len(text) // 2], "c.json is damaged"),
        (text.replace("capture/1", "capture/9"), "provision.capture/9, which this version"),
        (text.replace('"packages": {', '"packages": {"a": 3, '), "package a has no version"),
        (text.replace("capture/1", "env/1"), "the format of c.json is unknown"),
    ):
        (bench.folder / "c.json").write_text(content)
        done = bench.run("import", "c.json", "-o", "out.yaml")
        assert (done.returncode, done.stdout) == (2, ""), says
        assert says in done.stderr
        assert "Traceback" not in done.stderr
        assert not (bench.folder / "out.yaml").exists()
