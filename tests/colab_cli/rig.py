"""Google's own `colab` program in an environment of its own, and a Jupyter server that stands for
the machines it is given.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.colab_cli.control_plane import ControlPlane
from tests.support import make_once, require

RELEASE = "google-colab-cli==0.7.5"
LAUNCHER = '''#!{python} -I
"""The real command line, told of another host: it has no option for that."""
import os
import sys

from colab_cli import client, common
from colab_cli.cli import main

common.Prod = lambda: client.Prod(domain=os.environ["COLAB_STAND_IN"])
sys.argv[0] = "colab"
main()
'''
# Every `exec` begins with a step into /content, which this machine need not have.
STARTUP = """\
import os

_makedirs, _chdir = os.makedirs, os.chdir
_content = {content!r}
os.makedirs = lambda name, *rest, **more: _makedirs(
    _content if name == "/content" else name, *rest, **more
)
os.chdir = lambda path: _chdir(_content if path == "/content" else path)
"""
SERVER = """\
c.ServerApp.token = ""
c.ServerApp.password = ""
c.ServerApp.disable_check_xsrf = True
c.ServerApp.root_dir = "/"
c.ServerApp.open_browser = False
c.ServerApp.allow_root = True
c.ServerApp.jpserver_extensions = {}
"""


@dataclass(frozen=True)
class Client:
    """An environment with the real program: its Python, and a folder whose `colab` talks to a
    stand-in.
    """

    python: Path
    programs: Path


def new_pythons() -> Iterator[str]:
    """Yield interpreters of this machine that may be 3.12 or newer: those named for tests, those on
    the PATH, those that pyenv has.
    """
    yield from (
        path for path in os.environ.get("PROVISION_TEST_PYTHONS", "").split(os.pathsep) if path
    )
    yield from (path for minor in (12, 13) if (path := shutil.which(f"python3.{minor}")))
    if (pyenv := shutil.which("pyenv")) is not None:
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True).stdout.strip()
        yield from (
            str(path)
            for minor in (12, 13)
            for path in sorted(Path(root).glob(f"versions/3.{minor}.*/bin/python"))
        )


def find_python() -> str | None:
    """Return a Python 3.12 or newer that runs, or None."""
    asks = "import sys; sys.exit(sys.version_info < (3, 12))"
    return next(
        (
            path
            for path in new_pythons()
            if subprocess.run([path, "-c", asks], capture_output=True).returncode == 0
        ),
        None,
    )


def install(factory: pytest.TempPathFactory) -> Client:
    """Install the real program once for all tests; skips where there is no Python for it, or no
    package index.
    """
    python = find_python()
    if python is None:
        pytest.skip(
            "google-colab-cli needs Python 3.12 or newer, and none was found; name one in "
            "PROVISION_TEST_PYTHONS"
        )
    uv = str(Path(sys.executable).with_name("uv"))

    def make(folder: Path) -> None:
        inside = folder / "client/bin/python"
        subprocess.run(
            [uv, "venv", "--quiet", "--python", python, str(folder / "client")],
            check=True,
            capture_output=True,
        )
        wanted = [RELEASE, "jupyter_server", "ipykernel"]
        done = subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", str(inside), *wanted],
            capture_output=True,
            text=True,
            timeout=600,
        )
        require(
            "index", done.returncode == 0, f"{RELEASE} cannot be installed: {done.stderr[-300:]}"
        )
        # Nothing here checks IRIs, and its import takes longer than all else that `colab` does.
        subprocess.run(
            [uv, "pip", "uninstall", "--quiet", "--python", str(inside), "rfc3987-syntax"],
            check=True,
            capture_output=True,
        )
        (folder / "programs").mkdir()
        (folder / "programs/colab").write_text(LAUNCHER.format(python=inside))
        (folder / "programs/colab").chmod(0o755)

    folder = make_once(factory, "colab-cli", make)
    return Client(folder / "client/bin/python", folder / "programs")


@contextlib.contextmanager
def jupyter(client: Client, folder: Path) -> Iterator[str]:
    """Run a Jupyter server without a token on loopback and give its address."""
    content, settings = folder / "content", folder / "jupyter_server_config.py"
    startup = folder / "ipython/profile_default/startup"
    startup.mkdir(parents=True)
    (startup / "00-content.py").write_text(STARTUP.format(content=str(content)))
    settings.write_text(SERVER)
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    own = {
        "HOME": str(folder),
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    argv = [
        str(client.python),
        "-m",
        "jupyter_server",
        f"--config={settings}",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--ServerApp.port_retries=0",
    ]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            argv,
            env={**os.environ, **own},
            cwd=folder,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _await(address, process, folder / "server.log")
        yield address
    finally:
        process.terminate()
        try:
            process.wait(300)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(3000):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"{address}/api", timeout=2).close()
            return
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def credentials(folder: Path, client: Client, address: str) -> Path:
    """Write Application Default Credentials of a service account, made up, whose tokens the
    stand-in gives out.
    """
    code = (
        "from cryptography.hazmat.primitives import serialization as s; from "
        "cryptography.hazmat.primitives.asymmetric import rsa; "
        "print(rsa.generate_private_key(65537, 2048).private_bytes(s.Encoding.PEM, "
        "s.PrivateFormat.PKCS8, s.NoEncryption()).decode())"
    )
    key = subprocess.run(
        [str(client.python), "-c", code], capture_output=True, text=True, check=True
    ).stdout
    told = {
        "type": "service_account",
        "client_email": "someone@example.com",
        "private_key": key,
        "private_key_id": "1",
        "token_uri": f"{address}/token",
    }
    path = folder / "credentials.json"
    path.write_text(json.dumps(told))
    return path


@dataclass(frozen=True)
class Account:
    """An account at the stand-in: its home, its credentials, and the folder in which cells keep
    their files on its machines.
    """

    client: Client
    plane: ControlPlane
    home: Path
    key: Path
    base: Path

    def variables(self) -> dict[str, str]:
        """The variables with which the real program reaches the stand-in."""
        return {
            "HOME": str(self.home),
            "PATH": f"{self.client.programs}{os.pathsep}{os.environ['PATH']}",
            "COLAB_STAND_IN": self.plane.address,
            "GOOGLE_APPLICATION_CREDENTIALS": str(self.key),
            "NO_GCE_CHECK": "true",
            "COLAB_CLI_RETRY_BACKOFF": "0",
            "PROVISION_CELL_BASE": str(self.base),
        }
