"""A conda channel on disk: the running CPython repacked, and small packages with the names and
constraints of those that have builds for CUDA.

It is made once and kept in the folder that pytest keeps for itself; another content of this
file, or another Python, makes another one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.rig import MINOR, make_wheel

CHANNEL = "conda-forge"
VERSION = ".".join(str(part) for part in sys.version_info[:3])
_NOT_PACKED = shutil.ignore_patterns(
    "test",
    "tests",
    "idlelib",
    "lib2to3",
    "tkinter",
    "site-packages",
    "dist-packages",
    "__pycache__",
    "config-*",
)
_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_PLATFORMS = ("linux-64", "linux-aarch64", "osx-arm64", "win-64")
_SEPARATED = f"python {MINOR}.*"


@dataclass(frozen=True)
class CondaChannel:
    """The channel's folder, and the caller's variable that puts it in the place of conda-forge."""

    folder: Path

    @property
    def address(self) -> str:
        """Its file:// address."""
        return self.folder.as_uri()

    def variables(self) -> dict[str, str]:
        """The variable that names it as a mirror."""
        return {"PROVISION_CHANNEL_CONDA_FORGE": self.address}


def conda_channel(cache: Path) -> CondaChannel:
    """Return the channel, made below `cache` unless it is there already."""
    seen = hashlib.sha256(
        Path(__file__).read_bytes()
        + Path(__file__).with_name("rig.py").read_bytes()
        + f"{sys.version} {sys.base_prefix}".encode()
    )
    folder = cache / f"conda-channel-{seen.hexdigest()[:16]}" / CHANNEL
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        for older in set(cache.glob("conda-channel-*")) - {folder.parent}:
            shutil.rmtree(older, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=cache) as name:
            lay_out(Path(name) / CHANNEL)
            with suppress(OSError):  # another process was first
                Path(name).rename(folder.parent)
            Path(name).mkdir(exist_ok=True)
    return CondaChannel(folder)


def lay_out(folder: Path) -> None:
    """Write all packages and the channel's index."""
    import asyncio

    from rattler.index import index_fs

    with tempfile.TemporaryDirectory() as name:
        staging = Path(name)
        _pack_python(folder, staging / "python")
        for subdir in _PLATFORMS[1:] if sysconfig.get_platform() == "linux-x86_64" else ():
            assemble(folder, "python", VERSION, build="h0_cpython", subdir=subdir)
        if MINOR != "3.12":
            assemble(
                folder, "python", "3.12.8", build="h0_cpython", depends=["__glibc >=2.17,<3.0.a0"]
            )
        for wheel in (
            bundled_wheel("pip"),
            make_wheel(staging, "alpha", "1.0"),
            make_wheel(staging, "alpha", "2.0"),
        ):
            _pack_wheel(folder, wheel, staging / wheel.stem)
        _pack_wheel(
            folder,
            make_wheel(staging, "gizmo", "1.0.post1"),
            staging / "gizmo",
            name="gizmo-base",
            version="1.0",
        )
        _stand_ins(folder)
    asyncio.run(index_fs(folder, write_zst=True, write_shards=False, force=True))


def assemble(
    folder: Path,
    name: str,
    version: str,
    *,
    build: str = "h0_0",
    subdir: str = "linux-64",
    depends: Sequence[str] = (),
    constrains: Sequence[str] = (),
    files: Path | None = None,
    python: bool = False,
    number: int = 0,
) -> None:
    """Write one package into the channel; without `files` it is empty."""
    from rattler_build import assemble_package

    more: dict[str, Any] = (
        {"noarch": "python" if python else "generic"} if subdir == "noarch" else {}
    )
    if files is not None:
        more["files_dir"] = files
    out = folder / subdir
    out.mkdir(parents=True, exist_ok=True)
    more |= {"depends": list(depends), "constrains": list(constrains), "build_number": number}
    assemble_package(
        name,
        version,
        subdir,
        build,
        out,
        compression_level=1,
        timestamp=_DAY,
        detect_prefix=False,
        **more,
    )
    for stray in [path for path in out.iterdir() if path.is_dir()]:
        for made in stray.glob("*.conda"):
            made.rename(out / made.name)
        shutil.rmtree(stray)


