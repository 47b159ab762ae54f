"""A device for the installer: an index, an interpreter with packages of its own, and the installer
run as the one file that it is shipped as.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from provision.verification.device_files import installer_zipapp
from tests.rig import MINOR, make_index, make_wheel
from tests.support import with_bytecode

UV = str(Path(sys.executable).with_name("uv"))


@dataclass
class Device:
    """A folder with an index of alpha, beta, gamma and delta 1.0, gamma 2.0 and theirs 1.0, and an
    empty virtual environment as interpreter.
    """

    folder: Path
    index: str = ""
    wheels: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [
            ("alpha", "1.0"),
            ("beta", "1.0"),
            ("gamma", "1.0"),
            ("gamma", "2.0"),
            ("delta", "1.0"),
            ("theirs", "1.0"),
        ]
        self.wheels = {
            f"{name}=={version}": make_wheel(self.folder / "wheels", name, version)
            for name, version in names
        }
        self.index = make_index(self.folder / "index", tuple(self.wheels.values()))
        (self.folder / "installer.pyz").write_bytes(with_bytecode(installer_zipapp()))
        self.uv("venv", "--quiet", "--python", sys.executable, str(self.folder / "env"))

    @property
    def python(self) -> Path:
        return self.folder / "env/bin/python"

    @property
    def packages(self) -> Path:
        return self.folder / f"env/lib/python{MINOR}/site-packages"

    def environment(self, **changes: str) -> dict[str, str]:
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PIP_", "UV_", "PYTHON", "VIRTUAL_ENV"))
        }
        own = {
            "HOME": str(self.folder),
            "UV_CACHE_DIR": str(self.folder / "cache"),
            "UV_LINK_MODE": "hardlink",
            "UV_HTTP_RETRIES": "0",
        }
        return {**kept, **own, **changes}

    def uv(self, *words: str) -> None:
        subprocess.run(
            [UV, *words],
            env=self.environment(UV_DEFAULT_INDEX=self.index, UV_NO_CONFIG="1"),
            check=True,
        )

    def bring(self, *pins: str) -> None:
        """Install packages as an image would bring them: without us, by a cache of their own."""
        self.uv(
            "pip",
            "install",
            "--quiet",
            "--no-cache",
            "--no-deps",
            "--python",
            str(self.python),
            *pins,
        )

    def document(self, *pins: str, mode: str = "shared", **changes: Any) -> dict[str, Any]:
        """What a lock of these pins ("alpha==1.0") comes to."""
        packages = [
            {
                "name": pin.split("==")[0],
                "version": pin.split("==")[1],
                "index": "pypi",
                "files": {self.wheels[pin].name: sha256(self.wheels[pin])},
            }
            for pin in pins
        ]
        base = {
            "schema": "provision.install/1",
            "mode": mode,
            "python": str(self.python),
            "python_version": MINOR,
            "packages": packages,
        }
        return {**base, "indexes": {"pypi": self.index}, **changes}

    def install(
        self,
        document: Mapping[str, Any],
        *words: str,
        interpreter: tuple[str, ...] = (sys.executable, "-I", "-S"),
        **changes: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run the installer's file; without site-packages, so nothing but the standard library can
        be imported.
        """
        (self.folder / "install.json").write_text(json.dumps(document))
        named = (
            "--document",
            str(self.folder / "install.json"),
            "--result",
            str(self.folder / "installed.json"),
            "--uv",
            UV,
        )
        argv = [*interpreter, str(self.folder / "installer.pyz"), "install", *named, *words]
        return subprocess.run(
            argv,
            env=self.environment(**changes),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "installed.json").read_text())
        return found

    def provenance(self) -> dict[str, str]:
        return {name: one["provenance"] for name, one in self.result()["packages"].items()}

    def there(self) -> dict[str, bytes]:
        """Every file of the environment's packages with its content."""
        return {
            str(path.relative_to(self.packages)): path.read_bytes()
            for path in sorted(self.packages.rglob("*"))
            if path.is_file()
        }

    def tamper(self, pin: str) -> None:
        """Put another file of the same name on the index, and forget what was downloaded."""
        name, version = pin.split("==")
        shutil.rmtree(self.folder / "index" / name)
        make_index(
            self.folder / "index",
            (
                make_wheel(
                    self.folder / "other", name, version, code="import os  # not what was locked\n"
                ),
            ),
        )
        shutil.rmtree(self.folder / "cache", ignore_errors=True)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def copy_of_python(prefix: Path) -> Path:
    """Make a copy of this machine's Python with a marker of another installer: its library is a
    folder of links, its packages are its own.
    """
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    library = Path(os.__file__).resolve().parent
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib" / library.name / "site-packages").mkdir(parents=True)
    python = Path(shutil.copy(base, prefix / "bin" / f"python{MINOR}"))
    for entry in library.iterdir():
        if entry.name not in ("site-packages", "dist-packages", "EXTERNALLY-MANAGED"):
            (prefix / "lib" / library.name / entry.name).symlink_to(entry)
    ask = "import sys, os, zlib; print(sys.prefix, os.path.dirname(os.__file__))"
    told = subprocess.run(
        [str(python), "-I", "-c", ask], capture_output=True, text=True, check=False
    )
    if told.returncode or told.stdout.split() != [str(prefix), str(prefix / "lib" / library.name)]:
        pytest.skip(f"{base} cannot be copied: {told.stdout}{told.stderr}")
    (prefix / "lib" / library.name / "EXTERNALLY-MANAGED").write_text(
        "[externally-managed]\nError=not with pip\n"
    )
    return python
