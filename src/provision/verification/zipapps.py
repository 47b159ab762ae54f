"""The programs of the agent as zipapps: files that Python 3.10 and newer run, with the same bytes
on every machine.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import provision
from provision.agent.probe.own_code import digest_of_sources

_MAIN = "import sys\n\n{before}from {package}.{program}.cli import main\n\nsys.exit(main())\n"
_TOO_OLD = """if sys.version_info < (3, 10):
    sys.stderr.write("probe: this is Python %d.%d, and the probe needs 3.10 or newer: run it with the Python of the environment\\n" % sys.version_info[:2])
    sys.exit(2)

"""  # noqa: E501
"""Stands before the first import of the probe, which is carried to machines by hand: no older
Python can even read the rest.
"""
_PACKAGES = {
    "probe": "provision_probe",
    "install": "provision_installing",
    "workbench": "provision_device",
    "notebook": "provision_cell",
}
"""The package in each zipapp, by the agent's folder. Rendered notebooks import provision_cell:
these names are public.
"""
_PUBLIC_IMPORTS = {"notebook": "from .notebook import StageError, rollback, run, start, verify\n"}
"""What a zipapp's package exports."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def probe_digest() -> str:
    """Return the digest that the probe gives itself in its reports: a verdict holds as long as it
    stays.
    """
    return digest_of_sources(_agent_files("probe"))


def probe_zipapp() -> bytes:
    """Return the probe as a zipapp: a __main__.py and the package provision_probe with `core` and
    `probe` of the agent.
    """
    return zip_files(_agent_files("probe"))


def installer_zipapp() -> bytes:
    """Return the installer as a zipapp: the package provision_installing."""
    return zip_files(_agent_files("install"))


def workbench_zipapp() -> bytes:
    """Return the zipapp that runs on a Workbench instance: the package provision_device."""
    return zip_files(_agent_files("workbench"))


def notebook_zipapp() -> bytes:
    """Return the zipapp that runs in a notebook: the package provision_cell, whose functions
    notebooks call.
    """
    return zip_files(_agent_files("notebook"))


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """Return a zip file of these files, by name: sorted, with one fixed time, and the same bytes on
    every machine.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3  # Unix, on whatever system it is made
            # Not compressed: what deflate makes depends on the zlib in use, and these bytes are
            # compared between machines.
            entry.compress_type = zipfile.ZIP_STORED
            archive.writestr(entry, files[name])
    return buffer.getvalue()


def _agent_files(program: str) -> dict[str, bytes]:
    """Return the files of an agent's zipapp: the package with `core` and the program's own folder,
    and the __main__.py that starts it.
    """
    source, package = Path(provision.__file__).parent / "agent", _PACKAGES[program]
    paths = [*(source / "core").rglob("*.py"), *(source / program).rglob("*.py")]
    files = {
        f"{package}/{path.relative_to(source).as_posix()}": path.read_bytes() for path in paths
    }
    main = _MAIN.format(
        package=package, program=program, before=_TOO_OLD if program == "probe" else ""
    )
    return {
        **files,
        f"{package}/__init__.py": _PUBLIC_IMPORTS.get(program, "").encode(),
        "__main__.py": main.encode(),
    }
