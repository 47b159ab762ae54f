"""The agent's programs as zipapps: files that Python 3.10 and newer run, the same on every machine.

A zipapp has one package: the program's own folder, and of the agent's core the modules that the
program imports. They are listed here, and a test compares the lists with the imports.
"""

from __future__ import annotations

from pathlib import Path

import provision
from provision.agent.core.zip_files import zip_files
from provision.agent.probe.own_code import CORE_MODULES, digest_of_sources

_MAIN = "import sys\n\n{before}from {package}.{program}.cli import main\n\nsys.exit(main())\n"
_TOO_OLD = """if sys.version_info < (3, 10):
    sys.stderr.write(
        "probe: this is Python %d.%d, and the probe needs 3.10 or newer: run it with the Python of "
        "the environment\\n" % sys.version_info[:2]
    )
    sys.exit(2)

"""
"""Stands before the first import of the probe, which people copy to machines: an older Python
cannot even parse the rest.
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
CORE_OF_PROGRAM: dict[str, tuple[str, ...]] = {
    "probe": CORE_MODULES,
    "install": (
        "files",
        "installed_packages",
        "json_fields",
        "process",
        "record_audit",
        "redact",
        "versions",
    ),
    "workbench": (
        "agent_config",
        "files",
        "gpu_names",
        "json_fields",
        "nvidia_smi",
        "process",
        "redact",
        "system_packages",
        "timed_http",
        "uv_tool",
    ),
    "notebook": (
        "agent_config",
        "files",
        "gpu_names",
        "installed_packages",
        "json_fields",
        "nvidia_smi",
        "process",
        "record_audit",
        "redact",
        "system_packages",
        "uv_tool",
        "versions",
        "zip_files",
    ),
}
"""The modules of the core in each zipapp, by the agent's folder."""
_PUBLIC_IMPORTS = {"notebook": "from .notebook import StageError, rollback, run, start, verify\n"}
"""What a zipapp's package exports."""


def probe_digest() -> str:
    """Return the digest that the probe gives itself in its reports."""
    return digest_of_sources(agent_files("probe"))


def probe_zipapp() -> bytes:
    """Return the program that verifies an environment."""
    return zip_files(agent_files("probe"))


def installer_zipapp() -> bytes:
    """Return the program that installs what a lock names."""
    return zip_files(agent_files("install"))


def workbench_zipapp() -> bytes:
    """Return the program that sets up a Workbench instance."""
    return zip_files(agent_files("workbench"))


def notebook_zipapp() -> bytes:
    """Return the package whose functions a notebook calls."""
    return zip_files(agent_files("notebook"))


def agent_files(program: str) -> dict[str, bytes]:
    """Return the files of a zipapp: __main__.py, and the package with the program and its core."""
    source, package = Path(provision.__file__).parent / "agent", _PACKAGES[program]
    core = [source / "core" / f"{name}.py" for name in ("__init__", *CORE_OF_PROGRAM[program])]
    files = {
        f"{package}/{path.relative_to(source).as_posix()}": path.read_bytes()
        for path in (*core, *(source / program).rglob("*.py"))
    }
    before = _TOO_OLD if program == "probe" else ""
    main = _MAIN.format(package=package, program=program, before=before)
    files[f"{package}/__init__.py"] = _PUBLIC_IMPORTS.get(program, "").encode()
    files["__main__.py"] = main.encode()
    return files
