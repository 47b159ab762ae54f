"""Installs locked packages into an environment with uv."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.adapters.process import capture
from provision.adapters.uv.local_index import index_url
from provision.adapters.uv.program import uv_error, uv_program
from provision.adapters.uv.scratch_project import wheel_links
from provision.agent.install.document import (
    DEFAULT_INDEX,
    InstallError,
    InstallMode,
    InstallRequest,
    PackageToInstall,
)
from provision.effects.local import InstallPackages
from provision.effects.packages import PackageSources
from provision.errors import ExternalError, LockError
from provision.sanitize import escape_control

if TYPE_CHECKING:
    from provision.agent.core.process import ProcessResult as InstallerResult


def install_packages(
    effect: InstallPackages, sources: PackageSources, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Make an environment contain exactly the pins, or at least these if it is shared.

    Returns:
        The provenance of each package (see provision.agent.install.installer).

    Raises:
        LockError: a version is not available, or a file is not the locked one.
        NetworkError: an index cannot be reached.
        ExternalError: the environment cannot be changed.
    """
    from provision.agent.install import installer

    indexes = {source.name: index_url(source, environment) for source in sources.named}
    with tempfile.TemporaryDirectory(prefix="provision-") as folder:
        request = InstallRequest(
            InstallMode.SHARED if effect.shared else InstallMode.OWN,
            str(effect.environment / "bin/python"),
            effect.minor,
            tuple(
                PackageToInstall(pin.name, pin.version, pin.index, pin.hashes, pin.from_source)
                for pin in effect.pins
            ),
            {DEFAULT_INDEX: sources.default.url, **indexes},
            wheel_links(sources, Path(folder)),
            reinstall=frozenset(effect.reinstall),
        )
        try:
            return installer.install_packages(
                request, uv_program(), environment, _run_for_installer, Path(folder)
            )
        except installer.UvFailed as error:
            raise uv_error("pip", error.code, error.output, sources=sources) from None
        except InstallError as error:
            kind = LockError if error.exit_code == 1 else ExternalError
            raise kind(error.what, why=escape_control(error.why), hint=error.hint) from None


def _run_for_installer(
    argv: list[str], environment: Mapping[str, str], folder: Path | None
) -> InstallerResult:
    from provision.agent.core.process import ProcessResult as InstallerResult

    result = capture(argv, environment, cwd=folder)
    return InstallerResult(result.code, result.stdout, result.stderr)
