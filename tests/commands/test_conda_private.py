"""A channel that asks for credentials, where a person's own conda makes the environment: it is not
told them, and writes them nowhere.
"""

from __future__ import annotations

import base64
import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conda_rig import CondaChannel
from tests.own_conda import own_conda
from tests.rig import Bench, small_spec

CONDA = "conda_packages: [ffmpeg=7]\ntargets: {local: {kind: local, manager: conda}}\n"
SECRET = "s3cr3t-of-mine"
WORD = base64.b64encode(f"someone:{SECRET}".encode()).decode()


@contextmanager
def guarded(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback to those who show the credentials; its address, without them."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Authorization") == f"Basic {WORD}":
                super().do_GET()
            else:
                self.send_error(401)

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def locked(bench: Bench, conda: CondaChannel) -> Bench:
    """A bench with a lock and a person's own conda."""
    bench.extra = {
        **conda.variables(),
        "PROVISION_CONDA": str(own_conda(bench.folder / "programs", [bench.folder / "home/envs"])),
    }
    bench.spec(small_spec("gamma", extra=CONDA))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 0, done.stderr
    return bench


def test_a_persons_own_conda_is_handed_copies_and_no_credentials(
    locked: Bench, conda: CondaChannel
) -> None:
    with guarded(conda.folder) as address:
        mirror = address.replace("://", f"://someone:{SECRET}@")
        done = locked.run("apply", "spec.yaml", "--yes", PROVISION_CHANNEL_CONDA_FORGE=mirror)
        assert done.returncode == 0, done.stdout + done.stderr
        assert SECRET not in done.stdout + done.stderr
        listed = [
            line
            for line in (locked.folder / "programs/asked.txt").read_text().splitlines()
            if "://" in line
        ]
        assert len(listed) == 3
        assert all(
            line.startswith("file:///") and not Path(line.removeprefix("file://")).exists()
            for line in listed
        ), "the copies are gone"
        held = {path: path.read_bytes() for path in locked.folder.rglob("*") if path.is_file()}
        assert [
            path
            for path, content in held.items()
            if SECRET.encode() in content or WORD.encode() in content
        ] == []
        record = (locked.own / "envs/spec.local/conda-meta/ffmpeg-7.1.1-h0_gpl.json").read_text()
        assert "/conda-forge/linux-64/ffmpeg-7.1.1-h0_gpl.conda" in record
        assert "file://" not in record.partition('"url"')[2].partition(",")[0]


@pytest.mark.long
def test_what_goes_wrong_with_such_a_channel_is_said(
    locked: Bench, conda: CondaChannel, tmp_path: Path
) -> None:
    folder = tmp_path / "channel"
    shutil.copytree(conda.folder, folder)
    with guarded(folder) as address:
        wrong = address.replace("://", "://someone:wr0ng@")
        done = locked.run("apply", "spec.yaml", "--yes", PROVISION_CHANNEL_CONDA_FORGE=wrong)
        assert (done.returncode, "a conda package could not be downloaded" in done.stderr) == (
            2,
            True,
        ), done.stdout + done.stderr
        assert "401" in done.stderr
        assert "the credentials in PROVISION_CHANNEL_CONDA_FORGE" in done.stderr
        assert "wr0ng" not in done.stdout + done.stderr
        right = address.replace("://", f"://someone:{SECRET}@")
        done = locked.run(
            "apply", "spec.yaml", "--yes", "--offline", PROVISION_CHANNEL_CONDA_FORGE=right
        )
        assert (
            done.returncode,
            "requires credentials, which provision does not pass to conda" in done.stderr,
        ) == (2, True), done.stdout + done.stderr
        assert "PROVISION_CONDA=py-rattler" in done.stderr
        shutil.copy(
            folder / "linux-64/ffmpeg-6.1.2-h0_gpl.conda",
            folder / "linux-64/ffmpeg-7.1.1-h0_gpl.conda",
        )
        done = locked.run("apply", "spec.yaml", "--yes", PROVISION_CHANNEL_CONDA_FORGE=right)
        assert (done.returncode, "differs from the locked file" in done.stderr) == (1, True), (
            done.stdout + done.stderr
        )
        assert SECRET not in done.stdout + done.stderr
