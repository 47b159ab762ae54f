"""The notebook as Jupyter shows it, with what the cells said: drawn by a browser, which fetches
nothing for it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import struct
import subprocess
import zlib
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter

from tests.colab_rig.machine import Machine
from tests.colab_rig.notebook import Notebook
from tests.colab_rig.rendered import Rendered
from tests.support import require

pytestmark = [pytest.mark.network, pytest.mark.browser]
CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND"
QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
)
KEPT = "PROVISION_TEST_SCREENSHOTS"
"""The variable that names a folder to keep the pictures in, for a person to look at."""


def browser(tmp_path: Path, *words: str) -> str:
    """Run Chromium to its end and return what it prints."""
    require("browser", CHROMIUM is not None, "Chromium is not installed")
    command = [
        str(CHROMIUM),
        *QUIET,
        OFFLINE,
        "--virtual-time-budget=2000",
        f"--user-data-dir={tmp_path / 'profile'}",
        *words,
    ]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},
        start_new_session=True,
    ) as running:
        try:
            return running.communicate(timeout=600)[0]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)


def page_of(notebook: Path) -> str:
    """Return the notebook as the page that Jupyter makes of it, with the folded cells folded: the
    exporter knows another mark for them than JupyterLab.
    """
    content = nbformat.read(notebook, as_version=4)
    for cell in content.cells:
        cell.metadata["transient"] = {
            "remove_source": cell.metadata.get("jupyter", {}).get("source_hidden", False)
        }
    shown, _ = HTMLExporter().from_notebook_node(content)
    return str(shown)


def rows_of(picture: Path) -> set[bytes]:
    """Return the different rows of a PNG file, as they are before their filter is undone: a blank
    picture has two or three.
    """
    content, place, data = picture.read_bytes(), 8, b""
    (width,) = struct.unpack(">I", content[16:20])
    channels = {2: 3, 6: 4}[content[25]]
    while place < len(content):
        (size,) = struct.unpack(">I", content[place : place + 4])
        data += (
            content[place + 8 : place + 8 + size]
            if content[place + 4 : place + 8] == b"IDAT"
            else b""
        )
        place += size + 12
    every, wide = zlib.decompress(data), width * channels + 1
    return {every[start : start + wide] for start in range(0, len(every), wide)}


def picture_of(page: str, tmp_path: Path, name: str) -> Path:
    (tmp_path / f"{name}.html").write_text(page, encoding="utf-8")
    picture = Path(os.environ.get(KEPT) or tmp_path) / f"{name}.png"
    browser(
        tmp_path,
        f"--screenshot={picture}",
        "--window-size=1200,1600",
        (tmp_path / f"{name}.html").as_uri(),
    )
    return picture


def test_in_a_browser_the_notebook_shows_what_the_cells_said(
    light: Rendered, machine: Machine, tmp_path: Path
) -> None:
    with Notebook(machine, light.notebook) as notebook:
        assert [one.ended for one in notebook.run_all()] == ["ok"] * len(notebook.code)
        ran = notebook.write(tmp_path / "ran.ipynb")
    page = page_of(ran)
    dom = browser(tmp_path, "--dump-dom", _written(page, tmp_path / "page.html").as_uri())
    for words in ("Environment", "light", "verified", "download the report", "provision render"):
        assert words in dom
    assert len(rows_of(picture_of(page, tmp_path, "notebook"))) > 100


@pytest.mark.long
def test_in_a_browser_an_ended_cell_is_shown_without_a_traceback(
    light: Rendered, machine: Machine, tmp_path: Path
) -> None:
    def card(document: dict[str, object]) -> None:
        document["gpu"] = {"type": "T4", "device": "Tesla T4", "count": 1}

    with Notebook(machine, light.otherwise(tmp_path / "made", card).notebook) as notebook:
        notebook.run_all()
        page = page_of(notebook.write(tmp_path / "ended.ipynb"))
    assert "there is no GPU, but the spec requires T4" in page
    assert "Traceback" not in page
    assert len(rows_of(picture_of(page, tmp_path, "ended"))) > 100


def test_in_a_browser_an_empty_page_would_be_noticed(tmp_path: Path) -> None:
    """The control of the tests above."""
    assert len(rows_of(picture_of("<!doctype html><title>nothing</title>", tmp_path, "blank"))) < 10


def _written(page: str, path: Path) -> Path:
    path.write_text(page, encoding="utf-8")
    return path
