"""A device of the sandbox from boot until its environment is in place, by our program or by the
same one with pip in the place of uv.

    python booted.py uv|pip|pip-no-compile SPEC    # prints [wall, CPU] in seconds, of the device
    alone

The device runs what it always runs, from the startup script on; this process listens to its
console and ends it where the packages are in place. Our side
fetches uv first, as an instance does: that of this machine is not used. The other side makes an
environment with venv and has its pip install the same
files by the same hashes; it looks at nothing afterwards. pip writes bytecode unless told not to,
which uv leaves to the first import.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.adapters import RealSystem
from provision.commands.apply import ApplyOptions, apply
from provision.commands.shared.load import load_spec
from provision.commands.shared.sandbox_spec import build_sandbox_spec
from provision.sandbox.namespace_booter import NamespaceBooter
from provision.sandbox.serve import serve
from provision.sandbox.store import Store
from provision.verification import device_files

_MAKING = "provision_device/device/making.py"
_IN_PLACE = "provision: packages: "
_LIMIT_S = 300
_UV = """

def find_uv(document, machine):
    tools = machine.ours / "tools" / f"uv-{document.uv.version}"
    _fetch_uv(document, document.uv, tools, machine)
    return str(tools / "bin/uv")
"""
_PIP = """

def find_uv(document, machine):
    return machine.which("uv")  # for the interpreter alone

def make(document, uv, python, machine, *_):
    where = prefix(document, machine)
    machine.must("no venv", [python, "-m", "venv", str(where)], 300)
    lines = (" ".join([f"{one['name']}=={one['version']}", *(f"--hash=sha256:{sha}" for sha in one["files"].values())]) for one in document.install["packages"])
    machine.put(where / "requirements.txt", "\\n".join(lines))
    variables = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": document.install["indexes"]["pypi"], "PIP_CACHE_DIR": str(machine.ours / "cache")}
    words = ["install", "--quiet", "--no-deps", "--require-hashes", "-r", str(where / "requirements.txt")]
    machine.must("pip failed", [str(where / "bin/python"), "-m", "pip", *words], 900, variables=variables)
    return {"installed by pip": len(document.install["packages"])}
"""  # noqa: E501
_WAYS = {
    "uv": _UV,
    "pip": _PIP,
    "pip-no-compile": _PIP.replace('"--quiet"', '"--quiet", "--no-compile"'),
}


class _Listening:
    """A store that hears the console of a device."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.heard: list[str] = []
        self.over = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def append_serial(self, name: str, text: str) -> None:
        self.heard.append(text)
        if text.startswith((_IN_PLACE, "provision: cannot", "provision: fault", "SANDBOX: ")):
            self.over.set()
        self._store.append_serial(name, text)


class _Timed(NamespaceBooter):
    """Boots one device, and ends it where its environment is in place."""

    took: list[float]
    heard: str

    def start(self, store: Any, name: str, endpoints: Mapping[str, str], faults: Any) -> None:
        listening = _Listening(store)
        began = time.perf_counter()
        super().start(listening, name, endpoints, faults)
        # Beside the services, which have to answer meanwhile.
        threading.Thread(target=self._time, args=(listening, began), daemon=True).start()

    def _time(self, listening: _Listening, began: float) -> None:
        listening.over.wait(_LIMIT_S)
        wall = time.perf_counter() - began
        self.took = [wall, sum(_spent(machine.process.pid) for machine in self._machines.values())]
        self.heard = "".join(listening.heard)  # last: who waits for it ends the device


def _spent(root: int) -> float:
    """Return the CPU seconds of a process, its descendants, and those of them that have ended."""
    about: dict[int, tuple[int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        about[int(path.parent.name)] = int(words[1]), sum(map(int, words[11:15]))
    family = {root}
    while more := {pid for pid, (parent, _) in about.items() if parent in family} - family:
        family |= more
    return sum(about[pid][1] for pid in family if pid in about) / os.sysconf("SC_CLK_TCK")


def _device(way: str, ours: bytes) -> bytes:
    """Return our program with another way of making the environment."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(ours)) as source, zipfile.ZipFile(made, "w") as target:
        for entry in source.infolist():
            more = _WAYS[way].encode() if entry.filename == _MAKING else b""
            target.writestr(entry, source.read(entry) + more)
    return made.getvalue()


def main(way: str, path: Path) -> int:
    """Boot a device and say what it took; 1 with its console where the packages did not come in
    place.
    """
    changed = _device(way, device_files.workbench_zipapp())
    device_files.workbench_zipapp = lambda: changed
    booter = _Timed(path.parent / ".provision" / "sandbox")
    with serve(booter.folder, booter=booter) as running:
        world = RealSystem(endpoints=running.endpoints)
        apply(
            build_sandbox_spec(load_spec(path, world), world),
            ("wb",),
            ApplyOptions(detach=True),
            world,
            lambda *_: None,
            lambda _: None,
        )
        deadline = time.monotonic() + _LIMIT_S
        while not hasattr(booter, "heard") and time.monotonic() < deadline:
            time.sleep(0.05)
    if _IN_PLACE not in getattr(booter, "heard", ""):
        sys.stderr.write(getattr(booter, "heard", "the device was not started"))
        return 1
    sys.stdout.write(json.dumps(booter.took))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
