"""What the notebook and its programs get: declared variables, folders, and secrets, which stay in
the variables of this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from .kernel import SecretUnavailable, read_colab_secret
from .session import Session


def environment_stage(course: Session) -> None:
    """Set variables, make folders, fetch secrets."""
    apply_environment(course)
    document = course.document
    parts = [f"{len(document.variables)} variables set"] if document.variables else []
    parts += (
        [
            (
                f"{len(document.secrets) - len(course.missing_secrets)} of "
                f"{len(document.secrets)} secrets"
            )
        ]
        if document.secrets
        else []
    )
    course.printer.print_stage_line("environment", ", ".join(parts) or "nothing declared")


def apply_environment(course: Session, secret: Callable[[str], str] = read_colab_secret) -> None:
    """Do it, and say only what is missing; `secret` reads one from where they are kept."""
    document = course.document
    course.environ.update(document.variables)
    for name, path in document.paths.items():
        if why := _make(path):
            course.printer.print_stage_line(
                "environment", f"the folder {path} (paths.{name}) cannot be used: {why}"
            )
    course.missing_secrets = [
        name
        for name, stored in document.secrets.items()
        if not _fetched(course, name, stored, secret)
    ]


def _make(path: str) -> str:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    return "" if os.access(path, os.W_OK) else "it cannot be written"


def _fetched(course: Session, name: str, stored: str, secret: Callable[[str], str]) -> bool:
    """Put a secret into its variable. One that is set already stays: whoever set it meant it, and
    Colab's store needs a browser.
    """
    if not course.environ.get(name):
        try:
            course.environ[name] = secret(stored)
        except SecretUnavailable as error:
            course.printer.print_stage_line("environment", f"the secret {name} is missing: {error}")
            return False
    course.printer.add_secrets([course.environ[name]])
    return True
