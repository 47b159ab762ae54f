"""Machines with cards that are not there: the real probe against a libnvidia-ml and an nvidia-smi
that answer what they are told.

`python -m tests.agent.probe.machines` writes their reports, or those that are named, to
tests/reports/simulated/.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.agent.probe.bench import Environment

HERE = Path(__file__).parent
SIMULATED = HERE.parents[1] / "reports" / "simulated"
GIB = 2**30
LIBRARY = "the card and its driver: a libnvidia-ml that answers what it is told"
PROGRAM = "the card and its driver: an nvidia-smi that answers what it is told"
L4 = {
    "gpu": {"type": "L4", "count": 1},
    "card": {
        "memory_bytes": 24 * GIB,
        "bandwidth_gb_s": 300,
        "tflops": {"bf16": 121},
        "source": "data sheet",
    },
}
T4 = {
    "gpu": {"type": "T4", "count": 1},
    "card": {
        "memory_bytes": 16 * GIB,
        "bandwidth_gb_s": 320,
        "tflops": {"fp16": 65},
        "source": "data sheet",
    },
}
TWO_L4 = {**L4, "gpu": {"type": "L4", "count": 2}}
T4_TOLD = (
    "capability=75;retired_pending=0;remap_pending=-3;total_mib=15360;used_mib=300;pci=515379422;"
    "power_limit_mw=70000;power_default_mw=70000"
)
"""515379422 is 0x1eb810de: device 1eb8 of vendor 10de."""
BESIDE = "count=2;capability@0=75;total_mib@0=4096;pci@0=531763422;ecc@0=-3;reasons@0=64"
"""A small card in the first slot that is too hot; 531763422 is 0x1fb210de: device 1fb2 of vendor
10de.
"""
SMI = {
    "driver_version": "580.82.07",
    "name": "NVIDIA L4",
    "memory.total": "23034",
    "memory.used": "400",
    "pci.device_id": "0x27B810DE",
    "compute_cap": "8.9",
    "clocks_event_reasons.active": "0x0000000000000001",
    "ecc.mode.current": "Enabled",
    "ecc.errors.uncorrected.volatile.total": "0",
    "retired_pages.pending": "[N/A]",
    "uuid": "GPU-{i}110-fake",
    "pci.bus_id": "00000000:1{i}:00.0",
    "persistence_mode": "Enabled",
    "pcie.link.width.current": "16",
    "pcie.link.width.max": "16",
    "mig.mode.current": "[N/A]",
    "compute_mode": "Default",
    "power.limit": "72.00",
    "power.default_limit": "72.00",
}


@dataclass(frozen=True)
class Machine:
    """A machine by what it declares and what its driver tells. `told` is of fake_nvml.c, `program`
    of fake_nvidia_smi.sh (then there is no library).
    """

    what: str
    declared: dict[str, Any] = field(default_factory=lambda: dict(L4))
    told: str = ""
    name: str = "NVIDIA L4"
    driver: str = "580.82.07"
    program: dict[str, str] | None = None
    shown: str | None = None
    """CUDA_VISIBLE_DEVICES, declared and set."""


MACHINES: dict[str, Machine] = {
    "l4": Machine("an L4 as it should be"),
    "t4": Machine("a T4 as it should be", T4, T4_TOLD, "Tesla T4"),
    "l4-by-nvidia-smi": Machine("an L4 as it should be, and no libnvidia-ml", program=SMI),
    "l4-lost": Machine("an L4 that the driver no longer reaches", told="handle=15"),
    "l4-library-mismatch": Machine(
        "a driver that was upgraded while it was in use", told="init=18"
    ),
    "l4-ecc-errors": Machine("three uncorrected errors in the card's memory", told="uncorrected=3"),
    "l4-remap-pending": Machine(
        "a row of the memory that waits to be replaced", told="remap_pending=1"
    ),
    "l4-remap-failed": Machine(
        "a row of the memory that could not be replaced", told="remap_failed=1"
    ),
    "t4-retirement-pending": Machine(
        "a page of the memory that waits to be retired",
        T4,
        T4_TOLD.replace("retired_pending=0", "retired_pending=1"),
        "Tesla T4",
    ),
    "l4-throttled": Machine("a card that is too hot (clock event reasons 0x4c)", told="reasons=76"),
    "l4-partitioned": Machine("a card that is split (MIG)", told="mig=1"),
    "l4-to-be-reset": Machine("a driver that asks for a restart", told="recovery=2"),
    "l4-declared-t4-there": Machine("a T4 where an L4 is declared", L4, T4_TOLD, "Tesla T4"),
    "l4-one-of-two": Machine("one L4 where two are declared", TWO_L4),
    "l4-two": Machine("two L4 as they should be", TWO_L4, "count=2"),
    "l4-one-shown-of-two": Machine(
        "an L4 beside a T400, and a variable that shows the L4 alone",
        told=BESIDE,
        name="NVIDIA T400 4GB|NVIDIA L4",
        shown="GPU-2220",
    ),
    "l4-old-driver": Machine("a driver of the branch 535", driver="535.261.03", told="cuda=12020"),
}
_REQUIRED_DRIVER = ">=580"


def compiler() -> str | None:
    """Return a C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc")


