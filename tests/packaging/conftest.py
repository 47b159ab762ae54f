"""What is built once for all tests of this room: wheel and sdist of a littered copy of the tree,
and a bare environment with the wheel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import uv

from provision.adapters.uv.sources import read_pip_config
from tests.support import make_once

ROOT = Path(__file__).parent.parent.parent
_IGNORED = shutil.ignore_patterns(
    ".git",
    ".venv",
    ".cache",
    ".provision",
    "*_cache",
    ".hypothesis",
    "__pycache__",
    "dist",
    "*.egg-info",
)
LITTER = (
    "specs/.provision/envs/quickstart.local/lib/python3.11/site-packages/torch/huge.py",
    "specs/.provision/state.json",
    "templates/__pycache__/junk.cpython-311.pyc",
    "src/provision/__pycache__/junk.cpython-311.pyc",
    "src/provision_ml.egg-info/PKG-INFO",
    "src/.provision/state.json",
    ".venv/lib/site-packages/junk.py",
    ".cache/uv/junk",
    ".provision/state.json",
    "dist/old.whl",
)
"""What lies about in a checkout that was worked in; the name `huge.py` and its like must not
travel.
"""


@dataclass(frozen=True)
class Built:
    """The two distributions, and the tree they were built from."""

    tree: Path
    wheel: Path
    sdist: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Wheel and sdist of a copy of this tree in which somebody has worked."""

    def make(folder: Path) -> None:
        tree = folder / "provision"
        shutil.copytree(ROOT, tree, ignore=_IGNORED)
        for name in LITTER:
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("litter")
        build(tree, folder / "out")

    folder = make_once(tmp_path_factory, "distributions", make)
    return Built(
        folder / "provision", next(folder.glob("out/*.whl")), next(folder.glob("out/*.tar.gz"))
    )


@pytest.fixture(scope="session")
def wheel_of_sdist(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the unpacked sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    shutil.unpack_archive(built.sdist, folder)
    (tree,) = folder.iterdir()
    return build(tree, folder / "out", "wheel")[0]


@pytest.fixture(scope="session")
def bare(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs folder of an environment that holds the wheel and what it requires, and nothing
    else.
    """

    def make(folder: Path) -> None:
        prefix = str(folder / "env")
        subprocess.run(
            [uv.find_uv_bin(), "venv", "--quiet", "--python", sys.executable, prefix],
            check=True,
            timeout=600,
        )
        install = [
            uv.find_uv_bin(),
            "pip",
            "install",
            "--quiet",
            "--python",
            f"{prefix}/bin/python",
            str(built.wheel),
        ]
        subprocess.run(install, env=outside(), check=True, timeout=600)

    return make_once(tmp_path_factory, "installed", make) / "env/bin"


def build(tree: Path, out: Path, *targets: str) -> tuple[Path, Path]:
    """Build with hatchling as pip would, without an index; returns the wheel and the sdist (or the
    wheel's path twice when only it is wanted).
    """
    words = [word for target in targets or ("wheel", "sdist") for word in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out), *words]
    done = subprocess.run(
        command, cwd=tree, env=outside(), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel, next(out.glob("*.tar.gz"), wheel)


def outside(**changes: str) -> dict[str, str]:
    """The caller's variables without what points at this checkout; pip's index is handed on to uv,
    which does not read pip's files.
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "VIRTUAL_ENV", "PROVISION_"))
    }
    mirror = read_pip_config(os.environ).index_url
    return {**kept, **({"UV_DEFAULT_INDEX": mirror} if mirror else {}), **changes}
