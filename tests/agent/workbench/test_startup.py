"""The shell half by itself, as root with folders of its own in place of /var/lib and /var/log:
overlaps, and a second half that is killed.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from provision.assets import find_asset
from tests.agent.workbench.bench import BUCKET, CUT, Cloud
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
    require(
        "root",
        os.geteuid() == 0 and done.returncode == 0,
        f"folders of its own need root here: {done.stderr or 'not root'}",
    )
    for name in ("lib", "log"):
        (folder / name).mkdir(exist_ok=True)
    words = [
        str(folder / "lib"),
        str(folder / "log"),
        str(find_asset("templates/workbench-startup.sh")),
        before,
    ]
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
    done = start(
        announced,
        tmp_path,
        "mkdir -p /var/lib/provision; flock /var/lib/provision/lock sleep 30 & sleep 0.3",
    )
    assert (done.returncode, done.stdout) == (
        0,
        "provision: another run is already in progress on this instance\n",
    )
    assert announced.store.history == []


def test_without_an_announcement_there_is_nothing_to_do(cloud: Cloud, tmp_path: Path) -> None:
    done = start(cloud, tmp_path)
    assert (done.returncode, done.stdout) == (
        0,
        "provision: the metadata key provision-run is missing: nothing to do\n",
    )


def test_an_image_without_a_python_that_is_new_enough_is_told(
    announced: Cloud, tmp_path: Path
) -> None:
    hide = (
        "for p in /usr/bin/python3* /usr/local/bin/python3*; do [ ! -x $p ] || mount --bind "
        "/bin/false $p; done"
    )
    done = start(announced, tmp_path, hide)
    assert (done.returncode, done.stdout) == (
        1,
        "provision: no Python 3.10 or newer on this image: choose a newer image\n",
    )


def test_a_second_half_that_is_killed_is_told_with_its_phase_and_line(
    cloud: Cloud, tmp_path: Path
) -> None:
    work = "/var/lib/provision/runs/nonce-0001/phase"
    swapped(
        cloud,
        f"import os, signal\nopen({work!r}, 'w').write('packages')\nos.kill(os.getpid(), "
        "signal.SIGKILL)\n",
    )
    done = start(cloud, tmp_path)
    assert done.returncode == 137
    status = cloud.store.status()
    assert {key: status[key] for key in ("n", "s", "p", "exit")} == {
        "n": "nonce-0001",
        "s": "error",
        "p": "packages",
        "exit": 137,
    }
    assert (
        "device.pyz"
        in find_asset("templates/workbench-startup.sh").read_text().splitlines()[status["line"] - 2]
    )


def test_what_the_second_half_told_is_not_told_again(cloud: Cloud, tmp_path: Path) -> None:
    swapped(
        cloud, "open('/var/lib/provision/runs/nonce-0001/reported', 'w')\nraise SystemExit(1)\n"
    )
    assert start(cloud, tmp_path).returncode == 1
    assert cloud.store.history == []


def test_the_program_gets_no_variables_that_lie_about(cloud: Cloud, tmp_path: Path) -> None:
    swapped(
        cloud,
        "import json, os\nopen('/var/log/variables', 'w').write(json.dumps(dict(os.environ)))\n",
    )
    assert start(cloud, tmp_path, "export PYTHONPATH=/evil BASH_ENV=/evil HOME=").returncode == 0
    variables = json.loads((tmp_path / "log/variables").read_text())
    assert variables["HOME"] == "/root"
    assert variables["PATH"].startswith("/usr/local/sbin:")
    assert "PYTHONPATH" not in variables
    assert variables["UV_NO_PROGRESS"] == "1"


@pytest.mark.long
def test_a_run_that_failed_is_tried_again_and_one_that_is_done_is_not(
    cloud: Cloud, tmp_path: Path
) -> None:
    swapped(
        cloud,
        "import pathlib\n"
        "base = pathlib.Path('/var/lib/provision/runs/nonce-0001')\n"
        "base.joinpath('count').open('a').write('x')\n"
        "raise SystemExit(1)\n",
    )
    for _ in range(2):
        start(cloud, tmp_path)
    assert (tmp_path / "lib/provision/runs/nonce-0001/count").read_text() == "xx"
    (tmp_path / "lib/provision/runs/nonce-0001/done").touch()
    assert "is already done" in start(cloud, tmp_path).stdout
    assert (tmp_path / "lib/provision/runs/nonce-0001/count").read_text() == "xx"


def test_names_of_objects_are_encoded_byte_by_byte(cloud: Cloud, tmp_path: Path) -> None:
    cloud.announce(cloud.document("nonce-0001"))
    announced = json.loads(cloud.store.attributes["provision-run"])
    odd = "gs://my-bucket/a b/ü+%2F&?#/document.json"
    cloud.objects[odd] = cloud.objects[announced["document"]]
    cloud.store.attributes["provision-run"] = json.dumps({**announced, "document": odd})
    start(cloud, tmp_path)
    assert (
        "GET /storage/v1/b/my-bucket/o/a%20b%2F%C3%BC%2B%252F%26%3F%23%2Fdocument.json?alt=media"
        in cloud.asked
    )


def test_a_bucket_that_may_not_be_read_is_told_with_the_role(
    announced: Cloud, tmp_path: Path
) -> None:
    announced.refused["document.json"] = 403
    done = start(announced, tmp_path)
    assert "cannot read gs://my-bucket/" in done.stdout
    assert "roles/storage.objectUser" in done.stdout
    assert announced.store.status()["s"] == "error"


def test_a_longest_life_that_is_no_number_is_no_reason_to_stop(
    announced: Cloud, tmp_path: Path
) -> None:
    announced.store.attributes["provision-max-lifetime-seconds"] = "1; shutdown now"
    swapped(announced, "print('ran')")
    announced.store.attributes["provision-max-lifetime-seconds"] = "$(id)"
    assert start(announced, tmp_path).returncode == 0


LIFETIME = "provision-max-lifetime-seconds"
TELLS = "import os; print('armed' if os.path.exists('/run/provision/armed') else 'not armed')"
FAKE_SHUTDOWN = """
mount -t tmpfs tmpfs /usr/local/sbin
printf '#!/bin/sh\\necho "$@" >/var/lib/shutdown\\n' >/usr/local/sbin/shutdown
chmod +x /usr/local/sbin/shutdown
"""


def guarded(cloud: Cloud, attribute: str | None, in_document: int | None) -> None:
    """Announce a run that says whether a deadline is armed; the longest life stands in the
    metadata, in the document, or in both.
    """
    swapped(cloud, TELLS)
    document = json.loads(cloud.objects[f"{BUCKET}/nonce-0001/document.json"])
    cloud.announce(
        {**document, "max_lifetime_s": in_document}, **({LIFETIME: attribute} if attribute else {})
    )


@pytest.mark.long(after=1)
@pytest.mark.parametrize("trouble", [[], [CUT], [503, CUT, 503], [500]])
def test_a_deadline_is_armed_whatever_the_metadata_server_does_first(
    cloud: Cloud, tmp_path: Path, trouble: list[int]
) -> None:
    guarded(cloud, "900000000", 900000000)
    cloud.trouble = {LIFETIME: trouble, "attributes/provision-run": [CUT]}
    done = start(cloud, tmp_path)
    assert (done.returncode, done.stdout) == (0, "armed\n"), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("attribute", "in_document", "said"),
    [(None, None, "not armed"), (None, 900000000, "armed"), ("$(id)", 900000000, "armed")],
)
def test_the_document_says_the_longest_life_too(
    cloud: Cloud, tmp_path: Path, attribute: str | None, in_document: int | None, said: str
) -> None:
    guarded(cloud, attribute, in_document)
    done = start(cloud, tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{said}\n"), done.stdout + done.stderr


def test_where_no_deadline_can_be_armed_the_machine_is_powered_off(
    cloud: Cloud, tmp_path: Path
) -> None:
    guarded(cloud, "900000000", 900000000)
    done = start(cloud, tmp_path, f"echo in the way >/run/provision; {FAKE_SHUTDOWN}")
    assert "cannot set a timer" in done.stdout
    assert "armed\n" not in done.stdout
    assert (cloud.store.status()["s"], cloud.store.status()["p"]) == ("error", "deadline")
    assert (tmp_path / "lib/shutdown").read_text() == "-h now\n"


@pytest.mark.long(minutes=True)
def test_a_metadata_server_that_does_not_tell_of_a_longest_life_is_asked_on(
    cloud: Cloud, tmp_path: Path
) -> None:
    guarded(cloud, "900000000", None)
    swapped_wait = (
        "import os, time; end = time.monotonic() + 30\nwhile not "
        "os.path.exists('/run/provision/armed') and time.monotonic() < end: time.sleep(0.1)\n"
    )
    swapped(cloud, swapped_wait + TELLS)
    cloud.store.attributes[LIFETIME] = "900000000"
    cloud.trouble = {LIFETIME: [503] * 35}
    done = start(cloud, tmp_path)
    assert "is retried in the background" in done.stdout
    assert done.stdout.endswith("\narmed\n"), done.stdout + done.stderr