def make_library(folder: Path, *options: str) -> Path:
    """Compile the libnvidia-ml into the folder and return the folder."""
    command = [
        str(compiler()),
        "-shared",
        "-fPIC",
        *options,
        "-Wl,-soname,libnvidia-ml.so.1",
        "-o",
        str(folder / "libnvidia-ml.so.1"),
    ]
    subprocess.run([*command, str(HERE / "fake_nvml.c")], check=True, capture_output=True)
    return folder


def make_program(folder: Path) -> Path:
    """Put the nvidia-smi into the folder and return the folder."""
    shutil.copy(HERE / "fake_nvidia_smi.sh", folder / "nvidia-smi")
    (folder / "nvidia-smi").chmod(0o755)
    return folder


def told(answers: dict[str, str]) -> str:
    """Return what FAKE_SMI has to hold for these answers."""
    return ";".join(f"{key}={value}" for key, value in answers.items())


def report(
    machine: Machine, environment: Environment, library: Path, program: Path
) -> dict[str, Any]:
    """Verify the machine with the real probe, tier inventory, and return the report."""
    if machine.program is None:
        environ, simulated = {"LD_LIBRARY_PATH": str(library), "FAKE_NVML": machine.told}, LIBRARY
        environ |= {"FAKE_NVML_NAME": machine.name, "FAKE_NVML_DRIVER": machine.driver}
    else:
        environ, simulated = (
            {"PATH": f"{program}:/usr/bin:/bin", "FAKE_SMI": told(machine.program)},
            PROGRAM,
        )
    # A home above all that is made here, so that reports show "~" for it.
    environ["HOME"] = str(environment.root.parent)
    # The loader's path is part of the trick and no finding.
    shown = {} if machine.shown is None else {"CUDA_VISIBLE_DEVICES": machine.shown}
    environ |= shown
    declared = {
        "env": {**shown, **({"LD_LIBRARY_PATH": str(library)} if machine.program is None else {})},
        "requires__driver": _REQUIRED_DRIVER,
        "tier": "inventory",
    }
    _, found, said = environment.verify(
        environ=environ, **{**declared, **machine.declared, "simulated": [simulated]}
    )
    assert found, said
    return found


def main(names: list[str]) -> int:
    """Write the reports that are named, or all of them."""
    from tests.agent.probe.conftest import build_probe, document

    with TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "library").mkdir()
        (place / "program").mkdir()
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(place / "env")], check=True
        )
        environment = Environment(
            place / "env", build_probe(place / "probe.pyz"), document, {}
        ).add("alpha")
        library, program = make_library(place / "library"), make_program(place / "program")
        SIMULATED.mkdir(exist_ok=True)
        for name in names or MACHINES:
            found = report(MACHINES[name], environment, library, program)
            (SIMULATED / f"{name}.json").write_text(
                json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n",
                encoding="utf-8",
            )
            print(f"{name}: {found['verdict']['result']}: {found['verdict']['sentence']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
