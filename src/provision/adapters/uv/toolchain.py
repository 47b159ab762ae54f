"""uv as it is set up on this machine: running it, its interpreters and its environments."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from provision.adapters.process import capture, stream
from provision.adapters.uv.errors import (
    error_from_output,
    python_install_error,
    python_not_found_error,
)
from provision.adapters.uv.local_index import index_url
from provision.adapters.uv.sources import (
    home_folder,
    link_wheels,
    locate_sources,
    read_pip_config,
)
from provision.agent.core.process import ProcessResult
from provision.agent.install.installer import RunProcess
from provision.agent.install.uv_inputs import scrub_environment
from provision.effects.local import CreateVenv, InstallPackages, InstallPython
from provision.effects.packages import (
    IndexAddresses,
    NamedIndex,
    PackageSources,
    PythonInstallation,
    PythonSearchResult,
    UvProject,
)
from provision.effects.system import DownloadProgress, ProgressCallback
from provision.errors import ExternalError, LockError
from provision.sanitize import escape_control, redact

_VERSION_PROGRAM = "import platform; print(platform.python_version())"
_DOWNLOAD_BEGINS = re.compile(r"Downloading (\S+)(?: \(download\))? \(([\d.]+)([KMG]?i?B)\)")
_DOWNLOAD_ENDS = re.compile(r" *Downloaded (\S+)")
_STEP = re.compile(
    r"(Using Python|Resolved|Prepared|Uninstalled|Installed|Audited) "
    r"| +(Building|Built) | [-+~] \S+=="
)
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_found_interpreters: dict[tuple[str, frozenset[tuple[str, str]]], PythonInstallation] = {}
"""Interpreters by minor version and the caller's variables. `add --apply` sets uv up twice, and
with the shims of pyenv each search takes 0.45 s of CPU."""
_ALLOW_DOWNLOADS = {"UV_PYTHON_DOWNLOADS": "manual"}


class UvToolchain:
    """uv for a caller's environment; `offline` restricts it to its cache."""

    def __init__(self, environment: Mapping[str, str], *, offline: bool) -> None:
        self._caller_environment = environment
        self._offline = offline

    def environment(self) -> dict[str, str]:
        """Return the variables for uv: nothing of the caller's configuration decides a result."""
        pip = read_pip_config(self._caller_environment)
        variables = scrub_environment(self._caller_environment, pip.proxy, pip.cert)
        if self._offline:
            variables["UV_OFFLINE"] = "1"
        return variables

    def package_sources(self, indexes: tuple[NamedIndex, ...], minor: str) -> PackageSources:
        """See Reader.find_package_sources."""
        pip = read_pip_config(self._caller_environment)
        return locate_sources(pip, self._caller_environment, indexes, minor)

    def index_addresses(self, indexes: tuple[NamedIndex, ...], minor: str) -> IndexAddresses:
        """See Reader.find_index_addresses."""
        sources = self.package_sources(indexes, minor)
        urls = {"pypi": sources.default.url} if sources.default.url else {}
        for source in sources.named:
            urls[source.name] = index_url(source, self._caller_environment)
        folders = dict.fromkeys(str(wheel.parent) for wheel in sources.wheels)
        return IndexAddresses(urls, (*folders, *sources.find_links))

    def find_pythons(self, minor: str) -> PythonSearchResult:
        """See Reader.find_pythons; all interpreters are listed only if none fits."""
        if selected := self.interpreter(minor):
            return PythonSearchResult(minor, selected, (selected,), is_downloadable=False)
        environment = self.environment()
        downloads = self._caller_environment.get("UV_PYTHON_DOWNLOADS", "")
        why_not = why_not_downloadable(minor, environment, downloads)
        rows = json.loads(_list_pythons("--only-installed", environment=environment).stdout or "[]")
        installed = tuple(
            PythonInstallation(row["version"], Path(row["path"]))
            for row in rows
            if row["implementation"] == "cpython" and row["path"]
        )
        installed += _list_pyenv_pythons(self._caller_environment)
        return PythonSearchResult(minor, None, installed, not why_not, why_not)

    def interpreter(self, minor: str) -> PythonInstallation | None:
        """Return the interpreter to use for a minor version, None if there is none.

        The interpreter that runs us comes first. uv is queried once in a process, and again while
        none is found.
        """
        key = (minor, frozenset(self._caller_environment.items()))
        interpreter = _found_interpreters.get(key)
        if interpreter is None or not interpreter.path.exists():
            interpreter = self._find_interpreter(minor)
        if interpreter is not None:
            _found_interpreters[key] = interpreter
        return interpreter

    def any_interpreter(self, minor: str) -> PythonInstallation:
        """Return the interpreter for a minor version, else the one that runs us."""
        return self.interpreter(minor) or _running_interpreter()

    def create_venv(self, effect: CreateVenv) -> None:
        """Create an empty virtual environment in place of anything at its path.

        Raises:
            ExternalError: there is no interpreter of this version.
        """
        interpreter = self.interpreter(effect.minor)
        if interpreter is None:
            raise python_not_found_error(self.find_pythons(effect.minor))
        options = ["--quiet", "--clear", "--python", str(interpreter.path)]
        run_uv(["venv", *options, str(effect.path)], self.environment())

    def install_packages(
        self,
        effect: InstallPackages,
        present: Collection[str],
        progress: ProgressCallback,
    ) -> dict[str, Any]:
        """Make an environment contain exactly the pins, or at least these if it is shared.

        `present` are names of pins that were copied into a new environment just now.

        Returns:
            The provenance of each package (see provision.agent.install.installer).

        Raises:
            LockError: a version is not available, or a file is not the locked one.
            NetworkError: an index cannot be reached.
            ExternalError: the environment cannot be changed.
        """
        from provision.agent.install import installer
        from provision.agent.install.document import (
            DEFAULT_INDEX,
            InstallError,
            InstallMode,
            InstallRequest,
        )

        sources = self.package_sources(effect.indexes, effect.minor)
        environment = self.environment()
        indexes = {source.name: index_url(source, environment) for source in sources.named}
        with tempfile.TemporaryDirectory(prefix="provision-") as folder:
            request = InstallRequest(
                InstallMode.SHARED if effect.shared or present else InstallMode.OWN,
                str(effect.environment / "bin/python"),
                effect.minor,
                tuple(pin for pin in effect.pins if pin.name not in present),
                {DEFAULT_INDEX: sources.default.url, **indexes},
                link_wheels(sources, Path(folder)),
                reinstall=frozenset(effect.reinstall),
                present=tuple(pin for pin in effect.pins if pin.name in present),
            )
            try:
                return installer.install_packages(
                    request, _uv_program(), environment, _runner(progress), Path(folder)
                )
            except installer.UvFailed as error:
                output = _clean_output(error.output)
                raise error_from_output("pip", output, error.code, None, sources) from None
            except InstallError as error:
                kind = LockError if error.exit_code == 1 else ExternalError
                raise kind(error.what, why=escape_control(error.why), hint=error.hint) from None

    def _find_interpreter(self, minor: str) -> PythonInstallation | None:
        own = _running_interpreter()
        if own.minor == minor and own.path.exists():
            return own
        result = _query_uv(["python", "find", "--system", minor], self.environment())
        if result.code != 0:
            pythons = _list_pyenv_pythons(self._caller_environment)
            return next((python for python in pythons if python.minor == minor), None)
        path = Path(result.stdout.strip())
        version = _python_version(path, self._caller_environment)
        return PythonInstallation(version or f"{minor}.0", path)


