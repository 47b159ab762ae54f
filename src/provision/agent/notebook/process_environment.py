"""Variables, folders and secrets for the notebook and its programs."""

from __future__ import annotations

import os

from ..core.code_clone import CLONE, CodeClone, clone_code
from ..core.code_files import ARCHIVE, CodeError, unpack_code
from .drive import is_below, mount_drive
from .errors import StageError
from .kernel import SecretUnavailable, read_colab_secret
from .session import Session


def environment_stage(session: Session) -> None:
    """Set variables, make folders, fetch secrets."""
    apply_environment(session)
    document, parts = session.document, list[str]()
    if document.variables:
        parts.append(f"{len(document.variables)} variables set")
    if document.secrets:
        count = len(document.secrets)
        parts.append(f"{count - len(session.missing_secrets)} of {count} secrets available")
    if session.code_folder is not None:
        parts.append(f"code in {session.code_folder}")
    session.print_line(", ".join(parts) or "nothing declared")


def apply_environment(session: Session) -> None:
    """Apply the environment, and print only missing folders and secrets."""
    document = session.document
    session.environ.update(document.variables)
    if session.code_folder is not None:
        _unpack_code(session)
        session.environ["PROVISION_CODE"] = str(session.code_folder)
    not_mounted = mount_drive(document.drive) if document.drive else ""
    for name, path in document.paths.items():
        # A folder that is made at the mount point before Drive is there would be on the disk.
        why = not_mounted if is_below(path, document.drive) else ""
        if why := why or _make_folder(path, session):
            session.print_line(f"cannot use the folder {path} (paths.{name}): {why}")
    session.missing_secrets = []
    for name, stored_name in document.secrets.items():
        # A variable that is already set stays: Colab's store needs a browser.
        if not session.environ.get(name):
            try:
                session.environ[name] = read_colab_secret(stored_name)
            except SecretUnavailable as error:
                session.print_line(f"the secret {name} is missing: {error}")
                session.missing_secrets.append(name)
                continue
        session.printer.add_secrets([session.environ[name]])


def _unpack_code(session: Session) -> None:
    """Write the files of the code. Raises StageError."""
    if (session.folder / CLONE).exists():
        _clone_code(session)
        return
    try:
        archive = (session.folder / ARCHIVE).read_bytes()
        unpack_code(archive, str(session.document.code_digest), session.code_parent)
    except CodeError as error:
        raise StageError(
            "cannot unpack the project's code",
            str(error),
            "render the notebook again, and run its first cell",
            "error",
        ) from None


def _clone_code(session: Session) -> None:
    """Clone the code from its public repository. Raises StageError."""
    url = "its repository"
    try:
        clone = CodeClone.from_bytes((session.folder / CLONE).read_bytes())
        url = clone.url
        if clone.digest != session.document.code_digest:
            raise CodeError(f"{CLONE} does not contain this notebook's code")
        clone_code(clone, session.code_parent, session.environ_without_secrets)
    except CodeError as error:
        raise StageError(
            f"the project's code cannot be cloned from {url}",
            str(error),
            "check the network, and that anybody can read the repository; or set `clone: false` "
            "under `code` in the spec and render the notebook again: it then contains the code",
            "error",
        ) from None


def _make_folder(path: str, session: Session) -> str:
    """Make a folder, and say so if it is on Drive; return why it cannot be used, or ""."""
    is_new_on_drive = is_below(path, session.document.drive) and not os.path.exists(path)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    if is_new_on_drive:
        session.print_line(f"created the folder {path}, which was not on Google Drive")
    return "" if os.access(path, os.W_OK) else "it is not writable"
