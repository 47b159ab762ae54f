"""Paths and URIs of files relative to the root of their repository."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from provision.sanitize import redact

URI_BASE_ID = "%SRCROOT%"
"""The customary name of the repository's root in SARIF, section 3.14.14."""
_BUILTIN = "builtin:"


@dataclass(frozen=True, slots=True)
class Repository:
    """The absolute root of the repository, and the absolute folder from which files were named."""

    root: Path
    here: Path

    @classmethod
    def from_environment(cls, here: Path, environment: Mapping[str, str]) -> Repository:
        """Return the checkout that CI names if `here` is in it, else `here`.

        GitHub sets GITHUB_WORKSPACE, GitLab sets CI_PROJECT_DIR.
        """
        workspace = environment.get("GITHUB_WORKSPACE") or environment.get("CI_PROJECT_DIR", "")
        root = Path(os.path.normpath(workspace))
        if not root.is_absolute() or not here.is_relative_to(root):
            root = here
        return cls(root, here)

    def relative_path(self, name: str) -> str | None:
        """Return a file's path below the root, with slashes; None for any other file."""
        if name.startswith(_BUILTIN):
            return None
        path = Path(os.path.normpath(self.here / name))
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else None

    def sarif_location(self, name: str) -> dict[str, str]:
        """Return a SARIF artifactLocation: a relative URI below the root, else an absolute one.

        Bytes that are not UTF-8 are kept, percent-encoded.
        """
        if name.startswith(_BUILTIN):
            return {"uri": _BUILTIN + quote(name.removeprefix(_BUILTIN))}
        path = self.relative_path(name)
        if path is None:
            return {
                "uri": "file://" + quote(os.fsencode(redact(os.path.normpath(self.here / name))))
            }
        return {"uri": quote(os.fsencode(redact(path))), "uriBaseId": URI_BASE_ID}
