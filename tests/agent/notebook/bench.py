"""A runtime for the cell: an index, an interpreter with packages of an image, and the cell's files
laid out and run as a notebook would.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provision.agent.core.files import zip_files
from provision.agent.probe.report_json import expand
from provision.verification.device_files import installer_zipapp, notebook_zipapp, probe_zipapp
from tests.agent.install.bench import UV, sha256
from tests.agent.probe.conftest import document as expectations
from tests.rig import MINOR, make_index, make_wheel
from tests.support import with_bytecode

PROGRAMS = {
    "cell.pyz": notebook_zipapp(),
    "probe.pyz": probe_zipapp(),
    "installer.pyz": installer_zipapp(),
}

NONCE = "0123456789abcdef0123456789abcdef"
IPYTHON = """
import json, os

class _Kernel:
    def do_shutdown(self, restart):
        print("SHUTDOWN", restart)
        return {"status": "ok"}

class _Display:
    def publish(self, bundle):
        print("BUNDLE", json.dumps(bundle))

class _Shell:
    kernel, display_pub = _Kernel(), _Display()

def get_ipython():
    return _Shell()
"""
"""A substitute of IPython: a shell with a kernel. Other tests run the real one."""
USERDATA = """
class SecretNotFoundError(Exception): ...
class NotebookAccessError(Exception): ...

def get(name):
    if name == "CLOSED":
        raise NotebookAccessError(name)
    if name == "SLOW":
        import time
        time.sleep(60)
    if name != "OPEN":
        raise SecretNotFoundError(name)
    return "s3cret-value"
