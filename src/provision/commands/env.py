"""Describe a machine: the probe looks at it from the Python of the user's programs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import provision
from provision.commands.shared.interpreters import interpreter_error
from provision.errors import ProvisionError
from provision.verification.device_files import probe_zipapp

if TYPE_CHECKING:
    from provision.agent.core.process import ProcessResult

_SCHEMA = "provision.env/1"
_TIMEOUT_S = 60.0
_WITH_TORCH_S = 240.0


def env(
    python: Path | None,
    environment: Mapping[str, str],
    own: Path,
    run_probe: Callable[..., ProcessResult],
    *,
    with_torch: bool,
) -> tuple[dict[str, Any], str]:
    """Return this machine as `provision.env/1`, and a remark on the Python that ran the probe.

    Args:
        python: The interpreter; None for the first on the PATH, or `own` if that fails.
        environment: The environment variables.
        own: provision's own interpreter.
        run_probe: Runs a zip application, as `adapters.zipapp_runner.run_zipapp` does.
        with_torch: Import torch, and report its view too.

    Raises:
        ExternalError: the named interpreter cannot run the probe.
    """

    def read(interpreter: Path) -> dict[str, Any]:
        return _read_machine_info(interpreter, environment, run_probe, with_torch=with_torch)

    path = environment.get("PATH")
    if python is not None:
        # A path, a name on the PATH, or the folder of an environment.
        if python.is_dir():
            return read(python.absolute() / "bin" / "python"), ""
        return read(Path(shutil.which(str(python), path=path) or python).absolute()), ""
    first = shutil.which("python3", path=path) or shutil.which("python", path=path)
    if first is None:
        return read(own), "there is no Python on PATH; using the Python that runs provision"
    try:
        return read(Path(first)), ""
    except ProvisionError as error:
        remark = f"using the Python that runs provision instead of the one on PATH: {error.what}"
        return read(own), remark


def _read_machine_info(
    python: Path,
    environment: Mapping[str, str],
    run_probe: Callable[..., ProcessResult],
    *,
    with_torch: bool,
) -> dict[str, Any]:
    result = run_probe(
        python,
        probe_zipapp(),
        ("env", "--output-format", "json", *(("--torch",) if with_torch else ())),
        environment,
        timeout_s=_WITH_TORCH_S if with_torch else _TIMEOUT_S,
    )
    try:
        document = json.loads(result.stdout)
    except (ValueError, RecursionError):
        document = None
    if result.code or not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise interpreter_error(python, "cannot run the probe", result, environment, run_probe)
    return {**document, "tool": {"name": "provision", "version": provision.__version__}}