def run_uv(
    arguments: list[str],
    environment: Mapping[str, str],
    folder: Path | None = None,
    project: UvProject | None = None,
    sources: PackageSources | None = None,
) -> str:
    """Run uv and return its standard output. May block for minutes.

    `project` and `sources` are for the hints of its error.

    Raises:
        LockError: no set of versions fits, or a file changed.
        NetworkError: an index cannot be reached, or refuses.
        ExternalError: uv failed for another reason.
    """
    result = _query_uv(arguments, environment, folder)
    if result.code != 0:
        output = _clean_output(result.stderr)
        raise error_from_output(arguments[0], output, result.code, project, sources)
    return result.stdout


def install_python(
    effect: InstallPython, environment: Mapping[str, str], progress: ProgressCallback
) -> None:
    """Download a managed CPython: the only call that may download an interpreter."""
    # Not --quiet, which leaves out why it failed.
    argv = [_uv_program(), "python", "install", "--no-progress", effect.minor]
    result = _run_with_progress(argv, {**environment, **_ALLOW_DOWNLOADS}, None, progress)
    if result.code != 0:
        raise python_install_error(effect.minor, _clean_output(result.stderr))


def why_not_downloadable(minor: str, environment: Mapping[str, str], downloads: str = "") -> str:
    """Return why uv cannot download this minor version, "" if it can. Needs no network.

    `downloads` is the caller's UV_PYTHON_DOWNLOADS.
    """
    if downloads.lower() == "never":
        return "UV_PYTHON_DOWNLOADS=never prevents uv from downloading one"
    if environment.get("UV_OFFLINE"):
        return "--offline prevents uv from downloading one"
    variables = {**environment, **_ALLOW_DOWNLOADS}
    result = _list_pythons(minor, "--only-downloads", environment=variables)
    if result.code != 0:
        return f"uv cannot list its downloads: {' '.join(_clean_output(result.stderr).split())}"
    if json.loads(result.stdout or "[]"):
        return ""
    return "uv has no download of this version for this machine"


