"""The real startup program on a machine in an isolated root, against stand-ins of the services on
loopback and the rig's index.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provision.sandbox.namespace_booter import NamespaceBooter
from provision.verification import read_report
from tests.agent.workbench.bench import BUCKET, CANARY, ENVIRONMENT, NAME, Cloud, Faults, Store
from tests.rig import MINOR
from tests.support import require

pytestmark = pytest.mark.root
REFERENCE = "projects/p/secrets/hf/versions/3"
L4 = {"gceSetup": {"acceleratorConfigs": [{"type": "NVIDIA_L4", "coreCount": "1"}]}}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with Cloud(tmp_path / "cloud") as found:
        yield found


@pytest.fixture
def booter(tmp_path: Path) -> Iterator[NamespaceBooter]:
    made = NamespaceBooter(tmp_path / "sandbox", runner=None)
    why = made.unavailable_reason()
    require(
        "root",
        os.geteuid() == 0 and not why,
        f"a machine in an isolated root needs root here: {why or 'not root'}",
    )
    yield made
    made.close()
    shutil.rmtree(tmp_path / "sandbox", ignore_errors=True)


def boot(booter: NamespaceBooter, cloud: Cloud, *faults: str) -> int | None:
    booter.start(cloud.store, NAME, cloud.endpoints, Faults(*faults))
    code = booter.wait(NAME, 120)
    deadline = time.monotonic() + 300
    while (
        "handle_post_startup_script" not in repr(cloud.store.guest) and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    return code


def disk(booter: NamespaceBooter) -> Path:
    return next((booter.folder / "machines").iterdir()) / "disk"


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


def test_a_report_comes_home_and_this_machine_stays_as_it_was(
    booter: NamespaceBooter, cloud: Cloud
) -> None:
    before = (
        mounts(),
        Path("/proc/net/fib_trie").read_text(),
        os.uname().nodename,
        os.path.lexists("/var/lib/provision"),
    )
    cloud.announce(cloud.document("nonce-0001", "alpha", paths={"data": "/home/jupyter/data"}))
    assert boot(booter, cloud) == 0, cloud.store.serial
    content = cloud.objects[f"{BUCKET}/nonce-0001/report.json"]
    report = read_report(content, "report.json", nonce="nonce-0001")
    assert (report.verdict, report.exit_code, report.exit_code_in_sandbox) == ("simulated", 3, 0)
    assert (
        report.document["subject"]["simulated"][0] == "instance: an isolated root on this machine"
    )
    result = cloud.store.result()
    assert (result["n"], result["v"], result["exit"]) == ("nonce-0001", "simulated", 0)
    assert result["sha256"] == hashlib.sha256(content).hexdigest()
    assert result["uri"] == f"{BUCKET}/nonce-0001/report.json"
    assert cloud.store.status() == {"n": "nonce-0001", "s": "done", "p": "report", "i": 1, "of": 1}
    assert cloud.store.guest["notebooks/handle_post_startup_script"] == "DONE"
    made = disk(booter) / Path(ENVIRONMENT).relative_to("")
    assert (made / "provision.json").stat().st_uid not in (0, os.getuid()), (
        "it is made as jupyter, not as root"
    )
    assert (disk(booter) / "data").is_dir()
    assert before == (
        mounts(),
        Path("/proc/net/fib_trie").read_text(),
        os.uname().nodename,
        os.path.lexists("/var/lib/provision"),
    )
    assert not Path("/var/log/provision-startup.log").exists()


@pytest.mark.long
def test_a_second_boot_with_the_same_nonce_does_nothing(
    booter: NamespaceBooter, cloud: Cloud
) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    assert boot(booter, cloud) == 0
    asked, writes = len(cloud.asked), len(cloud.store.history)
    stamp = (disk(booter) / ENVIRONMENT / "provision.json").stat().st_mtime_ns
    cloud.store.serial = ""
    assert boot(booter, cloud) == 0
    assert "run nonce-0001 is already done: nothing to do" in cloud.store.serial
    assert all(
        "/program.sh" in path or "document.json" in path.replace("%2F", "/") or "program.sh" in path
        for path in cloud.asked[asked:]
    )
    assert [key for key, _ in cloud.store.history[writes:]] == [
        "notebooks/handle_post_startup_script"
    ]
    assert (disk(booter) / ENVIRONMENT / "provision.json").stat().st_mtime_ns == stamp


@pytest.mark.long
def test_a_new_run_of_the_same_lock_installs_nothing_and_proves_again(
    booter: NamespaceBooter, cloud: Cloud
) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    assert boot(booter, cloud) == 0
    stamp = (disk(booter) / ENVIRONMENT / "provision.json").stat().st_mtime_ns
    cloud.announce(cloud.document("nonce-0002", "alpha"))
    assert boot(booter, cloud) == 0
    assert "matches the lock: nothing to install" in cloud.text(f"{BUCKET}/nonce-0002/log.txt")
    assert cloud.report("nonce-0002")["subject"]["nonce"] == "nonce-0002"
    assert (disk(booter) / ENVIRONMENT / "provision.json").stat().st_mtime_ns == stamp


@pytest.mark.long
def test_a_new_lock_goes_the_same_way_beside_the_old_environment(
    booter: NamespaceBooter, cloud: Cloud
) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    assert boot(booter, cloud) == 0
    cloud.announce(cloud.document("nonce-0002", "alpha", "beta", digest="sha256:" + "cd" * 32))
    assert boot(booter, cloud) == 0
    assert cloud.store.status()["of"] == 2
    assert sorted(path.name for path in (disk(booter) / ".provision/envs").iterdir()) == [
        "abababababab",
        "cdcdcdcdcdcd",
    ]


@pytest.mark.long(after=2)
@pytest.mark.parametrize("what", ["document", "device", "installer", "program-of-another-run"])
def test_what_is_not_what_was_announced_is_refused(
    booter: NamespaceBooter, cloud: Cloud, what: str
) -> None:
    document = cloud.document("nonce-0001", "alpha")
    cloud.announce(document)
    if what == "document":
        cloud.objects[f"{BUCKET}/nonce-0001/document.json"] = json.dumps(
            {**document, "env": {"EVIL": "1"}}
        ).encode()
    elif what == "program-of-another-run":
        cloud.announce(
            {
                **document,
                "nonce": "nonce-0001",
                "schema": "provision.agent.workbench/1",
                "expectations": {},
            }
        )
        announced = json.loads(cloud.store.attributes["provision-run"])
        cloud.store.attributes["provision-run"] = json.dumps({**announced, "nonce": "nonce-9999"})
    else:
        cloud.objects[f"{BUCKET}/{what}.pyz"] = b"import os; os.abort()"
    assert boot(booter, cloud) == 0, "whatever runs the script does not look at its exit code"
    status = cloud.store.status()
    assert (status["s"], status["p"]) == ("error", "start")
    assert status.get("line", 1) > 0
    assert "provision/result" not in cloud.store.guest
    assert not (disk(booter) / ENVIRONMENT).exists()
    if what in ("document", "device"):
        assert f"{BUCKET}/" in cloud.store.serial
        assert "does not have the announced sha256" in cloud.store.serial


def test_a_secret_is_nowhere_but_where_it_is_used(
    booter: NamespaceBooter, cloud: Cloud, tmp_path: Path
) -> None:
    cloud.secrets[REFERENCE] = CANARY
    cloud.announce(
        cloud.document(
            "nonce-0001",
            "ipykernel",
            secrets={"HF_TOKEN": REFERENCE},
            kernel={"name": "provision-x", "title": "x"},
        )
    )
    assert boot(booter, cloud) == 0, cloud.store.serial
    checks = [
        check["status"] for check in cloud.report("nonce-0001")["checks"] if check["id"] == "Y01"
    ]
    assert checks == ["pass"], "the probe saw it"
    assert CANARY.encode() not in cloud.everything()
    found = subprocess.run(
        ["grep", "-r", "-l", "-a", CANARY, str(booter.folder)], capture_output=True, text=True
    )
    assert found.stdout == ""
    token = next(one for one in cloud.bearers if one.startswith("Bearer "))
    assert token.removeprefix("Bearer ").encode() not in cloud.everything()


HOSTILE = [
    "$(touch /tmp/pwned)",
    "`touch /tmp/pwned`",
    "'; touch /tmp/pwned; '",
    '"; touch /tmp/pwned; "',
    "x\ntouch /tmp/pwned\n",
    "EOF\ntouch /tmp/pwned",
    "--help",
    "{{7*7}}",
]


def test_hostile_values_do_nothing(booter: NamespaceBooter, cloud: Cloud) -> None:
    env = {f"V{place}": value for place, value in enumerate(HOSTILE)}
    paths = {
        "data": "/home/jupyter/$(touch /home/jupyter/pwned)",
        "more": "/home/jupyter/-rf ; touch pwned",
    }
    kernel = {"name": "provision-x", "title": "'; touch /home/jupyter/pwned; $(id)"}
    cloud.announce(
        cloud.document("nonce-0001", "alpha", "ipykernel", env=env, paths=paths, kernel=kernel)
    )
    assert boot(booter, cloud) == 0, cloud.store.serial
    report = cloud.report("nonce-0001")
    assert report["verdict"]["result"] == "simulated", report["verdict"]
    root = disk(booter).parent
    assert not list(root.rglob("pwned"))
    assert (disk(booter) / "$(touch /home/jupyter/pwned)").parent.is_dir()
    assert (disk(booter) / "-rf ; touch pwned").is_dir()


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "run",
    [
        "",
        "{",
        "[]",
        '{"nonce": "../../../tmp/x", "digest": "sha256:' + "0" * 64 + '", "document": "gs://b/x"}',
        '{"nonce": "nonce-0001; id"}',
    ],
)
def test_a_damaged_announcement_is_told_and_nothing_is_fetched(
    booter: NamespaceBooter, cloud: Cloud, run: str
) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    cloud.store.attributes["provision-run"] = run
    boot(booter, cloud)
    assert "the metadata key provision-run is damaged" in cloud.store.serial
    assert not any(
        "nonce-0001" in path for path in cloud.asked if "storage" in path and "document" not in path
    )
    assert "provision/status" not in cloud.store.guest


@pytest.mark.long
def test_an_index_that_is_a_folder_of_this_machine_is_shown(
    booter: NamespaceBooter, cloud: Cloud, tmp_path: Path
) -> None:
    stand_in = tmp_path / "stand-in/alpha"
    stand_in.mkdir(parents=True)
    wheel = cloud.wheels["alpha"]
    (stand_in / wheel.name).symlink_to(wheel)
    (stand_in / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    document = cloud.document("nonce-0001", "alpha")
    document["install"]["indexes"] = {"pypi": stand_in.parent.as_uri()}
    cloud.announce(document)
    assert boot(booter, cloud) == 0
    assert cloud.store.status()["s"] == "done", cloud.store.serial


@pytest.mark.long
def test_a_machine_ends_at_its_longest_life(booter: NamespaceBooter, cloud: Cloud) -> None:
    document = cloud.document(
        "nonce-0001", "alpha", gpu={"type": "L4", "count": 1}, driver_timeout_s=600
    )
    cloud.announce(document, **{"provision-max-lifetime-seconds": "4"})
    booter.start(cloud.store, NAME, cloud.endpoints, Faults())
    deadline = time.monotonic() + 300
    while "the machine was shut down" not in cloud.store.serial and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "the machine was shut down" in cloud.store.serial, (
        "though it would wait for a driver for ten minutes"
    )
    assert "phase driver" in cloud.store.serial


def test_a_card_is_stood_in_for_and_that_is_said(booter: NamespaceBooter, cloud: Cloud) -> None:
    cloud.store.body = dict(L4)
    cloud.announce(cloud.document("nonce-0001", "alpha", gpu={"type": "L4", "count": 1}))
    assert boot(booter, cloud) == 0, cloud.store.serial
    assert "driver: NVIDIA L4, " in cloud.store.serial
    report = cloud.report("nonce-0001")
    assert report["verdict"]["result"] == "simulated"
    assert "gpu: nvidia-smi is simulated for 1 x NVIDIA L4" in report["subject"]["simulated"]


class Nowhere(NamespaceBooter):
    """A booter on a machine that isolates nothing."""

    def unavailable_reason(self) -> str:
        return "unshare: unshare failed: Operation not permitted"


@pytest.mark.long
def test_a_user_cannot_make_a_sandbox_look_real(booter: NamespaceBooter, cloud: Cloud) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"), **{"provision-simulated": "[]"})
    assert boot(booter, cloud) == 0
    assert cloud.report("nonce-0001")["verdict"]["result"] == "simulated"


def test_where_nothing_can_be_isolated_nothing_is_run_and_that_is_said(
    cloud: Cloud, tmp_path: Path
) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    booter = Nowhere(tmp_path / "sandbox")
    booter.start(cloud.store, NAME, cloud.endpoints, Faults())
    assert booter.wait(NAME, 1) is None
    assert cloud.store.guest == {
        "sandbox/unbooted": "unshare: unshare failed: Operation not permitted"
    }
    assert "the startup script is not run" in cloud.store.serial
    assert cloud.asked == []
    booter.stop(NAME)


def test_a_machine_that_cannot_be_made_says_why(booter: NamespaceBooter, cloud: Cloud) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    booter.runner = "/no/such/runner"
    booter.start(cloud.store, NAME, cloud.endpoints, Faults())
    assert booter.wait(NAME, 30) is None
    assert "mount --bind /no/such/runner" in cloud.store.serial
    assert cloud.store.guest == {
        "sandbox/unbooted": "the machine could not be created; see the serial output"
    }
    booter.stop(NAME)
    disk(booter).rmdir()
    disk(booter).symlink_to("/no/such/folder")
    booter.start(cloud.store, NAME, cloud.endpoints, Faults())
    assert "SANDBOX: the machine cannot be created: [Errno 17] File exists" in cloud.store.serial


def test_fault_wrong_gpu(booter: NamespaceBooter, cloud: Cloud) -> None:
    cloud.store.body = dict(L4)
    cloud.announce(cloud.document("nonce-0001", "alpha", gpu={"type": "L4", "count": 1}))
    boot(booter, cloud, "wrong-gpu")
    status = cloud.store.status()
    assert (status["s"], status["p"]) == ("error", "driver")
    assert status["e"].startswith("the GPU is Tesla P4")
    assert cloud.text(f"{BUCKET}/nonce-0001/log.txt")


def test_fault_silent_device(booter: NamespaceBooter, cloud: Cloud) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    booter.start(cloud.store, NAME, cloud.endpoints, Faults("silent-device"))
    assert booter.wait(NAME, 1) is None
    assert (cloud.store.guest, cloud.asked) == ({}, [])


def test_fault_script_failure(booter: NamespaceBooter, cloud: Cloud) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    boot(booter, cloud, "script-failure")
    status = cloud.store.status()
    assert (status["n"], status["s"], status["p"], status["exit"]) == (
        "nonce-0001",
        "error",
        "start",
        1,
    )
    program = (
        Path("templates/workbench-startup.sh").resolve().read_text().splitlines()
        if Path("templates").is_dir()
        else []
    )
    if program:
        assert "fetch" in program[status["line"] - 1]


@pytest.mark.long
def test_fault_forged_report(booter: NamespaceBooter, cloud: Cloud) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    boot(booter, cloud, "forged-report")
    deadline = time.monotonic() + 300
    while (
        cloud.report("nonce-0001")["subject"]["nonce"] == "nonce-0001"
        and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    content = cloud.objects[f"{BUCKET}/nonce-0001/report.json"]
    assert json.loads(content)["verdict"]["result"] == "verified"
    assert json.loads(content)["subject"]["nonce"] != "nonce-0001"
    assert cloud.store.result()["sha256"] != hashlib.sha256(content).hexdigest()


@pytest.mark.long
def test_the_disk_goes_with_the_instance_and_stays_without(
    booter: NamespaceBooter, cloud: Cloud
) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    assert boot(booter, cloud) == 0
    booter.stop(NAME)
    assert (disk(booter) / ENVIRONMENT).is_dir()
    boot(booter, cloud)
    booter.delete(NAME)
    assert list((booter.folder / "machines").iterdir()) == []
    boot(booter, cloud)
    booter.stop(NAME)
    booter.delete(NAME)
    assert list((booter.folder / "machines").iterdir()) == [], "its device was off"


@pytest.mark.long
def test_the_disk_of_an_instance_that_was_deleted_while_it_was_off_goes_at_the_next_boot(
    booter: NamespaceBooter, cloud: Cloud
) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    boot(booter, cloud)
    booter.stop(NAME)
    (disk(booter).parent / "name").write_text(
        "projects/my-project/locations/us-central1-a/instances/gone"
    )
    booter._remove_disks_of_deleted_instances(Gone())
    assert list((booter.folder / "machines").iterdir()) == []


class Gone(Store):
    """A store without instances."""

    def instance(self, name: str) -> None:
        return None


@pytest.mark.long
def test_a_stop_in_the_middle_leaves_no_process_and_the_next_boot_finishes(
    booter: NamespaceBooter, cloud: Cloud
) -> None:
    cloud.announce(cloud.document("nonce-0001", "alpha"))
    booter.start(cloud.store, NAME, cloud.endpoints, Faults())
    deadline = time.monotonic() + 300
    while "phase packages" not in cloud.store.serial and time.monotonic() < deadline:
        time.sleep(0.01)
    booter.stop(NAME)
    held = [
        path
        for path in Path("/proc").glob("[0-9]*/root")
        if os.path.lexists(path) and _root_of(path) not in ("/", "")
    ]
    assert held == []
    assert boot(booter, cloud) == 0
    assert cloud.store.status()["s"] == "done"


def _root_of(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


_AS_NOBODY = """
import json, sys
from pathlib import Path
from provision.sandbox.namespace_booter import NamespaceBooter
from tests.agent.workbench.bench import NAME, Cloud, Faults
folder = Path(sys.argv[1])
booter = NamespaceBooter(folder / "sandbox", runner=None)
print(booter.unavailable_reason(), flush=True)
with Cloud(folder / "cloud") as cloud:
    for nonce in ("nonce-0001", "nonce-0001"):
        cloud.announce(cloud.document(nonce, "alpha"))
        booter.start(cloud.store, NAME, cloud.endpoints, Faults())
        booter.wait(NAME, 120)
        booter.stop(NAME)
    print(cloud.store.serial, file=sys.stderr)
    verdict = cloud.report("nonce-0001")["verdict"]["result"]
    print(json.dumps([cloud.store.status(), verdict, cloud.store.serial]))
