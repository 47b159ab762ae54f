"""A random walk of real commands over devices that boot: whatever is killed, moved or refused,
state, journal or `orphans` names each instance.
"""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.commands.test_workbench_texts import SPEC, known, left
from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")
ZONES = ("[us-central1-a, us-central1-b]", "[us-central1-b]", "[us-east1-c]")
PROJECTS = ("my-project", "other-project")
FAULTS = (
    (),
    (),
    (),
    ("--fault", "hidden:12"),
    ("--fault", "stockout:us-central1-a"),
    ("--fault", "silent-device"),
)
_LIMIT_S = 600


class Walk:
    """A project that commands are run in; `steps` lists them with their exit codes."""

    def __init__(self, bench: Bench, seed: int) -> None:
        self.bench, self.random, self.steps, self.verified = (
            bench,
            random.Random(seed),
            list[str](),
            0,
        )
        bench.spec(SPEC.format(more="nat: true"))

    def step(self) -> None:
        does = [self.apply] * 3 + [self.cut] * 4 + [self.move] * 3 + [self.destroy]
        doing: Callable[[], None] = self.random.choice(does)
        doing()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = self.bench.run(*words, timeout=_LIMIT_S)
        self.steps.append(f"{' '.join(words)}: {done.returncode}")
        assert done.returncode in (0, 1, 2, 3), self.told(done.stderr)
        return done

    def apply(self) -> None:
        fault = self.random.choice(FAULTS)
        waits = fault != ("--fault", "silent-device") and self.random.random() < 0.6
        done = self.run(
            "apply", "spec.yaml", "--sandbox", "--yes", *fault, *(() if waits else ("--detach",))
        )
        self.verified += "SIMULATED" in done.stdout

    def cut(self) -> None:
        """Kill an apply or a destroy somewhere in its course."""
        words = self.random.choice(
            [("apply", "spec.yaml"), ("apply", "spec.yaml"), ("destroy", "spec.yaml")]
        )
        number = self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        process = self.bench.start(*words, "--sandbox", "--yes", *self.random.choice(FAULTS))
        seconds = self.random.uniform(0.3, 6)
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            _, said = process.communicate(timeout=_LIMIT_S)
            assert process.returncode in (-number, 128 + number, 0, 1, 2, 3), self.told(said)
        self.steps.append(
            f"{' '.join(words)} ({number.name} after {seconds:.1f} s): {process.returncode}"
        )

    def move(self) -> None:
        text = (self.bench.folder / "spec.yaml").read_text()
        zones, project = self.random.choice(ZONES), self.random.choice(PROJECTS)
        text = re.sub(
            r"zones: .*", f"zones: {zones}", re.sub(r"project: .*", f"project: {project}", text)
        )
        (self.bench.folder / "spec.yaml").write_text(text)
        self.steps.append(f"move to {project}, {zones}")

    def destroy(self) -> None:
        self.run("destroy", "spec.yaml", "--sandbox", "--yes")

    def told(self, more: str = "") -> str:
        return "\n".join(
            [
                *self.steps,
                "there:",
                *sorted(left(self.bench)),
                "known:",
                *sorted(known(self.bench)),
                more[-3000:],
            ]
        )


@pytest.mark.long(minutes=True)
@pytest.mark.parametrize("seed", range(1, 11))
def test_no_instance_of_a_booted_device_is_ever_unknown(bench: Bench, seed: int) -> None:
    walk = Walk(bench, seed)
    for _ in range(10):
        walk.step()
        unknown = left(bench) - known(bench)
        assert not unknown, walk.told()
        listed = bench.run("orphans", "spec.yaml", "--sandbox", "--output-format", "json")
        assert json.loads(listed.stdout)["orphans"] == [], walk.told(listed.stdout)
    journal = bench.folder / ".provision/sandbox/state/journal.json"
    if journal.exists():
        journal.write_text(
            re.sub(r'"asked": "[^"]*"', '"asked": "2026-01-01T00:00:00Z"', journal.read_text())
        )
    walk.destroy()
    assert (left(bench), known(bench)) == (set(), set()), walk.told()
    print(f"seed {seed}, 10 steps, {walk.verified} verified runs")
