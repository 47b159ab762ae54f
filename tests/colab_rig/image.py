"""The image of a runtime: an interpreter of Python 3.11 with packages of a real runtime in their
real versions, made once and cloned by hard links.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from provision.facts import load_facts
from provision.facts.lazy_tables import load_colab_packages

PYTHON = "3.11"
RUNTIME = "2025.07"
"""The runtime version with that Python, whose row in the facts the tests replace."""
HERE = Path(__file__).parent


class Missing(Exception):
    """Something that the image is made of is not to be had on this machine."""


@functools.cache
def packages() -> Mapping[str, str]:
    """What the image holds, as the facts list it for a runtime: name to version, "?" for
    google-colab.
    """
    return {**_listed("small"), **_listed("with torch"), "google-colab": "?"}


def make(folder: Path, uv: str) -> Path:
    """Make an image without torch, quick to clone, and return its prefix; raises Missing."""
    if "deb_system" in sysconfig.get_scheme_names():
        raise Missing(
            "a copy of Debian's own Python does not look in its own site-packages; name "
            "another Python: make test PYTHON=PATH"
        )
    prefix = folder / "usr"
    _interpreter(prefix)
    done = _installed(uv, prefix, *_pins("small"))
    assert done.returncode == 0, done.stderr
    _google_colab(_site(prefix))
    _movable(prefix)
    # Bytecode: a real runtime has been started before, too.
    _started(
        prefix,
        "import google.colab, google.colab._kernel, colab_kernel_launcher, "
        "pip._internal.cli.main, pip._internal.commands.install",
    )
    return prefix


def with_torch(small: Path, folder: Path, uv: str) -> Path:
    """Make the whole image of a small one and return its prefix; raises Missing."""
    prefix = folder / "usr"
    clone(small, prefix)
    done = _installed(uv, prefix, *_pins("with torch"), *_wheels())
    if done.returncode:
        raise Missing(
            "torch and what it needs are not to be had (UV_FIND_LINKS, PIP_FIND_LINKS): "
            f"{done.stderr.strip()[-300:]}"
        )
    _movable(prefix)
    _started(
        prefix,
        "import torch, torch.utils.data\nweights = "
        "torch.nn.Parameter(torch.zeros(1))\ntorch.optim.AdamW([weights]).step()",
    )
    return prefix


def program() -> Path:
    """The Python that images are made of."""
    return _python()[1]


def clone(prefix: Path, target: Path) -> None:
    """Copy a prefix by hard links: whoever changes a file there in place changes the image;
    installers replace files.
    """
    shutil.copytree(prefix, target, symlinks=True, copy_function=os.link)


def _listed(part: str) -> dict[str, str]:
    """Return a part of packages.txt: name to version."""
    real, held = load_colab_packages()[RUNTIME], {}
    text = (
        (HERE / "packages.txt")
        .read_text(encoding="utf-8")
        .partition(f"[{part}]")[2]
        .partition("[")[0]
    )
    for word in (word for line in text.splitlines() for word in line.partition("#")[0].split()):
        name, _, version = word.partition("==")
        held[name] = version or real[name]
    return held


def _pins(part: str) -> list[str]:
    return [f"{name}=={version}" for name, version in _listed(part).items()]


def _site(prefix: Path) -> Path:
    return prefix / f"lib/python{PYTHON}/site-packages"


def _installed(uv: str, prefix: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    line = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--python",
        str(prefix / f"bin/python{PYTHON}"),
        "--no-deps",
        *words,
    ]
    return subprocess.run(line, env=environment, capture_output=True, text=True)


def _started(prefix: Path, code: str) -> None:
    done = subprocess.run(
        [str(prefix / f"bin/python{PYTHON}"), "-c", code],
        capture_output=True,
        text=True,
        env=_plain(),
    )
    assert done.returncode == 0, done.stderr


def _wheels() -> list[str]:
    """Return where torch's builds for CPU come from: the folders of wheels that this machine names,
    else PyTorch's index.
    """
    if os.environ.get("UV_FIND_LINKS"):
        return []
    links = os.environ.get("PIP_FIND_LINKS", "").split()
    index = os.environ.get("PROVISION_INDEX_PYTORCH_CPU") or load_facts().flavour_index("cpu")
    return [word for link in links for word in ("--find-links", link)] or ["--index", index]


def _interpreter(prefix: Path) -> None:
    """Lay out an interpreter of its own, no virtual environment: a copy of the program, links to
    the standard library, an empty site-packages.
    """
    home, program = _python()
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(program, prefix / f"bin/python{PYTHON}")
    for name in ("python", "python3"):
        (prefix / "bin" / name).symlink_to(f"python{PYTHON}")
    library = prefix / f"lib/python{PYTHON}"
    (library / "site-packages").mkdir(parents=True)
    for entry in (home / f"lib/python{PYTHON}").iterdir():
        if entry.name not in (
            "site-packages",
            "dist-packages",
            "sitecustomize.py",
            "EXTERNALLY-MANAGED",
        ):
            (library / entry.name).symlink_to(entry)
    asked = [
        str(prefix / "bin/python"),
        "-c",
        "import sys, ssl, sqlite3; print(sys.prefix == sys.base_prefix == sys.argv[1])",
        str(prefix),
    ]
    done = subprocess.run(asked, capture_output=True, text=True, env=_plain())
    if done.stdout.strip() != "True":
        raise Missing(
            f"a copy of {program} is no interpreter of its own: "
            f"{(done.stdout + done.stderr).strip()[-300:]}"
        )


def _python() -> tuple[Path, Path]:
    """Return the prefix and program of a Python 3.11: this one's, or the one on the PATH."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" == PYTHON:
        return Path(sys.base_prefix), Path(sys.executable).resolve()
    found = shutil.which(f"python{PYTHON}")
    asked = [
        str(found),
        "-c",
        (
            "import json, os, sys; print(json.dumps([sys.base_prefix, "
            "os.path.realpath(sys.executable)]))"
        ),
    ]
    done = subprocess.run(asked, capture_output=True, text=True) if found else None
    if done is None or done.returncode:
        raise Missing(f"there is no Python {PYTHON} on this machine")
    home, program = json.loads(done.stdout)
    return Path(home), Path(program)