def _stand_ins(folder: Path) -> None:
    """What conda-forge has of these names: builds by CUDA that ask for `__cuda`, and all of them
    for a C library.
    """
    libc = "__glibc >=2.17,<3.0.a0"
    for version in ("6.1.2", "7.1.1"):
        assemble(folder, "ffmpeg", version, build="h0_gpl", depends=[libc])
        assemble(
            folder, "ffmpeg", version, build="h0_gpl", subdir="osx-arm64", depends=["__osx >=11.0"]
        )
    assemble(folder, "gxx", "14.3.0", depends=[libc])
    assemble(folder, "newest-libc", "1.0", depends=["__glibc >=2.99"])
    assemble(
        folder,
        "needs-alpha",
        "1.0",
        subdir="noarch",
        depends=["alpha", "python >=3.10"],
        python=True,
    )
    for version, below in (("12.6", "12"), ("12.8", "12"), ("13.0", "13")):
        assemble(
            folder,
            "cuda-version",
            version,
            build="h0_3",
            subdir="noarch",
            constrains=[f"__cuda >={below}"],
        )
    assemble(folder, "cuda-nvcc", "12.6.85", depends=["cuda-version >=12.6,<12.7.0a0"])
    tag = "py" + MINOR.replace(".", "")
    assemble(
        folder, "pytorch", "2.13.0", build=f"cpu_generic_{tag}_h0_0", depends=[_SEPARATED, libc]
    )
    assemble(
        folder, "pytorch", "2.12.0", build=f"cpu_generic_{tag}_h0_0", depends=[_SEPARATED, libc]
    )
    assemble(folder, "only-cuda", "1.0", depends=["__cuda"])
    for cuda, bound in (("126", ">=12.6,<13"), ("130", ">=13.0,<14")):
        needs = [_SEPARATED, "__cuda", f"cuda-version {bound}", "__glibc >=2.28,<3.0.a0"]
        assemble(
            folder,
            "pytorch",
            "2.13.0",
            build=f"cuda{cuda}_generic_{tag}_h0_200",
            depends=needs,
            number=200,
        )


def _pack_python(folder: Path, staging: Path) -> None:
    """Pack the running CPython: its program, its standard library, its shared library where it has
    one.
    """
    stdlib = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(stdlib, staging / f"lib/python{MINOR}", ignore=_NOT_PACKED, symlinks=True)
    (staging / f"lib/python{MINOR}/site-packages").mkdir(exist_ok=True)
    (staging / f"lib/python{MINOR}/site-packages/README.txt").write_text("packages go here\n")
    (staging / "bin").mkdir()
    shutil.copy(
        Path(getattr(sys, "_base_executable", sys.executable)).resolve(),
        staging / f"bin/python{MINOR}",
    )
    for name in ("python", "python3"):
        (staging / "bin" / name).symlink_to(f"python{MINOR}")
    for library in Path(sysconfig.get_config_var("LIBDIR")).glob(f"libpython{MINOR}.so*"):
        shutil.copy(library, staging / "lib" / library.name, follow_symlinks=False)
    assemble(
        folder,
        "python",
        VERSION,
        build="h0_cpython",
        depends=["__glibc >=2.17,<3.0.a0"],
        files=staging,
    )


def bundled_wheel(name: str) -> Path:
    """A wheel that comes with this Python; Debian and Fedora keep them in another folder."""
    import ensurepip

    folders = [
        Path(ensurepip.__file__).parent / "_bundled",
        Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or "nowhere"),
    ]
    return next(wheel for folder in folders for wheel in folder.glob(f"{name}-*.whl"))


def _pack_wheel(
    folder: Path, wheel: Path, staging: Path, *, name: str = "", version: str = ""
) -> None:
    """Pack a wheel as a package that is for any Python, as conda does, under another name and
    version if told so.
    """
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(staging / "site-packages")
    own, its = wheel.name.split("-")[:2]
    info = staging / f"site-packages/{own}-{its}.dist-info"
    (info / "INSTALLER").write_text("conda")
    record = (info / "RECORD").read_text().rstrip("\n")
    (info / "RECORD").write_text(f"{record}\n{info.name}/INSTALLER,,\n")
    for root, _, names in os.walk(staging):
        for one in names:
            os.utime(Path(root) / one, (_DAY.timestamp(), _DAY.timestamp()))
    assemble(
        folder,
        name or own,
        version or its,
        build="pyh0_0",
        subdir="noarch",
        depends=["python >=3.10"],
        files=staging,
        python=True,
    )
