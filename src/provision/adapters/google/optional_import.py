"""Imports the optional packages for Google Cloud when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from provision.errors import ExternalError

_EXTRA = ("google", "grpc", "requests", "proto")


def import_optional(module: str) -> Any:
    """Import a module of the extra `workbench`.

    Raises:
        ExternalError: it is not installed; with the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:  # google-auth raises its own for a missing requests
        missing = error.name or getattr(error.__cause__, "name", None) or "google"
        if missing.split(".")[0] not in _EXTRA:
            raise
        from provision.extras import install_command

        raise ExternalError(
            "the packages for Google Cloud are not installed",
            why=f"there is no module {missing}",
            hint=install_command("workbench"),
        ) from error
