"""The program as a file of its own: what it imports, which Pythons it runs on, the bytes of it and
of what a cell carries.
"""

from __future__ import annotations

import shutil
import subprocess

from provision.agent.core.files import zip_files
from provision.agent.notebook.document import PAYLOAD_FILES
from provision.verification.device_files import (
    installer_zipapp,
    notebook_zipapp,
    probe_zipapp,
    workbench_zipapp,
)
from tests.agent.notebook.bench import Runtime


def test_nothing_that_a_lock_installs_is_imported_in_the_kernel(runtime: Runtime) -> None:
    runtime.in_colab()
    folder = runtime.lay_out(runtime.document("alpha==1.0", "gamma==2.0"))
    code = (
        "provision_cell.start(FOLDER)\nprint(sorted({'alpha', 'gamma', 'torch', 'numpy'} & "
        "set(sys.modules)))"
    )
    done = runtime.cell(folder, code, before="import google.colab")
    assert done.stdout.endswith("[]\n"), done.stderr


def test_all_its_stages_run_on_every_promised_python(runtime: Runtime, pythons: list[str]) -> None:
    for python in pythons:
        shutil.rmtree(runtime.folder / "image")
        runtime.uv("venv", "--quiet", "--python", python, str(runtime.folder / "image"))
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        minor = subprocess.run(
            [runtime.python, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        changes = {
            "python": minor,
            "install__python_version": minor,
            "expectations__python": {"version": minor, "prefix": ""},
        }
        folder = runtime.lay_out(runtime.document("alpha==1.0", "gamma==2.0", **changes))
        for told in ("installed 2 packages", "nothing to install"):
            done = runtime.start(folder)
            assert (done.returncode, done.stderr) == (0, ""), python
            assert told in done.stdout, python


def test_its_file_has_the_same_bytes_every_time_and_is_none_of_the_others() -> None:
    assert notebook_zipapp() == notebook_zipapp()
    assert len({notebook_zipapp(), workbench_zipapp(), installer_zipapp(), probe_zipapp()}) == 4


def test_a_payload_has_the_same_bytes_whatever_the_order() -> None:
    members = {name: name.encode() for name in PAYLOAD_FILES}
    assert zip_files(members) == zip_files(dict(reversed(members.items())))
    assert zip_files(members) != zip_files({**members, "document.json": b"{}"})
