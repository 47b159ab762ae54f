"""`python -m benchmarks.fleet`: one apply of many specs next to the critical path.

The services are those of the sandbox, and each call takes `--delay` seconds. Devices answer by
script, with a recorded report under their nonce: what they install is not measured. The critical
path is the time of one target alone, times the rounds in which `--parallel` targets at a time
need for all of them. Exit 1 when the fleet takes more than 1.5 times that, or more than 400 MB.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from provision.sandbox.booter import Booter  # noqa: E402
from provision.sandbox.faults import Faults  # noqa: E402
from provision.sandbox.lifecycle import Delays  # noqa: E402
from provision.sandbox.metadata_server import instance_attributes  # noqa: E402
from provision.sandbox.serve import serve  # noqa: E402
from provision.sandbox.store import Store  # noqa: E402

BOUND, MOST_MB = 1.5, 400
_REPORT = ROOT / "tests/reports/recorded/cpu-build.json"
_SPEC = """gpu: none
python: "{python}"
packages: [packaging]
training: {{framework: none}}
targets:
  wb:
    kind: workbench
    project: my-project
    zones: [us-central1-a, us-central1-b]
    machine_type: n1-standard-4
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    nat: true
    max_lifetime: 8h
"""


class ScriptedDevices(Booter):
    """Devices that send a recorded report some seconds after they boot."""

    def __init__(self, boot_s: float) -> None:
        self._boot_s = boot_s
        self._document = json.loads(_REPORT.read_text())

    def start(
        self,
        store: Store,
        name: str,
        endpoints: Mapping[str, str],  # noqa: ARG002
        faults: Faults,  # noqa: ARG002
    ) -> None:
        """See Booter."""
        timer = threading.Timer(self._boot_s, self._report, (store, name))
        timer.daemon = True
        timer.start()

    def _report(self, store: Store, name: str) -> None:
        run = json.loads(instance_attributes(store, name)["provision-run"])
        bucket, _, path = run["document"].removeprefix("gs://").partition("/")
        nonce, folder = run["nonce"], path.rpartition("/")[0]
        document: dict[str, Any] = {
            **self._document,
            "subject": {**self._document["subject"], "nonce": nonce},
        }
        report = json.dumps(document).encode()
        store.put_object(bucket, f"{folder}/report.json", report)
        digest = hashlib.sha256(report).hexdigest()
        result = {"n": nonce, "v": document["verdict"]["result"], "exit": 0, "sha256": digest}
        store.set_guest_attribute(name, "provision", "result", json.dumps(result))
        store.note(name, booted=True)


def main(words: list[str]) -> int:
    """Measure one target and the fleet, print both, and return the exit code."""
    asked = _parser().parse_args(words)
    if asked.serve is not None:
        return _serve(asked.serve, asked.delay)
    with tempfile.TemporaryDirectory(prefix="provision-fleet-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        one = _project(folder / "one", 1)
        with _emulator(one, 0):
            _apply(one, "spec-000.yaml", "--detach", "--all")  # locks the spec
        lock = next(one.glob(".provision/sandbox/state/*.lock")).read_text()
        shutil.rmtree(one)
        one = _project(folder / "one", 1, lock)
        with _emulator(one, asked.delay):
            alone, _, _ = _apply(one, "spec-000.yaml")
        many = _project(folder / "many", asked.specs, lock)
        with _emulator(many, asked.delay):
            wall, cpu, peak = _apply(many, ".", "--all", "--parallel", str(asked.parallel))
    rounds = math.ceil(asked.specs / asked.parallel)
    ratio = wall / (alone * rounds)
    sys.stdout.write(
        f"one target: {alone:.1f} s\n"
        f"{asked.specs} specs, {asked.parallel} at a time: {wall:.1f} s, "
        f"{ratio:.2f} times the critical path of {alone * rounds:.1f} s (bound {BOUND:g}); "
        f"{cpu:.1f} s of CPU, {peak:.0f} MB (bound {MOST_MB})\n"
    )
    return int(ratio > BOUND or peak > MOST_MB)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet")
    parser.add_argument("--specs", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=50)
    parser.add_argument("--delay", type=float, default=2.0)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    return parser


def _project(folder: Path, count: int, lock: str = "") -> Path:
    """Make a folder with specs, which are locked if the text of a lock is given."""
    folder.mkdir()
    state = folder / ".provision/sandbox/state"
    for number in range(count):
        stem = f"spec-{number:03}"
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        (folder / f"{stem}.yaml").write_text(_SPEC.format(python=python))
        if lock:
            state.mkdir(mode=0o700, parents=True, exist_ok=True)
            (state / f"{stem}.lock").write_text(lock)
    return folder


@contextmanager
def _emulator(folder: Path, delay: float) -> Iterator[None]:
    """Run the services for a folder in another process."""
    words = ["-m", "benchmarks.fleet", "--serve", str(folder), "--delay", str(delay)]
    with subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            if not process.stdout.readline():
                raise SystemExit("the emulator did not start")
            yield
        finally:
            process.stdin.close()
            process.wait()


def _serve(folder: Path, delay: float) -> int:
    store = folder / ".provision/sandbox"
    delays = Delays(operation=4 * delay, active=2 * delay, answer=delay)
    with serve(store, booter=ScriptedDevices(5 * delay), delays=delays):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()
    return 0


def _apply(folder: Path, *words: str) -> tuple[float, float, float]:
    """Apply specs, and return the seconds, the CPU seconds and the most memory in MB."""
    argv = [sys.executable, "-m", "provision", "apply", *words, "--sandbox", "--yes"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PIP_CONFIG_FILE": "/dev/null"}
    start = time.monotonic()
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(
            argv, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        text = (folder / "output.txt").read_text()
        raise SystemExit(f"provision {' '.join(words)}: exit {process.returncode}\n{text[-4000:]}")
    return wall, usage.ru_utime + usage.ru_stime, _megabytes(usage)


def _megabytes(usage: resource.struct_rusage) -> float:
    """Return the most memory of a process; Linux counts KiB, macOS bytes."""
    return usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
