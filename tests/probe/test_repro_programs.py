"""Programs for checks of places, cards and torch: real where this machine has what they look at, beside a stand-in for the card where it has none."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from provision.verification import Report
from provision.verification.repro import repro
from tests.probe.bench import Environment
from tests.probe.machines import SMI, make_program, told
from tests.probe.test_repro import ends, found, runs
from tests.support import require

RECORDED = Path(__file__).parents[1] / "reports" / "recorded"
HUB = [{"name": "huggingface-hub", "version": "2.4.0"}]


def failed(identity: str, expected: Any = None, observed: Any = None, message: str = "", status: str = "fail", **readings: Any) -> Report:
    document = json.loads((RECORDED / "small-shm.json").read_bytes())
    document["checks"][0].update(id=identity, status=status, expected=expected, observed=observed, message=message)
    document["subject"]["proof"] = "hf-trainer"
    document["readings"] = [{"key": key.replace("__", "."), "value": value, "class": "context"} for key, value in readings.items()]
    return Report("failed", "", "", document)


# The place


def test_a_variable_that_keeps_the_hub_away(environment: Environment) -> None:
    environment.add("transformers")
    there = {"HF_HUB_OFFLINE": "1"}
    program = found(environment, "E03", there, tier="inventory")

    assert ends(environment, program, there) == (1, "HF_HUB_OFFLINE is switched on\n")
    assert ends(environment, program, {"HF_HUB_OFFLINE": "0"})[0] == 0


def test_a_secret_that_is_not_there(environment: Environment) -> None:
    program = found(environment, "Y01", secrets=["HF_TOKEN"], tier="inventory")

    assert ends(environment, program) == (1, "HF_TOKEN is not set\n")
    code, said = ends(environment, program, {"HF_TOKEN": "hf_something"})
    assert (code, "something" in said) == (0, False)


@pytest.mark.parametrize(("line", "declared"), [("export MODE=slow", {"MODE": "fast"}), ("export PYTHONPATH=/nowhere", {})])
def test_a_login_shell_that_sets_something_else(environment: Environment, tmp_path: Path, line: str, declared: dict[str, str]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in (".profile", ".bash_profile", ".zprofile"):
        (home / name).write_text(f"{line}\necho hello\n")
    there = {"HOME": str(home), **declared}
    program = found(environment, "W02", there, tier="deep", env=declared)

    code, said = ends(environment, program, there)
    assert (code, "a login shell sets" in said) == (1, True)
    for name in (".profile", ".bash_profile", ".zprofile"):
        (home / name).unlink()
    assert ends(environment, program, there)[0] == 0


def test_another_kind_of_place(environment: Environment) -> None:
    program = found(environment, "H11", target={"name": "colab", "kind": "colab"}, tier="inventory")

    assert ends(environment, program)[0] == 1
    assert ends(environment, program, {"COLAB_RELEASE_TAG": "release-colab_1"})[0] == 0


def test_a_kernel_that_is_old(environment: Environment) -> None:
    program = repro(failed("H03", ">=5.5", "4.4.0", status="warn"), "H03", {})

    assert ends(environment, program.replace("'kernel': '5.5'", "'kernel': '99.1'"))[0] == 1
    assert ends(environment, program.replace("'kernel': '5.5'", "'kernel': '2.6'"))[0] == 0


def test_a_clock_that_is_behind(environment: Environment) -> None:
    note = environment.root / "pyvenv.cfg"
    os.utime(note, (time.time() + 5000, time.time() + 5000))
    program = found(environment, "H09", tier="inventory")

    assert ends(environment, program)[0] == 1
    os.utime(note)
    assert ends(environment, program)[0] == 0


@pytest.fixture
def hub() -> Iterator[Callable[..., str]]:
    """Start a server that answers as it is told; its address."""
    servers: list[ThreadingHTTPServer] = []

    def start(status: int, ahead_s: float = 0.0) -> str:
        class Answer(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.send_response_only(status)
                self.send_header("Date", formatdate(time.time() + ahead_s, usegmt=True))
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Answer))
        Thread(target=servers[-1].serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_hub_that_does_not_answer_or_whose_clock_is_another(environment: Environment, hub: Callable[..., str]) -> None:
    package = next(environment.root.glob("lib/python*/site-packages")) / "huggingface_hub"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "constants.py").write_text('import os\nENDPOINT = os.environ["HF_ENDPOINT"]\n')
    well, ill, late = ({"HF_ENDPOINT": hub(*answer)} for answer in ((200,), (503,), (200, 4000)))
    nobody = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    asked = {"tier": "deep", "packages": HUB}
    way, answer = found(environment, "X01", nobody, **asked), found(environment, "X02", ill, **asked)

    assert [ends(environment, way, one)[0] for one in (nobody, ill, well)] == [1, 0, 0]
    assert [ends(environment, answer, one)[0] for one in (nobody, ill, well)] == [1, 1, 0]
    clock = repro(failed("H09", 0, -4000), "H09", {})
    script = environment.root / "repro.py"
    script.write_text(clock)
    codes = [subprocess.run([environment.python, str(script)], env={**os.environ, **one}, capture_output=True).returncode for one in (late, well, nobody)]
    assert codes == [1, 0, 2]


# The cards, which are not there


@pytest.mark.parametrize("wrong", [{"mig.mode.current": "Enabled"}, {"compute_mode": "Prohibited"}, {"power.limit": "60.00"}])
def test_a_card_that_is_set_up_otherwise(environment: Environment, tmp_path: Path, wrong: dict[str, str]) -> None:
    there = {"PATH": f"{make_program(tmp_path)}:/usr/bin:/bin", "FAKE_SMI": told(SMI)}
    broken = {**there, "FAKE_SMI": told({**SMI, **wrong})}
    program = found(environment, "D09", broken, gpu={"type": "L4", "count": 1}, tier="inventory")

    assert ends(environment, program, broken)[0] == 1
    assert ends(environment, program, there)[0] == 0
    assert runs(environment.python, program, tmp_path, PATH="/nowhere")[0] == 2


def script(folder: Path, name: str, body: str) -> str:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_what_nvidias_diagnosis_says(environment: Environment, tmp_path: Path) -> None:
    answer = {"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "PCIe", "results": [{"status": "Fail", "warnings": [{"warning": "slow"}]}]}]}]}}
    path = script(tmp_path, "dcgmi", f"echo '{json.dumps(answer)}'")
    program = found(environment, "D10", {"PATH": path}, gpu={"type": "L4", "count": 1}, tier="quick")

    code, said = runs(environment.python, program, tmp_path, PATH=path)
    assert (code, "PCIe: Fail" in said) == (1, True)
    script(tmp_path, "dcgmi", f"echo '{json.dumps(answer).replace('Fail', 'Pass')}'")
    assert runs(environment.python, program, tmp_path, PATH=path)[0] == 0
    script(tmp_path, "dcgmi", "echo no")
    assert runs(environment.python, program, tmp_path, PATH=path)[0] == 2
    assert runs(environment.python, program, tmp_path, PATH="/nowhere")[0] == 2


def test_an_error_in_the_kernels_log(environment: Environment, tmp_path: Path) -> None:
    program = repro(failed("D11", [], [79]), "D11", {})
    fatal, harmless = "[1.0] NVRM: Xid (PCI:0000:00:04): 79, pid=1, GPU has fallen off the bus.", "[1.0] NVRM: Xid (PCI:0000:00:04): 43, pid=1"

    assert runs(environment.python, program, tmp_path, PATH=script(tmp_path, "dmesg", f"echo '{fatal}'")) == (1, f"{fatal}\n")
    assert runs(environment.python, program, tmp_path, PATH=script(tmp_path, "dmesg", f"echo '{harmless}'"))[0] == 0
    assert runs(environment.python, program, tmp_path, PATH=script(tmp_path, "dmesg", "exit 1"))[0] == 2


def test_no_library_to_ask_for_recovery(environment: Environment, tmp_path: Path) -> None:
    code, said = runs(environment.python, repro(failed("D07", 0, 2), "D07", {}), tmp_path)

    assert (code, "there is no NVIDIA driver" in said, "Traceback" in said) == (2, True, False)


def test_a_card_that_slows_itself_down_at_work_only_gets_a_program_that_works() -> None:
    idle, busy = (
        repro(failed("D06", "none", [], f"the card slows itself down{when}: hardware slowdown"), "D06", {}) for when in ("", " while it works (device)")
    )

    assert "torch" not in idle
    assert "'seconds': 20" in busy


# With torch


def with_torch(python: str, program: str, folder: Path, *changes: tuple[str, str], **variables: str) -> int:
    """Run a program with these changes to its text, each of which has to be there. Returns how it ended; a traceback is no answer."""
    for before, after in changes:
        assert before in program
        program = program.replace(before, after)
    code, said = runs(python, program, folder, **variables)
    assert "Traceback" not in said, said
    return code


CHECKS: list[tuple[str, Report, dict[str, Any], tuple[str, str]]] = [
    ("T04", failed("T04", {"triton": "3.5.0"}, {}), {}, ("import triton", "triton = sys")),
    ("T07", failed("T07", "flash, efficient or cudnn", ["math"]), {"training": {"precision": "bf16"}}, ('"flash": SDPBackend.FLASH_ATTENTION, ', "")),
    ("N03", failed("N03", 5e-6, [1.0, 1.0]), {}, ("'bound': 5e-06", "'bound': 1e-09")),
    ("N04", failed("N04", [1.0, 1.0], [9.0, 9.0]), {}, ("'times': 3", "'times': 0.5")),
    ("N07", failed("N07", 0, 3), {}, ('torch.tanh(one, out=found["tanh"])', "")),
    ("N08", failed("N08", None, {}), {}, ("drawn(device, 20), drawn(device, 20)", "drawn(device, 20), drawn(device, 22)")),
    ("N09", failed("N09", 3.9e-6, 1.0), {}, ("'bound': 3.9e-06", "'bound': 1e-09")),
    ("L04", failed("L04", "a batch of 128 MiB", "a damaged batch"), {}, ("index + 1", "index + 2")),
    ("C01", failed("C01", 0, 7), {}, ("own + rank, torch", "own + rank + 1, torch")),
    ("C02", failed("C02", 0, 7, gpu__count=2), {}, ("own + rank, torch", "own + rank + 1, torch")),
    ("C03", failed("C03", 1e-6, 1.0, gpu__count=2), {}, ("'least_gb_s': 8", "'least_gb_s': 1e9 + 8")),
    ("R05", failed("R05", "a", "b"), {}, ("    done = ", "    __import__('os').remove(f'{folder}/checkpoint-20/optimizer.pt')\n    done = ")),
    ("R10", failed("R10", {"texts": True, "rows": True}, {}), {}, ("made.pre_tokenizer = Whitespace()", "")),
    ("R11", failed("R11", "cpu", {}), {}, ("'device': 'cpu'", "'device': 'cuda'")),
    ("R12", failed("R12", "< 0.95", {}), {"training": {"method": "lora"}}, ('"learning_rate": 2e-2', '"learning_rate": 0.0')),
]


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize(("check", "report", "promised", "fault"), CHECKS, ids=[row[0] for row in CHECKS])
def test_a_program_of_torch(hf_python: str, tmp_path: Path, check: str, report: Report, promised: dict[str, Any], fault: tuple[str, str]) -> None:
    program = repro(report, check, promised)
    if check == "T04":
        program = program.replace("import triton", "triton = __import__('types').SimpleNamespace(__version__='3.5.0')")
        fault = ("__version__='3.5.0'", "__version__='3.1.0'")
    # The processes talk over gloo, which needs no card.
    program = program.replace("'backend': 'nccl'", "'backend': 'gloo'").replace("'bytes': 1073741824", "'bytes': 1048576")

    assert with_torch(hf_python, program, tmp_path) == 0
    assert with_torch(hf_python, program, tmp_path, fault) == 1


@pytest.mark.hf
@pytest.mark.slow
def test_processes_that_hang_are_not_waited_for(hf_python: str, tmp_path: Path) -> None:
    program = repro(failed("C02", 2, 0, gpu__count=2), "C02", {}).replace("'backend': 'nccl'", "'backend': 'gloo'")
    code, said = runs(hf_python, program.replace("all_reduce(mine)", "all_reduce(mine) if rank else time.sleep(1000)").replace("+ 100", "+ 15"), tmp_path)

    assert (code, "[None, " in said) == (1, True), said


@pytest.mark.hf
@pytest.mark.slow
def test_a_flag_that_something_sets(hf_python: str, tmp_path: Path) -> None:
    program = repro(failed("T06", {}, {"cudnn.benchmark": True}), "T06", {})

    assert with_torch(hf_python, program, tmp_path) == 0
    assert with_torch(hf_python, program, tmp_path, ("wrong = 0\n", "wrong = 0\ntorch.backends.cudnn.benchmark = True\n")) == 1


@pytest.mark.hf
@pytest.mark.slow
def test_a_function_that_cannot_be_compiled(hf_python: str, tmp_path: Path) -> None:
    program = repro(failed("K02", 1e-4, 1.0), "K02", {})
    code, said = runs(hf_python, program, tmp_path, PATH="/nowhere")

    assert (code, "compiler" in said) == (1, True)
    require("cc", any(Path(folder, "g++").exists() for folder in os.environ["PATH"].split(os.pathsep)), "there is no C++ compiler here")
    assert with_torch(hf_python, program, tmp_path, PATH=os.environ["PATH"], TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS="0") == 0


OF_CARDS = ("M01", "M02", "B01", "B02", "F01", "F02", "F03", "N05", "C01")


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize("check", OF_CARDS)
def test_without_a_card_a_program_for_cards_says_so(hf_python: str, tmp_path: Path, check: str) -> None:
    code, said = runs(hf_python, repro(failed(check, {"bf16": 1.0} if check == "F02" else 1.0), check, {}), tmp_path)

    assert (code, "Traceback" in said) == (2, False)
    assert said.startswith(("torch 2", "torch sees 0 cards"))


ON_A_CPU = """
import time, torch
class Event:
    def __init__(self, enable_timing): pass
    def record(self): self.at = time.perf_counter()
    def elapsed_time(self, other): return (other.at - self.at) * 1000