def _google_colab(site: Path) -> None:
    """Install the stand-in as the distribution google-colab 1.0.0, with a RECORD."""
    stem = "google_colab-1.0.0.dist-info"
    shutil.copytree(
        HERE / "stand_in", site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    (site / stem).mkdir()
    (site / stem / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: google-colab\nVersion: 1.0.0\n"
    )
    (site / stem / "INSTALLER").write_text("pip\n")
    files = [
        *sorted(path.relative_to(site) for path in (site / "google/colab").rglob("*.py")),
        Path(stem, "METADATA"),
        Path(stem, "INSTALLER"),
    ]
    lines = [
        f"{path},sha256={_digest(site / path)},{(site / path).stat().st_size}" for path in files
    ]
    (site / stem / "RECORD").write_text("\n".join([*lines, f"{stem}/RECORD,,"]) + "\n")


def _movable(prefix: Path) -> None:
    """Let programs find the interpreter of the clone that they lie in by its PATH: their first
    lines would name that of the image.
    """
    records = list(_site(prefix).glob("*.dist-info/RECORD"))
    for program in (
        path
        for path in (prefix / "bin").iterdir()
        if not path.is_symlink() and path.read_bytes()[:2] == b"#!"
    ):
        _, _, rest = program.read_text(encoding="utf-8").partition("\n")
        program.write_text(f"#!/usr/bin/env python{PYTHON}\n{rest}", encoding="utf-8")
        named = f"../../../bin/{program.name},"
        for record in records:
            lines = record.read_text(encoding="utf-8").splitlines()
            told = f"{named}sha256={_digest(program)},{program.stat().st_size}"
            if any(line.startswith(named) for line in lines):
                record.unlink()  # in place, it would change in uv's cache
                record.write_text(
                    "\n".join([told if line.startswith(named) else line for line in lines]) + "\n",
                    encoding="utf-8",
                )


def _digest(path: Path) -> str:
    return (
        base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
    )


def _plain() -> dict[str, str]:
    kept = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")
    found = {name: os.environ[name] for name in kept if name in os.environ}
    shared = (
        sysconfig.get_config_var("LIBDIR") if sysconfig.get_config_var("Py_ENABLE_SHARED") else None
    )
    return {
        **found,
        **({"LD_LIBRARY_PATH": str(shared)} if shared and "LD_LIBRARY_PATH" not in found else {}),
    }
