"""The command line as it is, ended where verification would begin; every call of uv is written down
when a folder for that is named.

    python shortened.py FOLDER apply SPEC ...    # "-" for FOLDER: write nothing down

Python tells an audit hook of each program before it is started. The hook ends this process when
the program is the probe, so that what was spent is
exactly what comes before the verification; and it keeps each call of uv (words, variables, a
copy of its folder), so that the very same calls can be made
by hand afterwards. The hook itself costs some milliseconds, and they count against us.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

_PROBE = "--expectations"


def listen(folder: Path | None) -> None:
    """From now on, end at the probe's start, and write the calls of uv to `folder`."""

    def hear(event: str, details: tuple[Any, ...]) -> None:
        if event != "subprocess.Popen":
            return
        words = [os.fspath(word) for word in details[1]]
        if _PROBE in words:
            # At once: what goes on beside the verification is not waited for.
            os._exit(0)
        if folder is not None and Path(words[0]).name == "uv":
            _keep(folder, words, details[2], details[3])

    sys.addaudithook(hear)


def _keep(folder: Path, words: list[str], cwd: Any, environment: Any) -> None:
    number = len(list(folder.glob("*.json")))
    if cwd is not None:
        shutil.copytree(cwd, folder / str(number), symlinks=True)
    call = {
        "argv": words,
        "cwd": None if cwd is None else os.fspath(cwd),
        "environment": dict(environment or os.environ),
    }
    (folder / f"{number}.json").write_text(json.dumps(call))


if __name__ == "__main__":
    listen(None if sys.argv[1] == "-" else Path(sys.argv[1]))
    from provision.cli import run_cli

    sys.exit(run_cli(sys.argv[2:]))
