"""Requirements of tests that a machine may lack, what is made once for all processes of a run, and
programs with their bytecode.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import io
import json
import os
import py_compile
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from provision.facts.tables_in_use import (
    COMPILED_NAME,
    INSTALLED_TABLES,
    LAZY_NAME,
    tables_in_use,
)

NAMES = ("browser", "root", "npm", "index", "cc", "device")


def require(name: str, present: bool, reason: str) -> None:
    """Go on when `present`; else skip with `reason`, or fail where the environment variable REQUIRE
    (names, comma-separated) promises `name`.
    """
    if name not in NAMES:
        raise ValueError(f"{name!r} is none of {', '.join(NAMES)}")
    if present:
        return
    if name in os.environ.get("REQUIRE", "").replace(",", " ").split():
        pytest.fail(f"REQUIRE names {name}, but {reason}", pytrace=False)
    pytest.skip(reason)


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` fills once for all processes of this run of the tests; tests only
    read it, or copy it.

    Waits while another process fills it. If `make` raises, the next caller tries again in a new
    folder.
    """
    own = factory.getbasetemp()
    root = (own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own) / "made-once"
    root.mkdir(exist_ok=True)
    with (root / f"{name}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        *_, state = lock.read().splitlines() or [""]
        if state.startswith("made "):
            return root / state.removeprefix("made ")
        folder = root / f"{name}-{os.urandom(4).hex()}"
        folder.mkdir()
        make(folder)
        lock.write(f"made {folder.name}\n")
        return folder


@functools.cache
def with_bytecode(shipped: bytes) -> bytes:
    """Return the zip of a program with its bytecode: without it each process would compile all of
    it, half of its time.
    """
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(shipped)) as archive,
        zipfile.ZipFile(written, "w") as out,
        tempfile.TemporaryDirectory() as folder,
    ):
        for name in archive.namelist():
            out.writestr(name, archive.read(name))
            if name != "__main__.py":
                source = Path(archive.extract(name, folder))
                compiled = py_compile.compile(
                    str(source),
                    f"{source}c",
                    name,
                    doraise=True,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )
                out.writestr(f"{name}c", Path(str(compiled)).read_bytes())
    return written.getvalue()


def running(word: str) -> list[str]:
    """Return the command lines of this machine's processes that contain a word."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = file.read_bytes().decode("utf-8", "replace")
            found += [line] if word in line else []
    return found


@contextmanager
def facts_with_prices(
    folder: Path, *, without: str = "", cheap: tuple[str, ...] = ()
) -> Iterator[None]:
    """Use facts without the price of a machine type, and with machines for a cent in Iowa."""
    tables = folder / "tables"
    shutil.copytree(INSTALLED_TABLES / LAZY_NAME, tables / LAZY_NAME)
    shutil.copy(INSTALLED_TABLES / COMPILED_NAME, tables)
    path = tables / LAZY_NAME / "prices.json"
    prices = json.loads(path.read_bytes())
    prices["rows"] = [
        *([name, "", 0, "us-central1", 0.01, None, "skypilot"] for name in cheap),
        *(row for row in prices["rows"] if row[0] not in (without, *cheap)),
    ]
    path.write_text(json.dumps(prices), encoding="utf-8")
    token = tables_in_use.set(tables)
    try:
        yield
    finally:
        tables_in_use.reset(token)
