"""A small real environment of made-up packages, and the shipped probe run in it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.agent.probe.report_json import expand
from tests.support import require


@dataclass
class Environment:
    """A virtual environment with made-up packages, and the expectations that describe it."""

    root: Path
    probe: Path
    document: Callable[..., dict[str, Any]]
    packages: dict[str, str]
    before: tuple[str, ...] = ()
    """What the probe is started by, such as a program that takes rights away."""

    @property
    def python(self) -> str:
        return str(self.root / "bin" / "python")

    def add(
        self, name: str, code: str = "", version: str = "1.0", requires: str = ""
    ) -> Environment:
        site = next(self.root.glob("lib/python*/site-packages"))
        write_package(site, name, code, version, requires)
        self.packages[name] = version
        return self

    def verify(
        self, *arguments: str, environ: dict[str, str] | None = None, **changes: Any
    ) -> tuple[int, dict[str, Any], str]:
        process = self.start(*arguments, environ=environ, **changes)
        said, _ = process.communicate(timeout=600)
        report = self.root / "report.json"
        return (
            process.returncode,
            expand(json.loads(report.read_text(encoding="utf-8"))) if report.exists() else {},
            said,
        )

    def start(
        self, *arguments: str, environ: dict[str, str] | None = None, **changes: Any
    ) -> subprocess.Popen[str]:
        expectations = self.root / "expectations.json"
        promised = {
            "python": {
                "version": f"{sys.version_info.major}.{sys.version_info.minor}",
                "prefix": str(self.root),
            },
            "packages": [
                {"name": name, "version": version} for name, version in self.packages.items()
            ],
            "direct": list(self.packages),
            **changes,
        }
        expectations.write_text(json.dumps(self.document(**promised)), encoding="utf-8")
        command = [
            *self.before,
            self.python,
            str(self.probe),
            "verify",
            "--expectations",
            str(expectations),
            "--out",
            str(self.root / "report.json"),
            *arguments,
        ]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**clean_environ(), **(environ or {})},
        )


def without_rights() -> tuple[str, ...]:
    """What starts a program to which permissions apply, whoever runs the tests: root may read and
    write all.
    """
    if os.geteuid() != 0:
        return ()
    require(
        "root",
        shutil.which("setpriv") is not None,
        "root's rights are taken away by setpriv (util-linux)",
    )
    return ("setpriv", "--inh-caps=-all", "--bounding-set=-all", "--")


def in_namespace(script: str) -> tuple[str, ...]:
    """Return what starts a program behind a shell script in new mounts; `exec "$@"` is added."""
    require(
        "root",
        os.geteuid() == 0 and shutil.which("unshare") is not None,
        "mounts are made in a namespace, which needs root and unshare",
    )
    return ("unshare", "--mount", "sh", "-ec", f'{script}\nexec "$@"', "sh")


def clean_environ() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | {
        "PYTHONDONTWRITEBYTECODE": "1"
    }


def write_package(site: Path, name: str, code: str, version: str, requires: str = "") -> None:
    (site / name).mkdir(parents=True)
    (site / name / "__init__.py").write_text(code, encoding="utf-8")
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}\nRequires-Dist: "
        "not-a-header\n",
        encoding="utf-8",
    )
    record = [
        f"{file.relative_to(site)},{hashed(file)},{file.stat().st_size}\n"
        for file in (site / name / "__init__.py", info / "METADATA")
    ]
    (info / "RECORD").write_text("".join(record) + f"{info.name}/RECORD,,\n", encoding="utf-8")


def hashed(file: Path) -> str:
    return (
        "sha256="
        + base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
    )


def checks(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {check["id"]: check for check in report["checks"]}