def _list_pythons(*options: str, environment: Mapping[str, str]) -> ProcessResult:
    return _query_uv(["python", "list", *options, "--output-format", "json"], environment)


def _query_uv(
    arguments: list[str], environment: Mapping[str, str], folder: Path | None = None
) -> ProcessResult:
    return capture([_uv_program(), *arguments], environment, folder)


def _runner(progress: ProgressCallback) -> RunProcess:
    """Return a function that runs programs for the installer, and reports uv's downloads."""

    def run(argv: list[str], environment: Mapping[str, str], folder: Path | None) -> ProcessResult:
        if "--quiet" not in argv:
            return capture(argv, environment, folder)
        # With --quiet, uv reports no downloads.
        loud = [argument for argument in argv if argument != "--quiet"]
        return _run_with_progress(loud, environment, folder, progress)

    return run


def _run_with_progress(
    argv: list[str], environment: Mapping[str, str], folder: Path | None, progress: ProgressCallback
) -> ProcessResult:
    """Run uv and report its downloads; the result's stderr has its other lines.

    uv announces files of 1 MiB and more only.
    """
    sizes: dict[str, int] = {}
    complete: set[str] = set()
    others: list[str] = []

    def read_line(line: str) -> None:
        if match := _DOWNLOAD_BEGINS.match(line):
            sizes[match[1]] = round(float(match[2]) * _UNITS[match[3]])
        elif match := _DOWNLOAD_ENDS.match(line):
            complete.add(match[1])
        else:
            if not _STEP.match(line):
                others.append(line)
            elif sizes and line.startswith("Prepared "):
                progress(DownloadProgress("installing", 0, int(line.split()[1]), None, None))
            return
        bytes_done = sum(size for name, size in sizes.items() if name in complete)
        counts = (len(complete), len(sizes), bytes_done, sum(sizes.values()))
        progress(DownloadProgress("downloading", *counts))

    result = stream(argv, environment, read_line, folder)
    return ProcessResult(result.code, "", "\n".join(others))


def _uv_program() -> str:
    """Return the path of the uv that is installed with provision."""
    import uv  # imported here: commands that only read a spec start without it

    return uv.find_uv_bin()


def _clean_output(output: str) -> str:
    """Return the output of uv without secrets and control characters."""
    return redact(escape_control(output.strip()))


def _running_interpreter() -> PythonInstallation:
    """Return the interpreter that runs us, outside any virtual environment."""
    path = getattr(sys, "_base_executable", sys.executable)
    return PythonInstallation(platform.python_version(), Path(path))


def _list_pyenv_pythons(environment: Mapping[str, str]) -> tuple[PythonInstallation, ...]:
    """Return the CPythons that pyenv has installed, newest first.

    uv does not find them: it searches the PATH, on which pyenv has only the selected versions.
    """
    home = home_folder(environment)
    root = environment.get("PYENV_ROOT") or (home and str(home / ".pyenv"))
    folders = Path(root, "versions").glob("3.*") if root else ()
    pythons = [
        PythonInstallation(folder.name, folder / "bin/python3", is_found_by_uv=False)
        for folder in folders
        if re.fullmatch(r"3\.\d+\.\d+", folder.name) and (folder / "bin/python3").is_file()
    ]
    return tuple(sorted(pythons, key=lambda python: _version_key(python.version), reverse=True))


def _version_key(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _python_version(python: Path, environment: Mapping[str, str]) -> str | None:
    """Return the full version of an interpreter, None if it does not answer within 20 s."""
    argv = [str(python), "-I", "-S", "-c", _VERSION_PROGRAM]
    try:
        result = capture(argv, environment, timeout_s=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.code == 0 else None