"""


def _runs(argv: list[str], how: dict[str, Any]) -> bool:
    try:
        return subprocess.run(argv, **how).returncode == 0
    except OSError:
        return False


def test_without_root_a_user_namespace_will_do(booter: NamespaceBooter) -> None:
    site = Path(pytest.__file__).parents[1]
    variables = {
        "PYTHONPATH": f"{Path('src').resolve()}:{Path.cwd()}:{site}",
        "PATH": os.environ["PATH"],
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    nobody = {
        "user": 65534,
        "group": 65534,
        "extra_groups": [],
        "env": variables,
        "cwd": "/",
        "capture_output": True,
        "text": True,
    }
    pythons = (
        os.path.realpath(sys.executable),
        f"/usr/bin/python{MINOR}",
        f"/usr/local/bin/python{MINOR}",
    )
    able = [
        one for one in pythons if _runs([one, "-c", "import provision.sandbox, pytest"], nobody)
    ]
    if not able:
        pytest.skip("nobody can run no Python here")
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.chown(folder, 65534, 65534)
        done = subprocess.run([able[0], "-c", _AS_NOBODY, folder], timeout=600, **nobody)
    assert done.returncode == 0, done.stdout + done.stderr
    why = done.stdout.partition("\n")[0]
    if why:
        pytest.skip(f"no user namespaces for others than root: {why}")
    status, verdict, serial = json.loads(done.stdout.splitlines()[-1])
    assert (status["s"], verdict) == ("done", "simulated"), serial
    assert "is already done" in serial


def test_googles_own_script_runner_takes_what_the_program_says(
    tmp_path: Path, cloud: Cloud, booter: NamespaceBooter
) -> None:
    candidates = [
        os.environ.get("PROVISION_TEST_SCRIPT_RUNNER", ""),
        ".cache/google-guest-agent/usr/bin/google_metadata_script_runner",
        booter.runner or "",
    ]
    runner = next(
        (
            str(Path(path).resolve())
            for path in (*candidates, shutil.which("google_metadata_script_runner") or "")
            if path and Path(path).is_file()
        ),
        None,
    )
    if runner is None:
        pytest.skip("there is no google_metadata_script_runner (Debian's google-guest-agent)")
    booter.runner = runner
    cloud.announce(
        cloud.document(
            "nonce-0001", "alpha", env={"LONG": "x" * 100_000}, simulated=["y" * 100_000]
        )
    )
    boot(booter, cloud)
    assert cloud.store.status()["s"] == "done", cloud.store.serial[-3000:]
    assert "startup-script: provision: verdict simulated" in cloud.store.serial
    assert max(len(line) for line in cloud.store.serial.splitlines()) < 1000
    assert not re.search("token too long", cloud.store.serial)
