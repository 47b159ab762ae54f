"""The environment of a lock on the data disk, made as its user: uv, Python, packages, kernel."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.process import NOT_STARTED
from ..core.uv_tool import LockedUv, parse_uv_version, pip_arguments
from .document import Document
from .install_progress import report_install_progress
from .instance import Instance, PhaseFailed

MARKER_FILE = "provision.json"
_MARKER_SCHEMA = "provision.environment/1"
_INSTALL_S, _FETCH_S = 3600.0, 900.0
_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"
_DIGEST12 = re.compile(r"[0-9a-f]{12}")
_CONDA = ("/opt/conda", "/opt/micromamba")


def environment_prefix(document: Document, instance: Instance) -> Path:
    """Return the path of the environment, which is named by its digest."""
    return instance.provision_folder / "envs" / document.digest[:12]


def is_environment_complete(document: Document, instance: Instance) -> bool:
    """Return whether the environment is whole: its marker, written last, fits, and Python starts.

    An upgrade of the image may have removed the interpreter.
    """
    try:
        marker = json.loads(
            instance.read_file(environment_prefix(document, instance) / MARKER_FILE) or "null"
        )
    except ValueError:
        return False
    return (
        bool(marker == _marker(document, instance))
        and _minor(str(environment_prefix(document, instance) / "bin/python"), instance)
        == document.python
    )


def find_uv(document: Document, instance: Instance) -> str:
    """Return a uv: the machine's if it is the locked version or none is locked, else ours."""
    there = instance.which("uv")
    if document.uv is None:
        if there is None:
            raise PhaseFailed("there is no uv on this machine, and the document names none")
        return there
    if there and _uv_version(there, instance) == document.uv.version:
        return there
    target = document.uv.folder(instance.provision_folder / "tools")
    program = str(target / "bin/uv")
    if _uv_version(program, instance) != document.uv.version:
        _fetch_uv(document, document.uv, target, instance)
    return program


def find_python(document: Document, uv: str, instance: Instance) -> str:
    """Return an interpreter of the locked version: uv's, the image's conda's, or a download."""
    variables = _uv_variables(instance)
    answer = instance.run(
        [uv, "python", "find", "--system", document.python], 120, variables=variables
    )
    if answer.code == 0 and _minor(found := answer.stdout, instance) == document.python:
        return found
    for folder in _CONDA:
        for candidate in (Path(folder), *sorted(Path(folder).glob("envs/*"))):
            path = str(candidate / f"bin/python{document.python}")
            if _minor(path, instance) == document.python:
                return path
    mirror = {"UV_PYTHON_INSTALL_MIRROR": document.python_mirror} if document.python_mirror else {}
    fetch = {**variables, **mirror, "UV_PYTHON_DOWNLOADS": "manual"}
    instance.run_checked(
        f"no Python {document.python} on this image, and uv cannot fetch it",
        [uv, "python", "install", document.python],
        _FETCH_S,
        variables=fetch,
    )
    return instance.run_checked(
        f"no Python {document.python}",
        [uv, "python", "find", "--managed-python", document.python],
        120,
        variables=variables,
    )


def create_environment(
    document: Document, uv: str, python: str, instance: Instance, told: Callable[[int], None]
) -> dict[str, Any]:
    """Make the environment: interpreter, packages by hash, and the marker last; return counts.

    `told` hears now and then how many packages have come.
    """
    where = environment_prefix(document, instance)
    variables = _uv_variables(instance)
    instance.run_checked(
        f"cannot make the environment {where}",
        [uv, "venv", "--clear", "--python", python, str(where)],
        300,
        variables=variables,
    )
    instance.write_file(
        where / "install.json",
        json.dumps({**document.install, "python": str(where / "bin/python")}),
    )
    arguments = [
        "install",
        "--document",
        str(where / "install.json"),
        "--result",
        str(where / "installed.json"),
        "--uv",
        uv,
    ]
    with report_install_progress(where, instance.provision_folder / "cache", told):
        instance.run_checked(
            "cannot install the packages",
            [sys.executable, "-I", str(instance.work / "installer.pyz"), *arguments],
            _INSTALL_S,
            variables=variables,
        )
    installed: dict[str, Any] = json.loads(
        instance.read_file(where / "installed.json", 2**24) or "{}"
    )
    # Addresses of mirrors may hold passwords.
    instance.write_file(where / "install.json", "{}\n")
    instance.write_file(
        where / MARKER_FILE, json.dumps(_marker(document, instance), sort_keys=True) + "\n"
    )
    return dict(installed.get("counts", {}))


def remove_old_environments(document: Document, instance: Instance) -> list[str]:
    """Remove environments of earlier locks but the newest, which a kernel may use; return names."""
    folder = instance.provision_folder / "envs"
    others = [
        one
        for one in folder.iterdir()
        if _DIGEST12.fullmatch(one.name) and one.name != document.digest[:12]
    ]
    old = sorted(others, key=lambda one: one.lstat().st_mtime)[:-1]
    if old:
        instance.run(["rm", "-rf", "--one-file-system", "--", *map(str, old)], 600)
    return [one.name for one in old]


