"""Sizes of models, read from config.json files on a Hub on loopback."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from remaking.running import TABLES, rows_of
from remaking.sheets import rewritten, sheet
from tests.facts.test_model_shapes import CONFIGS

ROOT = Path(__file__).parents[2]
LLAMA, QWEN, GATED = "meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-0.5B", "google/gemma-2b"


@contextmanager
def hub(files: Mapping[str, bytes | int]) -> Iterator[tuple[str, list[str]]]:
    """Serve config.json files by model; a number is an error. Yields address and logins."""
    logins: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            model, _, file = self.path.strip("/").partition("/resolve/main/")
            content = files.get(model, 404)
            logins.append(self.headers.get("Authorization", ""))
            if isinstance(content, int) or file != "config.json":
                self.send_error(content if isinstance(content, int) else 404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", logins
    finally:
        server.shutdown()
        server.server_close()


def run(tables: Path, address: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        "HF_ENDPOINT": address,
        "HF_TOKEN": "t0ken",
    }
    command = [sys.executable, "support/remake_models.py", "--tables", str(tables), *words]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.long
def test_rows_are_read_anew_and_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    (tables / "parts").mkdir(parents=True)
    path = tables / "parts/models.yaml"
    shutil.copy(TABLES / "parts/models.yaml", path)
    old = sheet(path.read_text(encoding="utf-8"), "rows")
    rows = [row.values for row in old.rows if row.values["id"] in {LLAMA, QWEN, GATED}]
    path.write_text(rewritten(old, ("id",), rows), encoding="utf-8")
    larger = {**CONFIGS[QWEN], "num_hidden_layers": 25}
    files: dict[str, bytes | int] = {
        LLAMA: json.dumps(CONFIGS[LLAMA]).encode(),
        QWEN: json.dumps(larger).encode(),
        GATED: 403,
    }
    with hub(files) as (address, logins):
        checked = run(tables, address, "--check")
        assert checked.returncode == 1, checked.stderr
        assert f"not read: {GATED}: the Hub answers 403" in checked.stderr
        assert f"parts/models.rows {QWEN}: layers is 24, read 25" in checked.stdout
        assert LLAMA not in checked.stdout
        assert set(logins) == {"Bearer t0ken"}
        assert run(tables, address, "--write").returncode == 0
        assert run(tables, address, "--check").returncode == 0
    found = {row["id"]: row for row in rows_of(tables, "parts/models")}
    assert found[QWEN]["layers"] == 25
    assert found[QWEN]["source"].startswith("config.json of the model")
    assert found[GATED]["parameters"] == 2506172416


def test_a_hub_that_cannot_be_read_is_exit_2(tmp_path: Path) -> None:
    for files in ({LLAMA: 500}, {LLAMA: b"<html>"}):
        tables = tmp_path / str(len(list(tmp_path.iterdir()))) / "tables"
        (tables / "parts").mkdir(parents=True)
        shutil.copy(TABLES / "parts/models.yaml", tables / "parts/models.yaml")
        with hub(files) as (address, _):
            done = run(tables, address)
        assert done.returncode == 2
        assert "cannot read anew: the Hub" in done.stderr
        assert "Traceback" not in done.stderr
    assert run(tables, "nowhere").returncode == 2
