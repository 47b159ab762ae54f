"""Folders of Google Drive under `paths`: how they are written, and where they are refused."""

from __future__ import annotations

import pytest

from provision.diagnostics import Severity
from provision.kinds.drive import find_mount, is_drive_folder, to_mounted_paths
from tests.rules.conftest import Ask

COLAB = '{kind: colab, runtime: "2026.07"}'
ENTERPRISE = "{kind: colab-enterprise, project: p, region: us-central1}"
WORKBENCH = "{kind: workbench, project: p, zones: [us-central1-a]}"


def told(ask: Ask, paths: str, **targets: str) -> list[tuple[str, Severity, str]]:
    lines = "".join(f"  {name}: {target}\n" for name, target in targets.items())
    text = f'gpu: none\npython: "3.12"\npackages: []\npaths: {paths}\ntargets:\n{lines}'
    kept = ("SPC009", "REF101", "REF103", "REF104", "REF105")
    return [(one.id, one.severity, one.help) for one in ask(text).findings if one.id in kept]


@pytest.mark.parametrize(
    "path", ["drive:data", "drive:", "drive://data", "drive:/a/../b", "drive:/.."]
)
def test_a_folder_of_drive_that_is_written_otherwise(ask: Ask, path: str) -> None:
    assert not is_drive_folder(path)
    ((name, severity, help_text),) = told(ask, f"{{data: '{path}'}}", colab=COLAB)
    assert (name, severity) == ("REF101", Severity.ERROR)
    assert "drive:/FOLDER" in help_text


@pytest.mark.parametrize("path", ["drive:/data", "drive:/a b/c", "drive:/", "drive:/a/..b"])
def test_a_folder_of_drive_on_colab(ask: Ask, path: str) -> None:
    assert is_drive_folder(path)
    assert told(ask, f"{{out: '{path}'}}", colab=COLAB) == []


@pytest.mark.parametrize("target", ["{kind: local}", ENTERPRISE, WORKBENCH])
def test_a_target_that_cannot_mount_drive_needs_another_path(ask: Ask, target: str) -> None:
    hint = "set `paths: {data: /a/folder}` on target `there`"
    shared = told(ask, "{data: drive:/data}", colab=COLAB, there=target)
    assert shared == [("SPC009", Severity.WARNING, hint)]
    alone = told(ask, "{data: drive:/data}", there=target)
    assert alone == [("SPC009", Severity.ERROR, hint)]
    own = target.replace("}", ", paths: {data: /data}}")
    assert told(ask, "{data: drive:/data}", colab=COLAB, there=own) == []
    own = target.replace("}", ", paths: {data: 'drive:/data'}}")
    assert told(ask, "{}", colab=COLAB, there=own) == [("SPC009", Severity.ERROR, hint)]


def test_a_cell_without_a_browser_cannot_mount_drive(ask: Ask) -> None:
    target = "{kind: colab, via: colab-cli, isolation: venv}"
    ((name, severity, help_text),) = told(ask, "{data: drive:/data}", colab=target)
    assert (name, severity) == ("SPC009", Severity.ERROR)
    assert "paths: {data: /content/FOLDER}" in help_text


def test_a_variable_in_a_folder_of_drive_is_not_expanded(ask: Ask) -> None:
    assert [one[0] for one in told(ask, "{data: 'drive:/$USER/x'}", colab=COLAB)] == ["REF103"]


def test_the_path_on_a_runtime() -> None:
    paths = {"data": "drive:/data/", "all": "drive:/", "disk": "/content/out"}
    assert to_mounted_paths(paths) == {
        "data": "/content/drive/MyDrive/data",
        "all": "/content/drive/MyDrive",
        "disk": "/content/out",
    }
    assert find_mount(paths) == find_mount({"a": "/content/drive"}) == "/content/drive"
    assert find_mount({"a": "/content/drives/a", "b": "/content/out"}) is None