torch.cuda.is_available = lambda: True
torch.cuda.mem_get_info = lambda: (2 ** 26, 2 ** 30)
torch.cuda.synchronize = lambda: None
torch.cuda.get_device_name = lambda: "a processor"
torch.cuda.Event = Event
"""


def on_a_cpu(program: str) -> str:
    """The program with the processor in the card's place: what it does and how it ends is real, the card is not."""
    smaller = {'"cuda"': '"cpu"', "8192": "128", ", pin_memory=True": "", "'seconds': 20": "'seconds': 0", "'seconds': 60": "'seconds': 0"}
    for before, after in smaller.items():
        program = program.replace(before, after)
    return ON_A_CPU + program


CARDS: list[tuple[str, Report, tuple[str, str]]] = [
    ("M01", failed("M01", 2**24, 2**20), ("* BLOCK <= CASE", "* BLOCK < CASE")),
    ("M01", failed("M01", 2**20, 2**30, status="warn"), ("(2 ** 26, 2 ** 30)", "(2 ** 10, 2 ** 30)")),
    ("M02", failed("M02", 0, 3, memory__held_bytes=2**24), ("block.fill_(word)", "block.fill_(word)[7] = 1")),
    ("M02", failed("M02", 0, 3, memory__held_bytes=2**24), ("out=block)\n", "out=block)[7] = 1\n")),
    ("B01", failed("B01", 1e-3, 1e-4), ("0.001", "1e9")),
    ("B02", failed("B02", 1e-3, 1e-4), ("0.001", "1e9")),
    ("F01", failed("F01", 1e-7, 1e-8, speed__format="bf16"), ("1e-07", "1e9")),
    ("F02", failed("F02", {"tf32": 1e-7}, {"tf32": 1e-8}), ("5e-08", "1e9")),
    ("F03", failed("F03", 1.0, 0.5, speed__format="bf16"), ("speeds.append(", "speeds.append(0.1 ** len(speeds) * ")),
]


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize(("check", "report", "fault"), CARDS, ids=[f"{row[0]}-{number}" for number, row in enumerate(CARDS)])
def test_a_program_of_the_card(hf_python: str, tmp_path: Path, check: str, report: Report, fault: tuple[str, str]) -> None:
    program = on_a_cpu(repro(report, check, {}))
    smi = {"PATH": f"{make_program(tmp_path)}:/usr/bin:/bin", "FAKE_SMI": told({**SMI, "clocks_event_reasons.active": "0x0000000000000001"})}
    # Four rounds on a busy machine differ by more than a card may.
    program = program.replace("'share': 0.9", "'share': 0.02")

    assert with_torch(hf_python, program, tmp_path, **smi) == 0
    assert with_torch(hf_python, program, tmp_path, fault, **smi) == 1


@pytest.mark.hf
@pytest.mark.slow
def test_a_card_that_slows_itself_down_at_work(hf_python: str, tmp_path: Path) -> None:
    program = on_a_cpu(repro(failed("D06", "none", [], "the card slows itself down while it works (device): hardware slowdown"), "D06", {}))
    path = f"{make_program(tmp_path)}:/usr/bin:/bin"

    for mask, ends_with in (("0x0000000000000048", 1), ("0x0000000000000001", 0)):
        assert with_torch(hf_python, program, tmp_path, PATH=path, FAKE_SMI=told({**SMI, "clocks_event_reasons.active": mask})) == ends_with
