"""Small cells that leave what the real one leaves: a status and a report, true or not."""

from __future__ import annotations

import json
from typing import Any

from tests.views import builders

NONCE = "0123456789abcdef0123456789abcdef"
LOCK = "sha256:" + "1" * 64

_WRITE = """\
import json, os, pathlib
base = pathlib.Path(os.environ["PROVISION_CELL_BASE"])
base.mkdir(parents=True, exist_ok=True)
def write(name, told):
    (base / name).write_text(json.dumps(told))
"""


def report(nonce: str = NONCE, lock: str = LOCK, verdict: str = "verified") -> dict[str, Any]:
    """A report as the probe writes it."""
    document = builders.sample(verdict, [builders.check("H01", "host", "memory")])
    document["subject"]["nonce"] = nonce
    document["lock"]["digest"] = lock
    return document


def status(outcome: str, nonce: str = NONCE, **more: Any) -> dict[str, Any]:
    """A status as the cell writes it."""
    return {
        "schema": "provision.agent.notebook-status/1",
        "nonce": nonce,
        "stage": "report",
        "outcome": outcome,
        "message": "",
        "hint": "",
        **more,
    }


def writing(told: dict[str, Any], found: dict[str, Any] | None) -> str:
    """A cell that writes a status and, where there is one, a report."""
    lines = [
        _WRITE,
        "print('stage install: 2 of 2 packages')",
        f"write('status.json', json.loads({json.dumps(told)!r}))",
    ]
    lines += (
        [f"write('report.json', json.loads({json.dumps(found)!r}))"] if found is not None else []
    )
    return "\n".join(lines)


def restarting(times: int) -> str:
    """A cell that asks for a restart of the kernel that many times, in fresh kernels only."""
    return f"""{_WRITE}
count = base / "count"
first = "seen" not in globals()
seen = True
assert first, "the kernel was not restarted"
turn = int(count.read_text()) if count.exists() else 0
count.write_text(str(turn + 1))
print("stage install: 2 of 2 packages")
from IPython.display import HTML, display
address = "data:application/json;base64," + "QUJD" * 400
display(HTML("<p>report <a href='" + address + "'>download the report</a></p>"))
outcome = "restart-needed" if turn < {times} else "verified"
ended = {{"outcome": outcome, "message": "numpy is loaded in an older version"}}
write("status.json", json.loads({json.dumps(status("x"))!r}) | ended)
if outcome == "verified":
    write("report.json", json.loads({json.dumps(report())!r}))
"""
