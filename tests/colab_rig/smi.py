"""nvidia-smi as it answers on Colab's machines, from a file beside it that says which card there is
and who uses it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

DRIVER = "580.82.07"


@dataclass(frozen=True)
class Card:
    """What nvidia-smi tells of a card, memory in MiB; `users` are the processes that hold memory,
    by pid.
    """

    name: str
    memory: int
    capability: str
    driver: str = DRIVER
    used: int = 0
    users: dict[str, int] = field(default_factory=dict)


T4 = Card("Tesla T4", 15360, "7.5")
L4 = Card("NVIDIA L4", 23034, "8.9")
A100 = Card("NVIDIA A100-SXM4-40GB", 40960, "8.0")
H100 = Card("NVIDIA H100 80GB HBM3", 81559, "9.0")
G4 = Card("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "12.0")
CARDS = {"T4": T4, "L4": L4, "A100": A100, "H100": H100, "G4": G4}

# What is not asked for here is answered as the real program answers what it does not know.
_PROGRAM = """#!{python} -ES
import json, sys
from pathlib import Path

about = json.loads(Path(__file__).with_name("nvidia-smi.json").read_text())
words = sys.argv[1:]
if "trouble" in about:
    print(about["trouble"])
    sys.exit(about["code"])
asked = next((word.partition("=")[2].split(",") for word in words if word.startswith(("--query-gpu=", "--query-compute-apps="))), None)
form = next((word.partition("=")[2].split(",") for word in words if word.startswith("--format=")), [])
mib = "" if "nounits" in form else " MiB"
card = {{
    "name": about["name"], "gpu_name": about["name"], "driver_version": about["driver"], "compute_cap": about["capability"],
    "memory.total": f"{{about['memory']}}{{mib}}", "memory.used": f"{{about['used']}}{{mib}}", "memory.free": f"{{about['memory'] - about['used']}}{{mib}}",
    "count": "1", "gpu_count": "1", "index": "0", "uuid": "GPU-00000000-0000-0000-0000-000000000000", "gpu_uuid": "GPU-00000000-0000-0000-0000-000000000000",
    "pci.bus_id": "00000000:00:04.0", "utilization.gpu": "0" if "nounits" in form else "0 %", "temperature.gpu": "40", "mig.mode.current": "[N/A]",
}}
if asked is None:
    print(f"| NVIDIA-SMI {{about['driver']}}   Driver Version: {{about['driver']}}   CUDA Version: 13.0 |")
    print(f"|   0  {{about['name']}}   {{about['used']}}MiB / {{about['memory']}}MiB |")
    sys.exit(0)
if any(word.startswith("--query-compute-apps=") for word in words):
    rows = [{{"pid": pid, "used_memory": f"{{held}}{{mib}}", "used_gpu_memory": f"{{held}}{{mib}}", "process_name": "python3", "name": "python3"}}
            for pid, held in about["users"].items()]
else:
    rows = [card]
unknown = [key for key in asked if key.strip() not in (rows[0] if rows else ["pid", "used_memory", "used_gpu_memory", "process_name", "name"])]
if unknown:
    print(f'Field "{{unknown[0]}}" is not a valid field to query.')
    sys.exit(2)
if "noheader" not in form:
    print(", ".join(asked))
for row in rows:
    print(", ".join(row[key.strip()] for key in asked))
"""


def install(folder: Path, card: Card | None, python: str = sys.executable) -> None:
    """Put a card into a machine: the program and what it tells into a folder of its PATH; without a
    card, one that fails as with no device behind it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    trouble = {
        "trouble": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "code": 9,
    }
    (folder / "nvidia-smi.json").write_text(
        json.dumps(asdict(card) if card is not None else trouble)
    )
    (folder / "nvidia-smi").write_text(_PROGRAM.format(python=python))
    (folder / "nvidia-smi").chmod(0o755)
