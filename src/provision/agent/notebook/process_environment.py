"""Variables, folders and secrets for the notebook and its programs."""

from __future__ import annotations

import os
from collections.abc import Callable

from .kernel import SecretUnavailable, read_colab_secret
from .session import Session


def environment_stage(session: Session) -> None:
    """Set variables, make folders, fetch secrets."""
    apply_environment(session)
    document = session.document
    parts = [f"{len(document.variables)} variables set"] if document.variables else []
    parts += (
        [
            (
                f"{len(document.secrets) - len(session.missing_secrets)} of "
                f"{len(document.secrets)} secrets"
            )
        ]
        if document.secrets
        else []
    )
    session.printer.print_stage_line("environment", ", ".join(parts) or "nothing declared")


def apply_environment(session: Session, secret: Callable[[str], str] = read_colab_secret) -> None:
    """Apply the environment, print only what is missing; `secret` reads from a store."""
    document = session.document
    session.environ.update(document.variables)
    for name, path in document.paths.items():
        if why := _make(path):
            session.printer.print_stage_line(
                "environment", f"the folder {path} (paths.{name}) cannot be used: {why}"
            )
    session.missing_secrets = [
        name
        for name, stored in document.secrets.items()
        if not _fetched(session, name, stored, secret)
    ]


def _make(path: str) -> str:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    return "" if os.access(path, os.W_OK) else "it cannot be written"


def _fetched(session: Session, name: str, stored: str, secret: Callable[[str], str]) -> bool:
    """Put a secret into its variable; one that is set already stays.

    Whoever set it meant it, and Colab's store needs a browser.
    """
    if not session.environ.get(name):
        try:
            session.environ[name] = secret(stored)
        except SecretUnavailable as error:
            session.printer.print_stage_line(
                "environment", f"the secret {name} is missing: {error}"
            )
            return False
    session.printer.add_secrets([session.environ[name]])
    return True
