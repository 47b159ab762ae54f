"""Every phase on its own: what it does, and how it fails."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from provision.agent.core.files import zip_files
from provision.agent.workbench.cloud import ServiceCallFailed
from provision.agent.workbench.document import parse_document
from provision.agent.workbench.environment import Environment
from provision.agent.workbench.instance import PhaseFailed
from provision.agent.workbench.machine_setup import install_system_packages, wait_for_driver
from provision.agent.workbench.probe_run import fetch_secrets, find_simulated_parts, run_probe
from provision.assets import find_asset
from provision.verification.device_files import installer_zipapp, probe_zipapp, workbench_zipapp
from tests.agent.install.bench import sha256
from tests.agent.workbench.bench import CANARY
from tests.agent.workbench.conftest import Bench
from tests.rig import MINOR, make_index, make_wheel
from tests.support import require, with_bytecode

L4 = {"type": "L4", "count": 1}
REFERENCE = "projects/p/secrets/hf/versions/3"


def test_the_driver_is_waited_for(bench: Bench) -> None:
    count = bench.folder / "count"
    bench.program(
        "nvidia-smi",
        f"echo x >>{count}",
        f'[[ $(wc -l <{count}) -ge 3 ]] || {{ echo "Failed to initialize NVML"; exit 9; }}',
        "echo 'NVIDIA L4, 580.1'",
    )
    assert (
        wait_for_driver(bench.document(gpu=L4), bench.machine, lambda _: None) == "NVIDIA L4, 580.1"
    )
    assert count.read_text().count("x") == 3


def test_a_driver_that_never_comes_is_told_after_a_bounded_wait(bench: Bench) -> None:
    bench.program("nvidia-smi", "echo 'Failed to initialize NVML: Driver not loaded'", "exit 9")
    with pytest.raises(
        PhaseFailed,
        match="there is no working driver for 1 x L4 after 3 s\n"
        "nvidia-smi failed: Failed to initialize NVML",
    ):
        wait_for_driver(bench.document(gpu=L4, driver_timeout_s=3), bench.machine)


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("cards", "declared", "words"),
    [
        (["Tesla T4, 580.1"], L4, "the GPU is Tesla T4, 580.1, expected L4"),
        (["NVIDIA L40S, 580.1"], L4, "the GPU is NVIDIA L40S"),
        (["NVIDIA L4, 580.1"], {"type": "L4", "count": 2}, "nvidia-smi reports only 1 of 2 GPUs"),
        (
            ["NVIDIA A100-SXM4-40GB, 580.1"],
            {"type": "A100-80GB", "count": 1},
            "expected A100-80GB",
        ),
    ],
)
def test_another_card_is_an_error(
    bench: Bench, cards: list[str], declared: dict[str, object], words: str
) -> None:
    bench.program("nvidia-smi", *(f"echo '{card}'" for card in cards))
    with pytest.raises(PhaseFailed, match=words):
        wait_for_driver(bench.document(gpu=declared, driver_timeout_s=1), bench.machine)


def test_only_missing_system_packages_are_installed_and_never_as_options(bench: Bench) -> None:
    bench.program("dpkg-query", "echo 'git installed'; exit 1")
    bench.program("apt-get", f'printf "%s\\n" "$@" >{bench.folder}/asked')
    assert install_system_packages(
        bench.document(system_packages=["git", "ffmpeg"]), bench.machine
    ) == ["ffmpeg"]
    asked = (bench.folder / "asked").read_text().split()
    assert (asked[0], asked[-2:]) == ("install", ["--", "ffmpeg"])


def test_system_packages_that_are_not_there_are_told(bench: Bench) -> None:
    bench.program("dpkg-query", "exit 1")
    bench.program(
        "apt-get",
        f'echo "$*" >>{bench.folder}/asked',
        "echo 'E: Unable to locate package no-such'",
        "exit 100",
    )
    with pytest.raises(
        PhaseFailed,
        match="cannot install the system packages no-such: exit code 100\nE: Unable to locate",
    ):
        install_system_packages(bench.document(system_packages=["no-such"]), bench.machine)
    assert [("update" in line) for line in (bench.folder / "asked").read_text().splitlines()] == [
        False,
        True,
        False,
    ]


def test_a_program_that_hangs_is_ended(bench: Bench) -> None:
    bench.program("slow", "sleep 60")
    with pytest.raises(PhaseFailed, match="too slow: timed out after 1 s"):
        bench.machine.run_checked("too slow", ["slow"], 1)


def test_uv_of_the_machine_counts_in_the_locked_version_only(bench: Bench) -> None:
    version = subprocess.run(
        [str(bench.folder / "bin/uv"), "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    there = str(bench.folder / "bin/uv")
    assert bench.locked().find_uv() == there
    assert bench.locked(uv={"version": version, "files": {"uv-1.whl": "0" * 64}}).find_uv() == there
    (bench.folder / "bin/uv").unlink()
    with pytest.raises(PhaseFailed, match="uv is not installed"):
        bench.locked().find_uv()


def test_a_uv_whose_hash_differs_is_not_installed(bench: Bench) -> None:
    made = make_wheel(bench.folder / "more", "uv", "9.9.9")
    make_index(bench.cloud.folder / "index", (*bench.cloud.wheels.values(), made))
    with pytest.raises(
        PhaseFailed, match=r"cannot install uv 9.9.9 by its hash(?s:.*)DO NOT MATCH THE HASHES"
    ):
        bench.locked(uv={"version": "9.9.9", "files": {made.name: "0" * 64}}).find_uv()
    assert not (bench.folder / "home/.provision/tools/uv-9.9.9").exists()


@pytest.mark.network
def test_the_locked_uv_is_what_the_index_has(bench: Bench) -> None:
    wanted = json.loads(find_asset("templates/workbench-uv.json").read_text())
    bench.program("uv", "echo uv 0.0.1")
    install = {
        "schema": "provision.install/1",
        "mode": "own",
        "python_version": MINOR,
        "packages": [],
        "indexes": {},
    }
    try:
        found = bench.locked(
            uv={key: wanted[key] for key in ("version", "files")}, install=install
        ).find_uv()
    except PhaseFailed as error:
        require(
            "index",
            "No matching distribution" not in str(error),
            f"no package index: {str(error)[-300:]}",
        )
        raise
    assert found == str(bench.folder / f"home/.provision/tools/uv-{wanted['version']}/bin/uv")


def test_a_python_that_is_nowhere_is_told(bench: Bench) -> None:
    environment = bench.locked(python="3.99", python_mirror="http://127.0.0.1:9")
    with pytest.raises(
        PhaseFailed, match=r"Python 3.99 is not on this image, and uv cannot download it"
    ):
        environment.find_python(environment.find_uv())


def made(bench: Bench, *names: str) -> dict[str, int]:
    environment = bench.locked(*names)
    (bench.machine.work / "installer.pyz").write_bytes(with_bytecode(installer_zipapp()))
    return environment.create(environment.find_uv(), sys.executable, lambda _: None)


def test_an_environment_is_made_and_known_again(bench: Bench) -> None:
    assert not bench.locked("alpha").is_complete()
    assert made(bench, "alpha")["hash-checked"] == 1
    assert bench.locked("alpha").is_complete()
    assert bench.cloud.index not in (bench.environment / "install.json").read_text(), (
        "an address may hold a password"
    )
    (bench.environment / "bin/python").unlink()
    assert not bench.locked("alpha").is_complete(), (
        "its Python is gone, as after an upgrade of the image"
    )


def test_an_edited_package_is_installed_again_in_the_same_environment(bench: Bench) -> None:
    def declare(code: str) -> Environment:
        wheel = make_wheel(bench.folder / "own", "ours", "1.0", code=code)
        archive = zip_files({wheel.name: wheel.read_bytes()})
        for name, content in (("wheels.zip", archive), ("installer.pyz", installer_zipapp())):
            (bench.machine.work / name).write_bytes(content)
        raw = bench.cloud.document("nonce-0001", "alpha")
        files = {wheel.name: sha256(wheel)}
        row = {"name": "ours", "version": "1.0", "index": "source.own", "files": files}
        raw["install"]["packages"].append(row)
        raw["fetch"]["wheels"] = bench.cloud.keep("gs://bucket/wheels.zip", archive)
        return Environment(parse_document(raw), bench.machine)

    environment = declare("CODE = 1\n")
    environment.create(environment.find_uv(), sys.executable, lambda _: None)
    assert environment.is_complete()
    assert environment.find_outdated_packages() == ()
    (environment.prefix / "kept").touch()

    edited = declare("CODE = 2\n")
    assert edited.find_outdated_packages() == ("ours",)
    counts = edited.create(edited.find_uv(), sys.executable, lambda _: None)
    assert counts == {"hash-checked": 0, "preinstalled": 1, "reinstalled": 1}
    assert edited.find_outdated_packages() == ()
    assert (edited.prefix / "kept").exists()


def test_a_file_that_is_not_the_locked_one_is_not_installed(bench: Bench) -> None:
    shutil.rmtree(bench.cloud.folder / "index/alpha")
    make_index(
        bench.cloud.folder / "index",
        (make_wheel(bench.folder / "other", "alpha", "1.0", code="evil = 1\n"),),
    )
    with pytest.raises(
        PhaseFailed, match=r"cannot install the packages(?s:.*)does not match the lock"
    ):
        made(bench, "alpha")
    assert not bench.locked("alpha").is_complete()


def test_environments_of_earlier_locks_go_but_the_newest(bench: Bench) -> None:
    folder = bench.environment.parent
    for place, name in enumerate(("111111111111", "222222222222", "abababababab", "not-ours")):
        (folder / name).mkdir(parents=True)
        subprocess.run(["touch", "-d", f"@{1000 + place}", str(folder / name)], check=True)
    assert bench.locked().remove_old() == ["111111111111"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "222222222222",
        "abababababab",
        "not-ours",
    ]


KERNEL = {"name": "provision-x", "title": "spec (workbench)"}


def test_a_kernel_is_registered_with_variables_and_paths(bench: Bench) -> None:
    document = bench.document(
        "ipykernel", kernel=KERNEL, env={"PRICE": "5$"}, paths={"data": "/home/jupyter/data"}
    )
    assert Environment(document, bench.machine).register_kernel() == "provision-x"
    kernel = json.loads(
        (bench.folder / "home/.local/share/jupyter/kernels/provision-x/kernel.json").read_text()
    )
    assert kernel["argv"][:3] == [str(bench.environment / "bin/python"), "-m", "ipykernel_launcher"]
    assert (kernel["env"]["PRICE"], kernel["env"]["PROVISION_PATH_DATA"]) == (
        "5$$",
        "/home/jupyter/data",
    )


def test_without_ipykernel_there_is_no_kernel(bench: Bench) -> None:
    assert bench.locked("alpha", kernel=KERNEL).register_kernel() is None


def test_a_kernel_with_secrets_holds_references_and_fetches_them_when_it_starts(
    bench: Bench,
) -> None:
    bench.cloud.secrets[REFERENCE] = CANARY
    (bench.machine.work / "device.pyz").write_bytes(workbench_zipapp())
    bench.locked("ipykernel", kernel=KERNEL, secrets={"HF_TOKEN": REFERENCE}).register_kernel()
    folder = bench.folder / "home"
    assert not [
        path
        for path in folder.rglob("*")
        if path.is_file() and CANARY.encode() in path.read_bytes()
    ]
    argv = json.loads(
        (folder / ".local/share/jupyter/kernels/provision-x/kernel.json").read_text()
    )["argv"]
    words = [
        sys.executable,
        *argv[1 : argv.index("--") + 1],
        sys.executable,
        "-c",
        "import os; print(os.environ['HF_TOKEN'][::-1])",
    ]
    environment = {
        "PROVISION_METADATA": f"{bench.cloud.address}/computeMetadata/v1",
        "PROVISION_SECRETS": bench.cloud.address,
    }
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout.strip()) == (0, CANARY[::-1])
    bench.cloud.secrets.clear()
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert f"cannot read the secret {REFERENCE}: HTTP 404" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_secret_that_may_not_be_read_is_told_by_its_reference(bench: Bench) -> None:
    bench.cloud.refused["secrets/hf"] = 403
    with pytest.raises(
        ServiceCallFailed, match=f"cannot read the secret {REFERENCE}: HTTP 403 refused by the test"
    ):
        fetch_secrets(
            bench.document(secrets={"HF_TOKEN": REFERENCE}), bench.services, bench.machine
        )


def test_what_the_machine_says_of_itself_is_simulated_too(bench: Bench) -> None:
    assert find_simulated_parts(bench.document(), bench.services) == []
    bench.cloud.store.attributes["provision-simulated"] = json.dumps(["an isolated root", "one"])
    assert find_simulated_parts(bench.document(simulated=["one", "two"]), bench.services) == [
        "one",
        "two",
        "an isolated root",
    ]
    bench.cloud.store.attributes["provision-simulated"] = "{"
    assert find_simulated_parts(bench.document(), bench.services), (
        "words that cannot be read are no proof that all is real"
    )


def test_a_probe_that_cannot_run_is_told(bench: Bench) -> None:
    made(bench, "alpha")
    (bench.machine.work / "probe.pyz").write_bytes(b"no zip")
    with pytest.raises(PhaseFailed, match=r"did not write a complete report\n(?s:.*)SyntaxError"):
        run_probe(bench.locked("alpha"), {}, [])


def test_a_proof_is_real_where_nobody_says_otherwise(bench: Bench) -> None:
    made(bench, "alpha")
    (bench.machine.work / "probe.pyz").write_bytes(with_bytecode(probe_zipapp()))
    document = bench.document("alpha", env={})
    proof = run_probe(Environment(document, bench.machine), {}, [])
    assert (proof.verdict, proof.code) == ("verified", 0)
    assert json.loads(proof.report)["subject"]["nonce"] == "nonce-0001"
    wrong = run_probe(
        bench.locked(
            "alpha",
            env={},
            expectations={**document.expectations, "python": {"version": "3.99"}},
        ),
        {},
        [],
    )
    assert (wrong.verdict, wrong.code) == ("failed", 1)


def test_a_secret_in_a_package_that_prints_it_leaves_in_no_way(bench: Bench) -> None:
    code = (
        "import os, sys\nprint('the token is', os.environ.get('HF_TOKEN'), "
        "file=sys.stderr)\nraise ImportError(os.environ.get('HF_TOKEN'))\n"
    )
    bench.cloud.wheels["loud"] = make_wheel(bench.folder / "more", "loud", "1.0", code=code)
    make_index(bench.cloud.folder / "index", tuple(bench.cloud.wheels.values()))
    bench.cloud.secrets[REFERENCE] = CANARY
    document = bench.document("loud", secrets={"HF_TOKEN": REFERENCE})
    assert bench.run(document) == 0
    assert bench.cloud.report("nonce-0001")["verdict"]["result"] == "failed"
    assert CANARY.encode() not in bench.cloud.everything()
    assert not [
        path
        for path in (bench.folder / "home", bench.folder / "work")
        for one in path.rglob("*")
        if one.is_file() and CANARY.encode() in one.read_bytes()
    ]


def test_a_report_that_cannot_be_written_is_an_error_of_that_phase(bench: Bench) -> None:
    bench.cloud.refused["report.json"] = 403
    assert bench.run(bench.document("alpha")) == 1
    status = bench.cloud.store.status()
    assert (status["s"], status["p"]) == ("error", "report")
    assert "cannot write gs://" in status["e"]
    assert not (bench.machine.work / "done").exists()


def test_a_program_that_was_swapped_is_refused(bench: Bench) -> None:
    document = bench.document("alpha")
    bench.cloud.objects[document.probe.address] = b"another program"
    assert bench.run(document) == 1
    status = bench.cloud.store.status()
    assert (status["s"], status["p"]) == ("error", "start")
    assert "does not have the announced sha256" in status["e"]
    assert not Path(bench.environment).exists()
