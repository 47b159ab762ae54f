"""What a sandbox has in the place of gcloud: its own commands and files, in every way out that is
shown.
"""

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
    """Return the folder of the sandbox of a spec, as a person would write it."""
    return os.path.relpath(path.resolve().parent / ".provision" / "sandbox")


def adapt_hint_to_sandbox(text: str, path: Path) -> str:
    """Return a way out as it is in a sandbox: nothing that gcloud does to an instance is shown, as
    there is none of that name.
    """
    own = {
        "delete": f"provision destroy {shlex.quote(str(path))} --sandbox",
        "describe": f"provision status {shlex.quote(str(path))} --sandbox",
        "list": f"provision orphans {shlex.quote(str(path))} --sandbox",
        "diagnose": f"its disk lies below {sandbox_folder(path)}/machines/",
        "get-serial-port-output": f"it lies in {sandbox_folder(path)}/serial/",
        "ssh": "there is no shell on a machine of the sandbox",
    }
    told = _GCLOUD_COMMAND.sub(lambda found: own[found[1]], text)
    return f"{told}\n{_SANDBOX_NOTE}" if "gcloud " in told else told
