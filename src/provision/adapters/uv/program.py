"""Runs the uv program, and turns its failures into errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from provision.adapters.process import ProcessResult, capture
from provision.adapters.uv.errors import error_from_output
from provision.adapters.uv.pip_config import PipConfig
from provision.agent.install.uv_inputs import scrub_environment
from provision.effects.packages import PackageSources, UvProject
from provision.errors import ProvisionError
from provision.sanitize import escape_control, redact


def isolated_environment(environment: Mapping[str, str], pip: PipConfig) -> dict[str, str]:
    """Return uv's environment: no configuration, no Python downloads, pip's proxy and CA file."""
    return scrub_environment(environment, pip.proxy, pip.cert)


def uv_program() -> str:
    """Return the path of the uv that is installed with provision."""
    import uv  # imported here: commands that only read a spec start without it

    return uv.find_uv_bin()


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
    result = capture([uv_program(), *arguments], environment, cwd=folder)
    if result.code != 0:
        raise uv_error(arguments[0], result.code, result.stderr, project, sources)
    return result.stdout


def uv_error(
    command: str,
    code: int,
    output: str,
    project: UvProject | None = None,
    sources: PackageSources | None = None,
) -> ProvisionError:
    """Return the error of a failed call, with uv's sanitized output."""
    return error_from_output(command, clean_output(output), code, project, sources)


def clean_output(output: str) -> str:
    """Return the output of uv without secrets and control characters."""
    return redact(escape_control(output.strip()))


def query_uv(arguments: list[str], environment: Mapping[str, str]) -> ProcessResult:
    """Run uv and return its result, whatever its exit code."""
    return capture([uv_program(), *arguments], environment)
