"""A package index of small wheels on disk or on loopback, and the command line run as a person runs
it.
"""

from __future__ import annotations

import atexit
import base64
import functools
import gzip
import hashlib
import http.server
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import uv

from tests import fork_server

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    requires: tuple[str, ...] = (),
    tag: str = "py3-none-any",
    code: str = "",
    size: int = 0,
    headers: tuple[str, ...] = (),
) -> Path:
    """Write a wheel with one module; `headers` are further lines of its METADATA, `size` adds a
    data file of that many incompressible bytes.
    """
    module = name.replace("-", "_")
    stem = f"{module}-{version}"
    metadata = "\n".join(
        [
            "Metadata-Version: 2.1",
            f"Name: {name}",
            f"Version: {version}",
            *headers,
            *(f"Requires-Dist: {line}" for line in requires),
            "",
        ]
    )
    files = {
        f"{module}/__init__.py": (code or f"__version__ = {version!r}\n").encode(),
        f"{stem}.dist-info/METADATA": metadata.encode(),
        f"{stem}.dist-info/WHEEL": f"Wheel-Version: 1.0\nGenerator: rig\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),  # noqa: E501
    }
    if size:
        files[f"{module}/data.bin"] = os.urandom(size)
    record = [
        f"{path},sha256={_record_hash(content)},{len(content)}" for path, content in files.items()
    ] + [f"{stem}.dist-info/RECORD,,"]
    files[f"{stem}.dist-info/RECORD"] = "\n".join(record).encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, content in files.items():
            archive.writestr(zipfile.ZipInfo(inner, (1980, 1, 1, 0, 0, 0)), content)
    return path


BACKEND = """
import zipfile
from pathlib import Path

def build_wheel(folder, config_settings=None, metadata_directory=None):
    code = compile(Path("build.py").read_text(), "build.py", "exec")
    told = {}
    exec(code, told)
    stem = f"{told['NAME']}-{told['VERSION']}"
    wheel = f"{stem}-{told.get('TAG', 'py3-none-any')}.whl"
    with zipfile.ZipFile(Path(folder) / wheel, "w") as archive:
        archive.writestr(f"{told['NAME']}.py", f"BUILT_WITH = {told['SEEN']!r}")
        archive.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\\nName: {told['NAME']}\\nVersion: {told['VERSION']}\\n")
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: rig\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return wheel

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = build_wheel(folder)
    module = Path("build.py").resolve()
    stem = "-".join(name.split("-")[:2])
    with zipfile.ZipFile(Path(folder) / name, "w") as archive:
        archive.writestr(f"_{stem}.pth", f"{module.parent}\\n")
        archive.writestr(f"{stem}.dist-info/METADATA", "Metadata-Version: 2.1\\nName: {}\\nVersion: {}\\n".format(*stem.split("-")))
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: rig\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{stem}.dist-info/RECORD", f"_{stem}.pth,,\\n{stem}.dist-info/METADATA,,\\n{stem}.dist-info/WHEEL,,\\n{stem}.dist-info/RECORD,,\\n")
    return name
"""  # noqa: E501
"""A build backend without requirements of its own: the module `rigbackend`, in a wheel
`rigbackend`.
"""


