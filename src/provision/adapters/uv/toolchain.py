"""uv as it is set up on this machine: its environment, its interpreters and package sources."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from provision.adapters.uv import mirrors, pythons
from provision.adapters.uv.errors import python_not_found_error
from provision.adapters.uv.local_index import index_url
from provision.adapters.uv.pip_config import read_pip_config
from provision.adapters.uv.program import isolated_environment
from provision.effects.packages import (
    Index,
    IndexAddresses,
    PackageSources,
    PythonInstallation,
    PythonSearchResult,
)
from provision.errors import ExternalError


class UvToolchain:
    """uv for a caller's environment; `offline` restricts it to its cache."""

    def __init__(self, environment: Mapping[str, str], *, offline: bool) -> None:
        self._caller_environment = environment
        self._offline = offline
        self._interpreters: dict[str, PythonInstallation] = {}

    def environment(self) -> dict[str, str]:
        """Return the variables for uv: nothing of the caller's configuration decides a result."""
        pip = read_pip_config(self._caller_environment)
        variables = isolated_environment(self._caller_environment, pip)
        if self._offline:
            variables["UV_OFFLINE"] = "1"
        return variables

    def package_sources(self, indexes: tuple[Index, ...], minor: str) -> PackageSources:
        """See Reader.find_package_sources."""
        pip = read_pip_config(self._caller_environment)
        return mirrors.locate_sources(pip, self._caller_environment, indexes, minor)

    def index_addresses(self, indexes: tuple[Index, ...], minor: str) -> IndexAddresses:
        """See Reader.find_index_addresses."""
        sources = self.package_sources(indexes, minor)
        urls = {} if not sources.default.url else {"pypi": sources.default.url}
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
        why_not = pythons.why_not_downloadable(minor, environment, downloads)
        installed = pythons.list_pythons(environment)
        return PythonSearchResult(minor, None, installed, not why_not, why_not)

    def interpreter(self, minor: str) -> PythonInstallation | None:
        """Return the interpreter to use for a minor version, None if there is none.

        The interpreter that runs us comes first. uv is queried again only while none is found.
        """
        if minor not in self._interpreters:
            interpreter = self._find_interpreter(minor)
            if interpreter is None:
                return None
            self._interpreters[minor] = interpreter
        return self._interpreters[minor]

    def interpreter_path(self, minor: str) -> Path:
        """Return the path of the interpreter to use.

        Raises:
            ExternalError: there is no interpreter of this version.
        """
        if interpreter := self.interpreter(minor):
            return interpreter.path
        error: ExternalError = python_not_found_error(self.find_pythons(minor))
        raise error

    def any_interpreter(self, minor: str) -> PythonInstallation:
        """Return the interpreter for a minor version, else the one that runs us."""
        return self.interpreter(minor) or running_interpreter()

    def _find_interpreter(self, minor: str) -> PythonInstallation | None:
        own = running_interpreter()
        if own.minor == minor and own.path.exists():
            return own
        path = pythons.find_python(minor, self.environment())
        if path is None:
            return None
        version = pythons.python_version(path, self._caller_environment)
        return PythonInstallation(version or f"{minor}.0", path)


def running_interpreter() -> PythonInstallation:
    """Return the interpreter that runs us, outside any virtual environment."""
    path = getattr(sys, "_base_executable", sys.executable)
    return PythonInstallation(platform.python_version(), Path(path))
