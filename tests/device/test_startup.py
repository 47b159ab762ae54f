"""The shell half by itself, as root with folders of its own in place of /var/lib and /var/log: overlaps, and a second half that is killed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from provision.assets import asset
from tests.device.bench import BUCKET, Cloud
from tests.support import require

pytestmark = pytest.mark.root
_WITHIN = """
set -e
mount --bind "$1" /var/lib
mount --bind "$2" /var/log
mount -t tmpfs tmpfs /run
eval "$4"
exec env -i PATH="$PATH" PROVISION_METADATA="$5" PROVISION_STORAGE="$6" PROVISION_SECRETS="$6" "$3"
"""


def start(cloud: Cloud, folder: Path, before: str = ":") -> subprocess.CompletedProcess[str]:
    """Run the program in a mount namespace, after a line of shell."""
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True)
    require("root", os.geteuid() == 0 and done.returncode == 0, f"folders of its own need root here: {done.stderr or 'not root'}")
    for name in ("lib", "log"):
        (folder / name).mkdir(exist_ok=True)
    words = [str(folder / "lib"), str(folder / "log"), str(asset("templates/workbench-startup.sh")), before]
    argv = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "bash",
        "-c",
        _WITHIN,
        "bash",
        *words,
        f"{cloud.address}/computeMetadata/v1",
        cloud.address,
    ]
    return subprocess.run(argv, capture_output=True, text=True, timeout=600)


@pytest.fixture
def announced(cloud: Cloud) -> Cloud:
    cloud.announce(cloud.document("nonce-0001"))
    return cloud


def swapped(cloud: Cloud, code: str) -> None:
    """Announce a run whose second half is this code."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("__main__.py", code)
    document = cloud.document("nonce-0001")
    document["fetch"]["device"] = cloud.keep(f"{BUCKET}/device.pyz", buffer.getvalue())
    cloud.announce(document)


def test_two_runs_do_not_overlap(announced: Cloud, tmp_path: Path) -> None:
    done = start(announced, tmp_path, "mkdir -p /var/lib/provision; flock /var/lib/provision/lock sleep 30 & sleep 0.3")
    assert (done.returncode, done.stdout) == (0, "provision: another run is at work on this instance\n")
    assert announced.store.history == []


def test_without_an_announcement_there_is_nothing_to_do(cloud: Cloud, tmp_path: Path) -> None:
    done = start(cloud, tmp_path)
    assert (done.returncode, done.stdout) == (0, "provision: the metadata key provision-run is missing: nothing to do\n")


def test_an_image_without_a_python_that_is_new_enough_is_told(announced: Cloud, tmp_path: Path) -> None:
    hide = "for p in /usr/bin/python3* /usr/local/bin/python3*; do [ ! -x $p ] || mount --bind /bin/false $p; done"
    done = start(announced, tmp_path, hide)
    assert (done.returncode, done.stdout) == (1, "provision: no Python 3.10 or newer on this image: choose a newer image\n")


def test_a_second_half_that_is_killed_is_told_with_its_phase_and_line(cloud: Cloud, tmp_path: Path) -> None:
    work = "/var/lib/provision/runs/nonce-0001/phase"
    swapped(cloud, f"import os, signal\nopen({work!r}, 'w').write('packages')\nos.kill(os.getpid(), signal.SIGKILL)\n")
    done = start(cloud, tmp_path)
    assert done.returncode == 137
    status = cloud.store.status()
    assert {key: status[key] for key in ("n", "s", "p", "exit")} == {"n": "nonce-0001", "s": "error", "p": "packages", "exit": 137}
    assert "device.pyz" in asset("templates/workbench-startup.sh").read_text().splitlines()[status["line"] - 2]


def test_what_the_second_half_told_is_not_told_again(cloud: Cloud, tmp_path: Path) -> None:
    swapped(cloud, "open('/var/lib/provision/runs/nonce-0001/told', 'w')\nraise SystemExit(1)\n")
    assert start(cloud, tmp_path).returncode == 1
    assert cloud.store.history == []


def test_the_program_gets_no_variables_that_lie_about(cloud: Cloud, tmp_path: Path) -> None:
    swapped(cloud, "import json, os\nopen('/var/log/variables', 'w').write(json.dumps(dict(os.environ)))\n")
    assert start(cloud, tmp_path, "export PYTHONPATH=/evil BASH_ENV=/evil HOME=").returncode == 0
    variables = json.loads((tmp_path / "log/variables").read_text())
    assert variables["HOME"] == "/root"
    assert variables["PATH"].startswith("/usr/local/sbin:")
    assert "PYTHONPATH" not in variables
    assert variables["UV_NO_PROGRESS"] == "1"


def test_a_run_that_failed_is_tried_again_and_one_that_is_done_is_not(cloud: Cloud, tmp_path: Path) -> None:
    swapped(
        cloud, "import pathlib\nbase = pathlib.Path('/var/lib/provision/runs/nonce-0001')\nbase.joinpath('count').open('a').write('x')\nraise SystemExit(1)\n"
    )
    for _ in range(2):
        start(cloud, tmp_path)
    assert (tmp_path / "lib/provision/runs/nonce-0001/count").read_text() == "xx"
    (tmp_path / "lib/provision/runs/nonce-0001/done").touch()
    assert "is done already" in start(cloud, tmp_path).stdout
    assert (tmp_path / "lib/provision/runs/nonce-0001/count").read_text() == "xx"


def test_names_of_objects_are_encoded_byte_by_byte(cloud: Cloud, tmp_path: Path) -> None:
    cloud.announce(cloud.document("nonce-0001"))
    announced = json.loads(cloud.store.attributes["provision-run"])
    odd = "gs://my-bucket/a b/ü+%2F&?#/document.json"
    cloud.objects[odd] = cloud.objects[announced["document"]]
    cloud.store.attributes["provision-run"] = json.dumps({**announced, "document": odd})
    start(cloud, tmp_path)
    assert "GET /storage/v1/b/my-bucket/o/a%20b%2F%C3%BC%2B%252F%26%3F%23%2Fdocument.json?alt=media" in cloud.asked


def test_a_bucket_that_may_not_be_read_is_told_with_the_role(announced: Cloud, tmp_path: Path) -> None:
    announced.refused["document.json"] = 403
    done = start(announced, tmp_path)
    assert "cannot read gs://my-bucket/" in done.stdout
    assert "roles/storage.objectUser" in done.stdout
    assert announced.store.status()["s"] == "error"


def test_a_longest_life_that_is_no_number_is_no_reason_to_stop(announced: Cloud, tmp_path: Path) -> None:
    announced.store.attributes["provision-max-lifetime-seconds"] = "1; shutdown now"
    swapped(announced, "print('ran')")
    announced.store.attributes["provision-max-lifetime-seconds"] = "$(id)"
    assert start(announced, tmp_path).returncode == 0
