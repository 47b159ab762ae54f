"""Observes the shared libraries in memory after torch is imported, and their origin."""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable
from glob import escape, glob
from importlib import import_module
from pathlib import Path

from ..context import ObserverContext
from ..model import Readings
from .variables import harmful_part

_NAMES = (
    r"(?:cudnn|cublas|cusparse|cusolver|cufft|cupti|nvrtc)\w*|curand|nvJitLink|nccl|cudart"
    r"|nvshmem_host|c10\w*|torch\w*|gomp|iomp5|omp"
)
WATCHED_LIBRARIES = re.compile(rf"lib(?:{_NAMES})(?:-[0-9a-f]+)?\.so[\d.]*")
"""Libraries of torch's wheel and its requirements, and OpenMP runtimes; libcuda is the driver's."""
_OPENMP = re.compile(r"lib(gomp|iomp5|omp)(?![a-z])")
_OF_SYSTEMS = ("/usr", "/usr/local")
"""Prefixes of interpreters that hold the system's libraries too: there only site-packages count as
the environment.
"""


def _libraries(context: ObserverContext) -> Readings:
    """Return watched libraries outside the environment, and OpenMP runtimes; None if unknown.

    A torch that does not import may have loaded them before it failed, and they can be the reason.
    """
    try:
        import_module("torch")
    except Exception:  # noqa: BLE001
        imported = False
    else:
        imported = True
    maps = context.root / "proc/self/maps"
    try:
        lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {"libraries.outside": None, "libraries.openmp": None}
    paths = sorted(
        {
            path
            for line in lines
            if (path := line.partition("/")[1] + line.partition("/")[2])
            and WATCHED_LIBRARIES.fullmatch(os.path.basename(path))
        }
    )
    outside = [path for path in paths if not _is_inside(path, _folders())]
    openmp = sorted({path for path in paths if _OPENMP.match(os.path.basename(path))})
    return {
        "libraries.outside": outside,
        "libraries.openmp": sorted(os.path.basename(path) for path in openmp),
        "_libraries.count": len(paths),
        "_libraries.imported": imported,
        "_libraries.variables": {
            name: part
            for name in ("LD_PRELOAD", "LD_LIBRARY_PATH")
            if (part := harmful_part(name, context.environ.get(name, ""), context.root))
        },
    }


def _folders() -> list[str]:
    prefix = os.path.realpath(sys.prefix)
    return [
        *(os.path.realpath(folder) for folder in _site_packages()),
        *([prefix] if prefix not in _OF_SYSTEMS else []),
    ]


def _site_packages() -> list[str]:
    listed = [*site.getsitepackages(), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return [
        *dict.fromkeys(listed),
        *(
            entry
            for entry in sys.path
            if os.path.basename(entry) in ("site-packages", "dist-packages")
        ),
    ]


def _is_inside(path: str, folders: Iterable[str]) -> bool:
    folders = list(folders)
    if any(path.startswith(folder.rstrip("/") + "/") for folder in folders):
        return True
    # An installer may link each file into its cache; the kernel then names the file there.
    name = escape(os.path.basename(path))
    matches = (
        match
        for folder in folders
        for depth in ("*", "*/*", "*/*/*")
        for match in glob(f"{escape(folder)}/{depth}/{name}")
    )
    return any(Path(match).resolve() == Path(path) for match in matches)


OBSERVERS = {"P08": _libraries}
