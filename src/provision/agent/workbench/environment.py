"""Creates the locked environment on the data disk, as its user: uv, Python, packages, kernel."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.agent_config import LockedUv, parse_uv_version, pip_arguments
from ..core.code_files import ARCHIVE
from ..core.installed_packages import find_installed_packages
from ..core.own_wheels import WHEELS, find_outdated_packages
from ..core.process import NOT_STARTED
from .document import WorkbenchDocument
from .install_progress import report_install_progress
from .instance import PhaseFailed, WorkbenchInstance

MARKER_FILE = "provision.json"
_MARKER_SCHEMA = "provision.environment/1"
_INSTALL_S, _FETCH_S = 3600.0, 900.0
_PRINT_MINOR = "import sys; print('%d.%d' % sys.version_info[:2])"
_DIGEST12 = re.compile(r"[0-9a-f]{12}")
_CONDA = ("/opt/conda", "/opt/micromamba")


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of a document on an instance; its folder is named by the lock's digest."""

    document: WorkbenchDocument
    instance: WorkbenchInstance

    @property
    def prefix(self) -> Path:
        """The environment's folder."""
        return self.instance.provision_folder / "envs" / self.document.digest[:12]

    @property
    def python(self) -> str:
        """The environment's interpreter."""
        return str(self.prefix / "bin/python")

    @property
    def code_parent(self) -> Path:
        """The folder of the code, with a folder for each digest."""
        return self.instance.provision_folder / "code"

    @property
    def code_folder(self) -> Path | None:
        """The folder of the code's files; None without code."""
        return self.document.find_code(self.code_parent)

    @property
    def package_folders(self) -> tuple[str, ...]:
        """The folders of its packages."""
        return tuple(map(str, self.prefix.glob("lib/python*/site-packages")))

    @property
    def activation(self) -> dict[str, str]:
        """The variables that an activated environment has."""
        path = self.instance.environ.get("PATH", "/usr/bin:/bin")
        return {"VIRTUAL_ENV": str(self.prefix), "PATH": f"{self.prefix / 'bin'}:{path}"}

    @property
    def variables(self) -> dict[str, str]:
        """Variables of programs in the environment."""
        code = {} if self.code_folder is None else {"PROVISION_CODE": str(self.code_folder)}
        return {**self.document.variables, **code}

    def unpack_code(self) -> None:
        """Unpack the archive of the code as the user. Older code stays."""
        argv = [sys.executable, "-I", str(self.instance.work / "device.pyz"), "unpack"]
        archive = str(self.instance.work / ARCHIVE)
        argv += [archive, str(self.document.code_digest), str(self.code_parent)]
        self.instance.run_checked("cannot unpack the code", argv, 600)

    def is_complete(self) -> bool:
        """Return whether its marker, written last, matches, and its Python starts.

        An upgrade of the image may have removed the interpreter.
        """
        try:
            marker = json.loads(self.instance.read_file(self.prefix / MARKER_FILE) or "null")
        except ValueError:
            return False
        return bool(marker == self._marker()) and self._is_locked_python(self.python)

    def find_outdated_packages(self) -> tuple[str, ...]:
        """Return the project's own packages whose files are not those of the document's wheels."""
        if self.document.wheels is None:
            return ()
        return find_outdated_packages(self._wheels, find_installed_packages(self.package_folders))

    def find_uv(self) -> str:
        """Return the machine's uv if it has the locked version or none is locked, else ours."""
        uv, program = self.document.uv, self.find_present_uv()
        if program is not None:
            return program
        if uv is None:
            raise PhaseFailed("uv is not installed, and the document does not specify a version")
        target = self.uv_folder(uv)
        self._fetch_uv(uv, target)
        return str(target / "bin/uv")

    def find_present_uv(self) -> str | None:
        """Return the uv that nothing has to be fetched for; None if the machine has none."""
        uv, installed = self.document.uv, self.instance.which("uv")
        if uv is None or (installed and self._uv_version(installed) == uv.version):
            return installed
        program = str(self.uv_folder(uv) / "bin/uv")
        return program if self._uv_version(program) == uv.version else None

    def uv_folder(self, uv: LockedUv) -> Path:
        """Return the folder in which a version of uv is installed."""
        return uv.folder(self.instance.provision_folder / "tools")

    def find_python(self, uv: str) -> str:
        """Return an interpreter of the locked version: uv's, the image's conda's, or a download."""
        run_checked, version = self.instance.run_checked, self.document.python
        variables = self._uv_variables()
        answer = self.instance.run(
            [uv, "python", "find", "--system", version], 120, variables=variables
        )
        candidates = [answer.stdout] if answer.code == 0 else []
        for folder in map(Path, _CONDA):
            prefixes = [folder, *sorted(folder.glob("envs/*"))]
            candidates += [str(prefix / f"bin/python{version}") for prefix in prefixes]
        for candidate in candidates:
            if self._is_locked_python(candidate):
                return candidate
        fetch = {**variables, "UV_PYTHON_DOWNLOADS": "manual"}
        if self.document.python_mirror:
            fetch["UV_PYTHON_INSTALL_MIRROR"] = self.document.python_mirror
        run_checked(
            f"Python {version} is not on this image, and uv cannot download it",
            [uv, "python", "install", version],
            _FETCH_S,
            variables=fetch,
        )
        return run_checked(
            f"cannot find Python {version}",
            [uv, "python", "find", "--managed-python", version],
            120,
            variables=variables,
        )

    def create(self, uv: str, python: str, on_count: Callable[[int], None]) -> dict[str, Any]:
        """Create the environment: interpreter, packages by hash, and the marker last.

        Outdated packages of a complete environment are installed again in it.

        Args:
            uv: the program.
            python: the base interpreter.
            on_count: called repeatedly with the number of installed packages.

        Returns:
            The number of packages by provenance.

        Raises:
            PhaseFailed: a step failed.
        """
        instance, variables = self.instance, self._uv_variables()
        if not self.is_complete():
            instance.run_checked(
                f"cannot create the environment {self.prefix}",
                [uv, "venv", "--clear", "--python", python, str(self.prefix)],
                300,
                variables=variables,
            )
        request, result = self.prefix / "install.json", self.prefix / "installed.json"
        document = {**self.document.install, "python": self.python}
        if self.document.wheels is not None:
            document["wheels"] = str(self._wheels)
        instance.write_file(request, json.dumps(document))
        argv = [sys.executable, "-I", str(instance.work / "installer.pyz"), "install"]
        argv += ["--document", str(request), "--result", str(result), "--uv", uv]
        with report_install_progress(self.prefix, instance.provision_folder / "cache", on_count):
            instance.run_checked(
                "cannot install the packages", argv, _INSTALL_S, variables=variables
            )
        installed = json.loads(instance.read_file(result, 2**24) or "{}")
        # Addresses of mirrors may contain passwords.
        instance.write_file(request, "{}\n")
        marker = json.dumps(self._marker(), sort_keys=True)
        instance.write_file(self.prefix / MARKER_FILE, marker + "\n")
        return dict(installed.get("counts", {}))

    def remove_old(self) -> list[str]:
        """Remove environments of earlier locks except the newest, which a kernel may use.

        Returns:
            The names of the removed ones.
        """
        others = [
            path
            for path in self.prefix.parent.iterdir()
            if _DIGEST12.fullmatch(path.name) and path.name != self.prefix.name
        ]
        old = sorted(others, key=lambda path: path.lstat().st_mtime)[:-1]
        if old:
            self.instance.run(["rm", "-rf", "--one-file-system", "--", *map(str, old)], 600)
        return [path.name for path in old]

    def create_declared_folders(self) -> None:
        """Make the folders below the user's home; others belong to the image or a mount."""
        for path in self.document.paths.values():
            if path.startswith(f"{self.instance.user.home}/"):
                self.instance.run(["mkdir", "-p", "--", path], 60)

    def register_kernel(self) -> str | None:
        """Register the environment with Jupyter for the user; return the kernel's name, if any.

        If the spec has secrets, the kernel starts through this program, which fetches them into
        its variables: the file contains references only.
        """
        document, instance, kernel = self.document, self.instance, self.document.kernel
        packages = {package.get("name") for package in document.install["packages"]}
        if kernel is None or "ipykernel" not in packages:
            return None
        argv = [self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        if document.secrets:
            program = str(instance.provision_folder / "launch.pyz")
            source = str(instance.work / "device.pyz")
            instance.run_checked(
                f"cannot write {program}",
                ["install", "-D", "--mode=644", "--", source, program],
                60,
            )
            secrets = [
                f"--secret={name}={reference}"
                for name, reference in sorted(document.secrets.items())
            ]
            argv = [self.python, "-I", program, "launch", *secrets, "--", *argv]
        # Jupyter replaces ${NAME} with its own variable; a declared $ is doubled to stay literal.
        declared = {name: value.replace("$", "$$") for name, value in self.variables.items()}
        path = f"{self.prefix / 'bin'}:${{PATH}}"
        spec = {
            "argv": argv,
            "display_name": kernel.title,
            "language": "python",
            "env": {**declared, "VIRTUAL_ENV": str(self.prefix), "PATH": path},
            "metadata": {"provision": {"environment_digest": f"sha256:{document.digest}"}},
        }
        folder = instance.user.home / ".local/share/jupyter/kernels" / kernel.name
        text = json.dumps(spec, indent=1, sort_keys=True) + "\n"
        instance.write_file(folder / "kernel.json", text)
        return kernel.name

    @property
    def _wheels(self) -> Path:
        return self.instance.work / WHEELS

    def _fetch_uv(self, uv: LockedUv, target: Path) -> None:
        """Install the locked uv: from the index of the document, else with a pip.

        A pip finds its own indexes, and supports more kinds of them.
        """
        run, index = self.instance.run, self.document.install.get("indexes", {}).get("pypi")
        program = str(target / "bin/uv")
        if index:
            request = {"name": "uv", "version": uv.version, "hashes": uv.hashes}
            # On stdin, because the address may contain a password.
            run(
                [sys.executable, "-I", str(self.instance.work / "device.pyz"), "fetch"],
                _FETCH_S,
                stdin=json.dumps({**request, "index": index, "target": str(target)}),
            )
            if self._uv_version(program) == uv.version:
                return
        requirements = target.with_name(target.name + ".txt")
        self.instance.write_file(requirements, uv.requirement + "\n")
        variables = {"PIP_CONFIG_FILE": os.devnull, **({"PIP_INDEX_URL": index} if index else {})}
        arguments = pip_arguments(requirements, target)
        for pip in ([sys.executable, "-I", "-m", "pip"], ["pip3"], ["/opt/conda/bin/pip"]):
            answer = run([*pip, *arguments], _FETCH_S, variables=variables)
            if answer.code == 0 and self._uv_version(program) == uv.version:
                return
            if answer.code != NOT_STARTED and "No module named pip" not in answer.output_tail:
                raise PhaseFailed(
                    f"cannot install uv {uv.version} by its hash: exit code "
                    f"{answer.code}\n{answer.output_tail}"
                )
        raise PhaseFailed(
            f"uv {uv.version} is not installed, and there is no pip to install it with"
        )

    def _uv_version(self, program: str) -> str | None:
        answer = self.instance.run([program, "--version"], 60)
        return parse_uv_version(answer.stdout) if answer.code == 0 else None

    def _uv_variables(self) -> dict[str, str]:
        return {
            "UV_CACHE_DIR": str(self.instance.provision_folder / "cache"),
            "UV_PYTHON_INSTALL_DIR": str(self.instance.provision_folder / "pythons"),
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_HTTP_TIMEOUT": "120",
        }

    def _is_locked_python(self, python: str) -> bool:
        answer = self.instance.run([python, "-I", "-S", "-c", _PRINT_MINOR], 60)
        return answer.code == 0 and answer.stdout == self.document.python

    def _marker(self) -> dict[str, str]:
        return {
            "schema": _MARKER_SCHEMA,
            "digest": f"sha256:{self.document.digest}",
            "prefix": str(self.prefix),
            "python": self.document.python,
        }
