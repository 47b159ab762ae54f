"""The probe on a real card: what it says of this machine's own torch against expectations written from what is installed here.

`make test-device` runs it. PROVISION_TEST_DEVICE_PYTHON names the interpreter that has torch (else python3), and PROVISION_RECORD=NAME stores the report as
tests/reports/recorded/gpu-NAME.json.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.facts import load
from provision.probe.judging.cards import is_called
from tests.probe.bench import checks
from tests.support import require

pytestmark = [pytest.mark.device, pytest.mark.slow]

RECORDED = Path(__file__).parents[1] / "reports" / "recorded"
PYTHON = os.environ.get("PROVISION_TEST_DEVICE_PYTHON", "python3")
LOOK = """
import importlib.metadata as m, json, sys, torch
card = torch.cuda.get_device_properties(0).name if torch.cuda.is_available() else None
found = {d.metadata["Name"]: d.version for d in m.distributions() if d.metadata["Name"]}
cuda = torch.version.cuda
print(json.dumps({"packages": found, "prefix": sys.prefix, "version": "%d.%d" % sys.version_info[:2], "card": card,
    "count": torch.cuda.device_count(), "flavour": "cu" + cuda.replace(".", "") if cuda else "cpu"}))
"""
GIB = 2**30
GOLDEN: dict[str, dict[str, tuple[float, float]]] = {
    # Bands, not points, because they hold for other machines of the kind. Memory: 143771 MiB within 2 %. Errors: fp32 on CUDA cores, bf16 output rounding.
    "NVIDIA H200": {"gpu.vram_bytes": (137 * GIB, 144 * GIB), "numerics.fp32_error": (1e-8, 2e-6), "numerics.bf16_error": (1.5e-3, 4.5e-3)},
}


@pytest.fixture(scope="session")
def here() -> dict[str, Any]:
    """What is installed here and which card torch sees; skips, or fails where REQUIRE names `device`, when there is none."""
    try:
        done = subprocess.run([PYTHON, "-c", LOOK], capture_output=True, text=True, check=False, timeout=300)
        found: dict[str, Any] = (
            json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"card": None, "why": done.stderr.strip().splitlines()[-1:]}
        )
    except OSError as error:
        found = {"card": None, "why": [str(error)]}
    why = f" ({found['why'][0]})" if found.get("why") else ""
    require("device", found["card"] is not None, f"{PYTHON} has no torch that sees an NVIDIA card{why}; PROVISION_TEST_DEVICE_PYTHON names another interpreter")
    return found


@pytest.fixture(scope="session")
def report(here: dict[str, Any], probe: Path, document: Callable[..., dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("device")
    names = {name.lower() for name in here["packages"]}
    card = next((row for row in load().cards if is_called(here["card"], row.name)), None)
    figures = {"bandwidth_gb_s": card.bandwidth_gb_s, "tflops": dict(card.tflops), "source": "facts"} if card else {}
    promised = document(
        packages=[{"name": name, "version": version} for name, version in here["packages"].items()],
        direct=sorted({"torch", "transformers", "accelerate", "numpy"} & names),
        flavour=here["flavour"],
        python={"version": here["version"], "prefix": here["prefix"]},
        shared=True,
        gpu={"type": card.name if card else here["card"], "count": here["count"]},
        **({"card": {"memory_bytes": int(card.memory_gb * GIB), **figures}} if card else {}),
    )
    (folder / "expectations.json").write_text(json.dumps(promised), encoding="utf-8")
    out = folder / "report.json"
    command = [PYTHON, str(probe), "verify", "--expectations", str(folder / "expectations.json"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert out.exists(), done.stdout + done.stderr
    if name := os.environ.get("PROVISION_RECORD"):
        (RECORDED / f"gpu-{Path(name).name}.json").write_bytes(out.read_bytes())
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def test_the_machine_is_what_it_says_of_itself(report: dict[str, Any]) -> None:
    wrong = {id_: check["message"] for id_, check in checks(report).items() if check["status"] in ("fail", "unknown") and check["required"]}

    assert wrong == {}
    assert report["verdict"]["result"] == "verified"


def test_nvml_and_torch_see_the_same_cards(here: dict[str, Any], report: dict[str, Any]) -> None:
    readings = {one["key"]: one["value"] for one in report["readings"]}

    assert readings["gpu.name"].split(" + ")[0] == here["card"] or here["card"] in readings["gpu.name"]
    assert readings["gpu.count"] == readings["nvml.count"] == here["count"]


def test_the_readings_lie_in_the_bands_of_the_card(here: dict[str, Any], report: dict[str, Any]) -> None:
    bands = GOLDEN.get(here["card"])
    if bands is None:
        pytest.skip(f"there are no bands of {here['card']}; known are {', '.join(GOLDEN)}")
    readings = {one["key"]: one["value"] for one in report["readings"]}

    assert {key: readings[key] for key, (low, high) in bands.items() if not low <= readings[key] <= high} == {}
