"""The islands, each as one file that any Python from 3.10 on can run: a zipapp with the same bytes every time."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import provision
from provision.probe.package import digest_of_sources

_MAIN = "import sys\n\n{before}from {package}.{island}.cli import main\n\nsys.exit(main())\n"
_TOO_OLD = """if sys.version_info < (3, 10):
    sys.stderr.write("probe: this is Python %d.%d, and the probe needs 3.10 or newer: run it with the Python of the environment\\n" % sys.version_info[:2])
    sys.exit(2)

"""
"""Stands before the first import of the probe, which is carried to machines by hand: no older Python can even read the rest."""
_PUBLIC_IMPORTS = {"cell": "from .cell import Stopped, rollback, run, start, verify\n"}
"""What the package of a zipapp itself offers."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def probe_digest() -> str:
    """Return the digest that the probe gives itself in its reports: a verdict holds as long as it stays."""
    return digest_of_sources(_agent_files("probe"))


def probe_zipapp() -> bytes:
    """Return the probe's zipapp: source files only, sorted, with one fixed time.

    It holds a __main__.py and the package provision_probe, in which `probe` and `agent` stand beside each other as they do here.
    """
    return zip_files(_agent_files("probe"))


def installer_zipapp() -> bytes:
    """Return the installer's zipapp: the package provision_installing, laid out as the probe's."""
    return zip_files(_agent_files("installing"))


def workbench_zipapp() -> bytes:
    """Return the zipapp that runs on an instance: the package provision_device, laid out as the probe's."""
    return zip_files(_agent_files("device"))


def notebook_zipapp() -> bytes:
    """Return the zipapp that runs in a notebook: the package provision_cell, laid out as the probe's; notebooks call its functions."""
    return zip_files(_agent_files("cell"))


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """Return a zip file of these files, by name: sorted, with one fixed time, and the same bytes on every machine."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3  # Unix, on whatever system it is made
            # Not compressed: what deflate makes depends on the zlib in use, and these bytes are compared between machines.
            entry.compress_type = zipfile.ZIP_STORED
            archive.writestr(entry, files[name])
    return buffer.getvalue()


def _agent_files(island: str) -> dict[str, bytes]:
    source, package = Path(provision.__file__).parent, f"provision_{island}"
    paths = [*(source / "agent").rglob("*.py"), *(source / island).rglob("*.py")]
    files = {f"{package}/{path.relative_to(source).as_posix()}": path.read_bytes() for path in paths}
    main = _MAIN.format(package=package, island=island, before=_TOO_OLD if island == "probe" else "")
    return {**files, f"{package}/__init__.py": _PUBLIC_IMPORTS.get(island, "").encode(), "__main__.py": main.encode()}
