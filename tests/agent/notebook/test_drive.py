"""Google Drive as a folder: mounted once, never made on the disk in its place, and the report on it
or in a bucket.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from provision.agent.core.agent_config import DocumentError
from provision.agent.notebook.document import parse_document
from provision.sandbox.serve import serve
from tests.agent.notebook.bench import Runtime

STAND_IN = Path(__file__).parents[2] / "colab_rig/stand_in/google/colab"


@pytest.fixture
def colab(runtime: Runtime) -> Runtime:
    """A runtime of Colab, whose user has a Drive."""
    runtime.in_colab()
    for name in ("drive", "_message"):
        shutil.copy(STAND_IN / f"{name}.py", runtime.packages / "google/colab")
    (runtime.folder / "theirs").mkdir()
    return runtime


def on_drive(runtime: Runtime, **changes: Any) -> dict[str, Any]:
    """A document with a folder of Drive, and one on the disk."""
    mount = runtime.folder / "drive"
    paths = {"data": f"{mount}/MyDrive/data", "out": str(runtime.folder / "out")}
    return runtime.document(
        "alpha==1.0",
        paths=paths,
        expectations__paths=paths,
        drive=str(mount),
        report=f"{mount}/MyDrive/provision/hf.report.json",
        **changes,
    )


def test_drive_is_mounted_and_has_the_folder_and_the_report(colab: Runtime) -> None:
    folder, drive = colab.lay_out(on_drive(colab)), colab.folder / "theirs"
    done = colab.cell(folder, COLAB_RIG_DRIVE=str(drive))
    assert (drive / "data").is_dir()
    assert "created the folder" in done.stdout
    assert "which was not on Google Drive" in done.stdout
    assert (drive / "provision/hf.report.json").read_bytes() == (
        colab.base / "report.json"
    ).read_bytes()
    assert "the report is also in" in done.stdout
    assert "files.download" not in done.stdout
    assert "Mounted at" not in done.stdout
    assert "every declared path is writable" in json.dumps(colab.report)
    again = colab.cell(folder, "provision_cell.verify(FOLDER)", COLAB_RIG_DRIVE=str(drive))
    assert "created the folder" not in again.stdout
    assert "already mounted" not in again.stdout


def test_a_user_who_refuses_gets_no_folder_on_the_disk_instead(colab: Runtime) -> None:
    done = colab.cell(colab.lay_out(on_drive(colab)), COLAB_RELEASE_TAG="release")
    assert "cannot use the folder" in done.stdout
    assert "this notebook did not get access to Google Drive: run the cell again" in done.stdout
    assert not (colab.folder / "drive").exists()
    assert (colab.folder / "out").is_dir()
    assert "data (" in done.stdout
    assert "is absent -> allow the cell to mount Google Drive" in done.stdout
    assert "cannot copy the report to" in done.stdout
    assert "files.download" in done.stdout
    assert colab.status["outcome"] == "failed"


@pytest.mark.long
def test_files_at_the_mount_point_are_named(colab: Runtime) -> None:
    (colab.folder / "drive/MyDrive2").mkdir(parents=True)
    done = colab.cell(colab.lay_out(on_drive(colab)), COLAB_RIG_DRIVE=str(colab.folder / "theirs"))
    assert "Mountpoint must not already contain files" in done.stdout
    assert "move these files to another folder" in done.stdout


@pytest.mark.long
def test_another_kernel_has_no_drive(runtime: Runtime) -> None:
    done = runtime.cell(runtime.lay_out(on_drive(runtime)))
    assert "only Colab can mount Google Drive, and this is not Colab" in done.stdout


def test_the_report_goes_to_the_bucket(runtime: Runtime, tmp_path: Path) -> None:
    document = runtime.document("alpha==1.0", report="gs://my-bucket/p/hf/n/report.json")
    with serve(tmp_path / "sandbox") as running:
        running.store.make_bucket("my-bucket")
        server = running.endpoints["storage"]
        runtime.cell(runtime.lay_out(document), STORAGE_EMULATOR_HOST=server)
        kept = running.store.object("my-bucket", "p/hf/n/report.json")
    assert kept is not None
    gone = runtime.cell(runtime.lay_out(document), STORAGE_EMULATOR_HOST=server)
    assert "cannot copy the report to gs://my-bucket/p/hf/n/report.json: " in gone.stdout
    plain = runtime.cell(runtime.lay_out(document))
    assert "no credentials for Google Cloud (" in plain.stdout


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("drive", "content/drive"),
        ("drive", "/content/my drive"),
        ("drive", "/content/../drive"),
        ("report", "s3://b/r.json"),
        ("report", "report.json"),
        ("report", "/content/../etc/r.json"),
    ],
)
def test_places_are_read_strictly(plain: Runtime, key: str, value: str) -> None:
    with pytest.raises(DocumentError, match=key):
        parse_document(plain.document("alpha==1.0", **{key: value}))
