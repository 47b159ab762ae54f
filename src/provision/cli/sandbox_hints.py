"""Hints in a sandbox: provision's commands and files in place of gcloud's commands."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

_GCLOUD_COMMAND = re.compile(
    r"gcloud (?:workbench instances|compute instances|compute) "
    r"(delete|describe|list|diagnose|get-serial-port-output|ssh)\b.*"
)
_SANDBOX_NOTE = (
    "SANDBOX: on Google Cloud the gcloud commands above would help; here, leave the --fault out"
)


def sandbox_folder(path: Path) -> str:
    """Return the folder of a spec's sandbox, relative to the working folder."""
    return os.path.relpath(path.resolve().parent / ".provision" / "sandbox")


def adapt_hint_to_sandbox(hint: str, path: Path) -> str:
    """Return a hint without gcloud's commands for instances: gcloud does not know the sandbox's."""
    spec, folder = shlex.quote(str(path)), sandbox_folder(path)
    replacements = {
        "delete": f"provision destroy {spec} --sandbox",
        "describe": f"provision status {spec} --sandbox",
        "list": f"provision orphans {spec} --sandbox",
        "diagnose": f"its disk lies below {folder}/machines/",
        "get-serial-port-output": f"it lies in {folder}/serial/",
        "ssh": "there is no shell on a machine of the sandbox",
    }
    adapted = _GCLOUD_COMMAND.sub(lambda match: replacements[match[1]], hint)
    return f"{adapted}\n{_SANDBOX_NOTE}" if "gcloud " in adapted else adapted