"""
NAMES = (
    ("alpha", "1.0"),
    ("alpha", "2.0"),
    ("beta", "1.0"),
    ("gamma", "1.0"),
    ("gamma", "2.0"),
    ("delta", "1.0"),
    ("theirs", "1.0"),
)


@dataclass
class Runtime:
    """An image's interpreter (a virtual environment) with an index beside it; `program` puts a
    program of a few shell lines first on the PATH.
    """

    folder: Path
    index: str = ""
    wheels: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.wheels = {
            f"{name}=={version}": make_wheel(self.folder / "wheels", name, version)
            for name, version in NAMES
        }
        self.index = make_index(self.folder / "index", tuple(self.wheels.values()))
        for name in ("bin", "home", "base"):
            (self.folder / name).mkdir()
        self.uv("venv", "--quiet", "--python", sys.executable, str(self.folder / "image"))

    @property
    def python(self) -> str:
        return str(self.folder / "image/bin/python")

    @property
    def packages(self) -> Path:
        return self.folder / f"image/lib/python{MINOR}/site-packages"

    @property
    def base(self) -> Path:
        return self.folder / "base"

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.base / "status.json").read_text())
        return found

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = expand(json.loads((self.base / "report.json").read_text()))
        return found

    def environ(self, **changes: str) -> dict[str, str]:
        own = {
            "PATH": os.pathsep.join(
                [str(self.folder / "bin"), str(Path(UV).parent), "/usr/bin", "/bin"]
            ),
            "HOME": str(self.folder / "home"),
            "UV_CACHE_DIR": str(self.folder / "cache"),
            "UV_HTTP_RETRIES": "0",
            "LANG": "C.UTF-8",
        }
        return {key: value for key, value in {**own, **changes}.items() if value}

    def uv(self, *words: str) -> None:
        subprocess.run(
            [UV, *words],
            env=self.environ(UV_DEFAULT_INDEX=self.index, UV_NO_CONFIG="1"),
            check=True,
        )

    def bring(self, *pins: str) -> None:
        """Install packages as an image would bring them."""
        self.uv(
            "pip", "install", "--quiet", "--no-cache", "--no-deps", "--python", self.python, *pins
        )

    def in_kernel(self) -> None:
        """Let the interpreter have a kernel: stand-ins of ipython and ipykernel, and ipykernel 2.0
        on the index, with which no kernel comes up.
        """
        for name, version, code in (
            ("ipykernel", "1.0", ""),
            ("ipykernel", "2.0", "raise ImportError('traitlets is too old for this ipykernel')\n"),
        ):
            self.wheels[f"{name}=={version}"] = make_wheel(
                self.folder / "wheels", name, version, code=code
            )
        self.index = make_index(self.folder / "index", tuple(self.wheels.values()))
        self.bring("ipykernel==1.0")
        (self.packages / "ipykernel/kernelapp.py").write_text("class IPKernelApp: ...\n")
        (self.packages / "IPython.py").write_text(IPYTHON)

    def in_colab(self) -> None:
        """Let the interpreter have Colab's packages: stand-ins of those that the kernel imports,
        and of the store of secrets.
        """
        self.in_kernel()
        (self.packages / "google/colab").mkdir(parents=True)
        for name, text in (
            ("__init__", ""),
            ("_kernel", "import ipykernel\n"),
            ("userdata", USERDATA),
        ):
            (self.packages / f"google/colab/{name}.py").write_text(text)
        (self.packages / "colab_kernel_launcher.py").write_text("import google.colab._kernel\n")

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def card(
        self,
        name: str = "Tesla T4",
        driver: str = "580.82.07",
        total: int = 15360,
        used: int = 3,
        count: int = 1,
    ) -> None:
        """Put an nvidia-smi there that tells of such cards."""
        lines = "\n".join(f"echo '{name}, {driver}, {total}, {used}'" for _ in range(count))
        self.program(
            "nvidia-smi",
            f'case "$1" in\n*compute-apps*) echo "4711, python3, {used}";;\n*) {lines};;\nesac',
        )

    def document(self, *pins: str, **changes: Any) -> dict[str, Any]:
        """What a lock of these pins ("alpha==1.0") comes to; dotted keys with `__` replace nested
        values.
        """
        pairs = [tuple(pin.split("==")) for pin in pins]
        isolation = changes.get("isolation", "system")
        packages = [
            {
                "name": name,
                "version": version,
                "index": "pypi",
                "files": self.files(f"{name}=={version}"),
            }
            for name, version in pairs
        ]
        promised = expectations(
            nonce=NONCE,
            target={"name": "colab", "kind": "colab"},
            packages=[{"name": name, "version": version} for name, version in pairs],
            direct=[name for name, _ in pairs],
            python={"version": MINOR, "prefix": ""},
        )
        install = {
            "schema": "provision.install/1",
            "mode": "shared" if isolation == "system" else "own",
            "python_version": MINOR,
            "packages": packages,
        }
        document: dict[str, Any] = {
            "schema": "provision.agent.notebook/1",
            "tool": {"name": "provision", "version": "0.1.0"},
            "spec": {"name": "hf", "stem": "hf", "target": "colab", "digest": "sha256:" + 64 * "1"},
            "lock": {"digest": "sha256:" + 64 * "2", "environment_digest": "sha256:" + 64 * "3"},
            "nonce": NONCE,
            "runtime": None,
            "isolation": isolation,
            "python": MINOR,
            "gpu": None,
            "driver_min": None,
            "system_packages": [],
            "install": {**install, "indexes": {"pypi": self.index}},
            "predicted": {"kept": [], "changed": {}, "added": [], "restart": []},
            "protected": ["ipython", "ipykernel"],
            "env": {},
            "paths": {},
            "secrets": {},
            "uv": {"version": "0.13.9", "files": {"uv-0.13.9-py3-none-any.whl": 64 * "0"}},
            "expectations": promised,
        }
        for key, value in changes.items():
            *route, last = key.split("__")
            block = document
            for part in route:
                block = block[part]
            block[last] = value
        return document

    def files(self, pin: str) -> dict[str, str]:
        return (
            {self.wheels[pin].name: sha256(self.wheels[pin])}
            if pin in self.wheels
            else {f"{pin}.whl": 64 * "0"}
        )

    def lay_out(
        self,
        document: dict[str, Any],
        *,
        clone: bytes = b"",
        code: bytes = b"",
        wheels: bytes = b"",
    ) -> Path:
        """Write the members as the cell does, and return their folder; `code` is
        code.archive, `clone` code.json.
        """
        members = {
            **({"code.json": clone} if clone else {}),
            **({"code.archive": code} if code else {}),
            **({"wheels.zip": wheels} if wheels else {}),
            "document.json": json.dumps(document).encode(),
            **{name: with_bytecode(content) for name, content in PROGRAMS.items()},
        }
        folder = self.base / hashlib.sha256(zip_files(members, first=PROGRAMS)).hexdigest()[:12]
        folder.mkdir(exist_ok=True)
        for name, content in members.items():
            (folder / name).write_bytes(content)
        return folder

    def start(
        self, folder: Path, *words: str, verb: str = "start", **changes: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the cell's file with the image's interpreter, without a kernel."""
        return self.popen(
            [self.python, str(folder / "cell.pyz"), verb, str(folder), *words], **changes
        )

    def cell(
        self,
        folder: Path,
        code: str = "provision_cell.start(FOLDER)",
        before: str = "",
        **changes: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run code as a notebook's cell does: in a process that imports the cell's program from its
        file.
        """
        lines = [
            "import sys",
            before,
            f"FOLDER = {str(folder)!r}",
            "sys.path.insert(0, FOLDER + '/cell.pyz')",
            "import provision_cell",
            code,
        ]
        text = "\n".join(lines)
        return self.popen([self.python, "-c", text], **changes)

    def popen(self, argv: list[str], **changes: str) -> subprocess.CompletedProcess[str]:
        environ = self.environ(**changes)
        return subprocess.run(
            argv,
            env=environ,
            cwd=self.folder / "home",
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
