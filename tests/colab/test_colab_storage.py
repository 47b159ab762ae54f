"""Notebooks in real kernels with a folder of Drive, and with payload and report in a bucket."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.sandbox.serve import serve
from provision.targets.colab.payload import decode_payload
from tests.colab.conftest import LIGHT
from tests.colab_rig.catalogue import Tool
from tests.colab_rig.machine import Machine
from tests.colab_rig.notebook import Notebook
from tests.colab_rig.rendered import Rendered

pytestmark = [pytest.mark.network, pytest.mark.long(minutes=True)]
SHOW = "import os; print(os.environ['PROVISION_PATH_DATA'])"


def in_machine(rendered: Rendered, machine: Machine, folder: Path) -> Rendered:
    """The same notebook with Drive mounted inside the folder of the stand-in."""
    mount = str(machine.content / "drive")

    def move(document: dict[str, Any]) -> None:
        assert document["drive"] == "/content/drive"
        document["drive"] = mount
        document["report"] = document["report"].replace("/content/drive", mount)
        for paths in (document["paths"], document["expectations"]["paths"]):
            paths["data"] = paths["data"].replace("/content/drive", mount)

    return rendered.otherwise(folder, move)


def test_a_folder_of_drive(
    render: Callable[..., Rendered], machine: Machine, tmp_path: Path
) -> None:
    rendered = render(f"{LIGHT}paths: {{data: 'drive:/my data'}}\n", "drive")
    notebook, drive = in_machine(rendered, machine, tmp_path / "changed"), tmp_path / "theirs"
    drive.mkdir()
    with Notebook(machine, notebook.notebook) as refused:
        assert refused.run_all()[0].error == "StageError"
        assert machine.status["outcome"] == "failed"
    assert not (machine.content / "drive").exists()
    machine.variables["COLAB_RIG_DRIVE"] = str(drive)
    with Notebook(machine, notebook.notebook) as allowed:
        assert [one.ended for one in allowed.run_all()] == ["ok"] * len(allowed.code)
        shown = allowed.run(SHOW).text.strip()
        assert shown == str(machine.content / "drive/MyDrive/my data")
        allowed.run("open(os.environ['PROVISION_PATH_DATA'] + '/a.txt', 'w').write('mine')")
    assert (drive / "my data/a.txt").read_text() == "mine"
    (report,) = (drive / "provision").iterdir()
    assert report.name.startswith("drive-")
    assert report.read_bytes() == (machine.base / "report.json").read_bytes()


def test_payload_and_report_in_a_bucket(tool: Tool, machine: Machine, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"

    def written(payload: str) -> Rendered:
        fields = f"bucket: gs://my-bucket/p, payload: {payload}"
        spec.write_text(LIGHT.replace('"2025.07"}', f'"2025.07", {fields}}}'), encoding="utf-8")
        for words in (("lock", "spec.yaml"), ("render", "spec.yaml")):
            done = tool.run(*words, cwd=tmp_path)
            assert done.returncode == 0, done.stdout + done.stderr
        return Rendered(tmp_path / "spec.colab.py", tmp_path / "spec.ipynb")

    embedded = written("embedded").about
    small = written("bucket")
    about = small.about
    assert about["payload_sha256"] == embedded["payload_sha256"]
    assert len(small.cell.read_bytes()) < 12_000
    (address,) = about["payload_urls"]
    name = address.removeprefix("gs://my-bucket/")
    with serve(tmp_path / "services") as running, Notebook(machine, small.notebook) as notebook:
        notebook.run(
            f"import os; os.environ['STORAGE_EMULATOR_HOST'] = '{running.endpoints['storage']}'"
        )
        running.store.make_bucket("my-bucket")
        absent = notebook.run(0)
        assert "cannot fetch the payload of this cell" in absent.text
        assert "set `payload: embedded` on target `colab`" in absent.text
        assert "Traceback" not in absent.text
        running.store.put_object("my-bucket", name, decode_payload(embedded["payload"]))
        first = notebook.run(0)
        assert first.ended == "ok", first.text
        assert "the report is also in gs://my-bucket/p/spec/" in first.text
        kept = [str(one["name"]) for one in running.store.objects("my-bucket")]
    folder = f"p/spec/{about['nonce']}"
    assert sorted(kept) == [
        f"{folder}/{about['payload_sha256'][:12]}.payload",
        f"{folder}/report.json",
    ]
