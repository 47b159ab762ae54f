"""The code of a project on a runtime: unpacked for the notebook and its programs, and verified."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from provision.agent.core.code_files import CodeFile, CodeManifest, code_folder, pack_code
from tests.agent.notebook.bench import Runtime

FILES = {"job.py": b"import os\nprint('here', os.path.basename(os.getcwd()))\n"}
MANIFEST = CodeManifest(
    tuple(
        CodeFile(name, 0o100644, hashlib.sha256(content).hexdigest())
        for name, content in FILES.items()
    ),
    "c" * 40,
)


def lay_out(runtime: Runtime, archive: bytes) -> Path:
    """Write the members of a cell whose payload has code, and return their folder."""
    command = {"argv": ["python", "job.py"], "exit": 0, "files": [], "stdout": "here tree"}
    document = runtime.document(
        "alpha==1.0",
        expectations__code={"digest": MANIFEST.digest},
        expectations__command=command,
    )
    return runtime.lay_out(document, code=archive)


@pytest.mark.long
def test_the_code_is_unpacked_and_its_command_is_a_check(runtime: Runtime) -> None:
    runtime.bring("alpha==1.0")
    folder = lay_out(runtime, pack_code(MANIFEST, FILES))
    done = runtime.start(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    tree = code_folder(runtime.base / "code", MANIFEST.digest)
    assert f"code in {tree}" in done.stdout
    checks = {row["id"]: row["status"] for row in runtime.report["checks"]}
    assert (checks["V01"], checks["V02"]) == ("pass", "pass")
    ran = runtime.start(folder, "job.py", verb="run")
    assert "here tree" in ran.stdout


def test_an_archive_of_other_code_stops_the_cell(runtime: Runtime) -> None:
    runtime.bring("alpha==1.0")
    other = CodeManifest(MANIFEST.files, "d" * 40)
    content = {"job.py": b"other"}
    rows = (CodeFile("job.py", 0o100644, hashlib.sha256(b"other").hexdigest()),)
    assert other.digest == MANIFEST.digest
    folder = lay_out(runtime, pack_code(CodeManifest(rows), content))
    done = runtime.start(folder)
    assert done.returncode == 1
    assert "cannot unpack the project's code" in done.stderr
    assert "does not match the expected digest" in done.stderr
    assert json.loads((runtime.base / "status.json").read_text())["outcome"] == "error"
