"""Runs a zip application in another interpreter."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from provision.adapters.process import capture
from provision.agent.core.process import ProcessResult
from provision.errors import ExternalError


def run_zipapp(
    python: Path,
    content: bytes,
    arguments: tuple[str, ...],
    environment: Mapping[str, str],
    *,
    timeout_s: float,
) -> ProcessResult:
    """Run a zip application in `python` and return its output.

    Raises:
        ExternalError: it cannot be started, or does not end within `timeout_s` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="provision-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, "probe.pyz")
        path.write_bytes(content)
        caller = {key: value for key, value in environment.items() if key != "PYTHONHOME"}
        try:
            return capture([str(python), str(path), *arguments], caller, timeout_s=timeout_s)
        except subprocess.TimeoutExpired:
            raise ExternalError(
                f"{python} did not respond within {timeout_s:g} s",
                hint="try again, or choose a different Python with --python",
            ) from None
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise ExternalError(
                f"cannot start {python}",
                why=why,
                hint="set --python to the path of a Python interpreter",
            ) from None