def create_declared_folders(document: Document, instance: Instance) -> None:
    """Make the declared folders below the user's home; others belong to the image or a mount."""
    home = f"{instance.user.home}/"
    for path in document.paths.values():
        if path.startswith(home):
            instance.run(["mkdir", "-p", "--", path], 60)


def register_kernel(document: Document, instance: Instance) -> str | None:
    """Register the environment with Jupyter for the user; return the kernel's name, if any.

    Where the spec has secrets, the kernel starts through this program, which fetches them into
    its variables: the file holds references only.
    """
    if document.kernel is None or not any(
        one.get("name") == "ipykernel" for one in document.install["packages"]
    ):
        return None
    where = environment_prefix(document, instance)
    python = str(where / "bin/python")
    argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    if document.secrets:
        program = instance.provision_folder / "launch.pyz"
        _copy(instance.work / "device.pyz", program, instance)
        argv = [
            python,
            "-I",
            str(program),
            "launch",
            *(
                f"--secret={name}={reference}"
                for name, reference in sorted(document.secrets.items())
            ),
            "--",
            *argv,
        ]
    # Jupyter fills in ${NAME} from its own environment; a $ of the author's is doubled to stay one.
    declared = {name: value.replace("$", "$$") for name, value in document.variables.items()}
    env = {**declared, "VIRTUAL_ENV": str(where), "PATH": f"{where / 'bin'}:${{PATH}}"}
    metadata = {"provision": {"environment_digest": f"sha256:{document.digest}"}}
    spec = {
        "argv": argv,
        "display_name": document.kernel.title,
        "language": "python",
        "env": env,
        "metadata": metadata,
    }
    instance.write_file(
        instance.user.home / ".local/share/jupyter/kernels" / document.kernel.name / "kernel.json",
        json.dumps(spec, indent=1, sort_keys=True) + "\n",
    )
    return document.kernel.name


def _copy(source: Path, target: Path, instance: Instance) -> None:
    instance.run_checked(
        f"cannot write {target}",
        ["install", "-D", "--mode=644", "--", str(source), str(target)],
        60,
    )


def _fetch_uv(document: Document, uv: LockedUv, target: Path, instance: Instance) -> None:
    """Put the locked uv in place: from the index of the document, else with a pip.

    A pip finds its own indexes, and supports more kinds of them.
    """
    index = document.install.get("indexes", {}).get("pypi")
    program = str(target / "bin/uv")
    if index:
        request = {"name": "uv", "version": uv.version, "hashes": uv.hashes}
        # On stdin, because the address may hold a password.
        instance.run(
            [sys.executable, "-I", str(instance.work / "device.pyz"), "fetch"],
            _FETCH_S,
            stdin=json.dumps({**request, "index": index, "target": str(target)}),
        )
        if _uv_version(program, instance) == uv.version:
            return
    requirements = target.with_name(target.name + ".txt")
    instance.write_file(requirements, uv.requirement + "\n")
    variables = {"PIP_CONFIG_FILE": os.devnull, **({"PIP_INDEX_URL": index} if index else {})}
    arguments = pip_arguments(requirements, target)
    for pip in ([sys.executable, "-I", "-m", "pip"], ["pip3"], ["/opt/conda/bin/pip"]):
        answer = instance.run([*pip, *arguments], _FETCH_S, variables=variables)
        if answer.code == 0 and _uv_version(program, instance) == uv.version:
            return
        if answer.code != NOT_STARTED and "No module named pip" not in answer.output:
            raise PhaseFailed(
                f"cannot install uv {uv.version} by its hash: exit code "
                f"{answer.code}\n{answer.output}"
            )
    raise PhaseFailed(
        f"there is neither uv {uv.version} nor a pip on this machine that could install it"
    )


def _uv_version(program: str, instance: Instance) -> str | None:
    answer = instance.run([program, "--version"], 60)
    return parse_uv_version(answer.stdout) if answer.code == 0 else None


def _uv_variables(instance: Instance) -> dict[str, str]:
    return {
        "UV_CACHE_DIR": str(instance.provision_folder / "cache"),
        "UV_PYTHON_INSTALL_DIR": str(instance.provision_folder / "pythons"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_TIMEOUT": "120",
    }


def _minor(python: str, instance: Instance) -> str | None:
    answer = instance.run([python, "-I", "-S", "-c", _ASK], 60)
    return answer.stdout if answer.code == 0 else None


def _marker(document: Document, instance: Instance) -> dict[str, str]:
    return {
        "schema": _MARKER_SCHEMA,
        "digest": f"sha256:{document.digest}",
        "prefix": str(environment_prefix(document, instance)),
        "python": document.python,
    }
