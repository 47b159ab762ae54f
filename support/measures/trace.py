"""The files in which a program calls a function."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

# CO_OPTIMIZED (1) is set for functions, and not for modules and class bodies.
_TRACER = """
import importlib, json, sys
output, module, *arguments = sys.argv[1:]
main = importlib.import_module(module).main
entered = set()
def profile(frame, event, argument):
    if event == "call" and frame.f_code.co_flags & 1:
        entered.add(frame.f_code.co_filename)
sys.setprofile(profile)
try:
    code = main(arguments)
finally:
    sys.setprofile(None)
    with open(output, "w") as file:
        json.dump(sorted(entered), file)
sys.exit(code)
"""


def entered_files(
    source: Path, module: str, *arguments: str, folder: Path, environment: Mapping[str, str]
) -> list[str]:
    """Run `main(arguments)` of a module and return the files below `source` that it enters."""
    with tempfile.NamedTemporaryFile(suffix=".json") as output:
        done = subprocess.run(
            [sys.executable, "-c", _TRACER, output.name, module, *arguments],
            cwd=folder,
            env=dict(environment),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{module} ended with {done.returncode}:\n{done.stderr}")
        paths: list[str] = json.loads(Path(output.name).read_text(encoding="utf-8"))
    return [os.path.relpath(path, source) for path in paths if path.startswith(f"{source}/")]