def make_source(
    folder: Path,
    name: str,
    version: str,
    *,
    requires: tuple[str, ...] = (),
    build: str = 'requires = ["rigbackend"]',
    marker: Path | None = None,
    headers: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
    more: Mapping[str, str] | None = None,
) -> Path:
    """Write a source distribution that is built by `rigbackend`; each build adds a line to
    `marker`, and imports alpha where it is there.
    """
    module, metadata = (
        name.replace("-", "_"),
        ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *headers],
    )
    code = (
        f"NAME, VERSION = {module!r}, {version!r}\ntry:\n    from alpha import __version__ as "
        "SEEN\nexcept ImportError:\n    SEEN = None\n"
    )
    code += f"open({str(marker)!r}, 'a').write(f'{{SEEN}}\\n')\n" if marker else ""
    files = {
        "PKG-INFO": "\n".join([*metadata, *(f"Requires-Dist: {line}" for line in requires), ""]),
        "pyproject.toml": f'[build-system]\n{build}\nbuild-backend = "rigbackend"\n',
        "build.py": code,
        **(more or {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{module}-{version}.tar.gz"
    with (
        gzip.GzipFile(path, "wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for inner, text in files.items():
            if inner not in without:
                member = tarfile.TarInfo(f"{module}-{version}/{inner}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
    return path


def make_index(folder: Path, wheels: tuple[Path, ...]) -> str:
    """Lay out a PEP 503 index of the wheels (and sources) and return its file:// address."""
    by_name: dict[str, list[Path]] = {}
    for wheel in wheels:
        by_name.setdefault(wheel.name.split("-")[0].replace("_", "-").lower(), []).append(wheel)
    folder.mkdir(parents=True, exist_ok=True)
    for name, files in by_name.items():
        (folder / name).mkdir(exist_ok=True)
        for file in files:
            if not (folder / name / file.name).exists():
                shutil.copy(file, folder / name / file.name)
        links = [
            "<a "
            f'href="{quote(f.name)}#sha256={hashlib.sha256(f.read_bytes()).hexdigest()}">{f.name}</a>'
            for f in files
        ]
        (folder / name / "index.html").write_text("<!DOCTYPE html>\n" + "\n".join(links))
    return folder.as_uri()


@contextmanager
def served(folder: Path, before: Callable[[str], None] | None = None) -> Iterator[str]:
    """Serve a folder on loopback and give its address; `before` is called with each path, and may
    wait.
    """

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if before is not None:
                before(self.path)
            super().do_GET()

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@functools.cache
def interpreters() -> Path:
    """A cache of uv that knows the machine's interpreters and nothing else: asking them is most of
    what uv does for a small spec.
    """
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    words = ["python", "list", "--only-installed", "--offline", "--quiet", "--no-config"]
    subprocess.run(
        [uv.find_uv_bin(), *words, "--cache-dir", folder], check=True, capture_output=True, cwd="/"
    )
    return Path(folder)


@dataclass
class Bench:
    """A folder to work in, with a home and a uv cache of its own, in which the real command is run."""  # noqa: E501

    folder: Path
    index: str
    extra: Mapping[str, str] = field(default_factory=dict)

    def environment(self, **changes: str) -> dict[str, str]:
        """The caller's variables: nothing of the machine's pip or uv configuration, the rig's index
        as the default one.
        """
        cache = self.folder / "uv-cache"
        if (self.folder / "home").exists() and not cache.exists():
            shutil.copytree(interpreters(), cache)
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(
                ("PIP_", "UV_", "PROVISION_", "PYTHONPATH", "HF_", "VIRTUAL_ENV", "PYENV")
            )
        }
        own = {
            "HOME": str(self.folder / "home"),
            "UV_CACHE_DIR": str(cache),
            "PIP_CONFIG_FILE": os.devnull,
            "COLUMNS": "100",
        }
        own |= {"XDG_CACHE_HOME": str(self.folder / "home/.cache")}
        own |= {
            "PROVISION_INDEX_PYPI": self.index,
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_HTTP_RETRIES": "0",
            "NO_COLOR": "1",
        }
        return {**kept, **own, **self.extra, **changes}

    def spec(self, text: str, name: str = "spec.yaml") -> Path:
        """Write a spec and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(
        self, *words: str, timeout: float = 600, **changes: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `provision WORDS` without a terminal and return how it ended."""
        environment = self.environment(**changes)
        return fork_server.run(
            self.argv(*words),
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )

    def start(self, *words: str, **changes: str) -> subprocess.Popen[str]:
        """Start `provision WORDS` in a session of its own and return the process."""
        return fork_server.Process(
            self.argv(*words),
            cwd=self.folder,
            env=self.environment(**changes),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def argv(self, *words: str) -> list[str]:
        """The command line."""
        return [*fork_server.ARGV, *words]

    @property
    def own(self) -> Path:
        """The folder that provision keeps beside the spec."""
        return self.folder / ".provision"


def small_spec(*packages: str, extra: str = "") -> str:
    """A spec without torch, whose verification only imports: for tests of everything but training."""  # noqa: E501
    listed = "".join(f"  - {package}\n" for package in packages)
    return (
        f'gpu: none\npython: "{MINOR}"\npackages:\n{listed}training: {{framework: none}}\n{extra}'
    )


def _record_hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
