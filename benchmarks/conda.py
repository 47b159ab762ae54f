"""A conda environment from a channel on disk, beside py-rattler alone for the same records; and a
second one, made of links to the first one's files.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.timing import Call, Cost, Unmeasured, alternate, cost, repeat
from benchmarks.workshop import ROOT, Workshop

_ROUNDS = 5
_SPEC = f"""gpu: none
python: "{sys.version_info.major}.{sys.version_info.minor}"
platforms: [linux-x86_64]
training: {{framework: none}}
packages: []
conda_packages: [ffmpeg=7, gxx]
targets: {{local: {{kind: local, manager: conda}}}}
"""
_CHANNEL = (
    "import sys; from pathlib import Path; from tests.conda_rig import conda_channel; "
    "print(conda_channel(Path(sys.argv[1])).address, flush=True)"
)
_TIMED = """
import json, os, sys, time
from pathlib import Path

def timed(work):
    wall, before = time.perf_counter(), os.times()
    work()
    wall, after = time.perf_counter() - wall, os.times()
    print(json.dumps([wall, sum(after[:4]) - sum(before[:4])]), flush=True)
    os._exit(0)  # py-rattler's threads can take the exit code with them as the interpreter ends
"""
_OURS = (
    _TIMED
    + """
from provision.commands.shared.load import load_spec
from provision.commands.shared.lock_file import read_lock
from provision.commands.shared.target_plans import get_driver_and_context
from provision.effects.conda import CreateCondaPrefix
from provision.facts import load_facts as known
from provision.lock.resolve import resolve_spec
from provision.state import Ledger, create_empty_state
from provision.adapters import RealSystem

class Noting(RealSystem):
    def solve_conda(self, ask, tell):
        self.ask = ask
        return super().solve_conda(ask, tell)

world = Noting()
loaded = load_spec(Path(sys.argv[1]), world)
resolve_spec(loaded.spec, known(), world, lambda _: None)
kind, place = get_driver_and_context(loaded, read_lock(loaded, world), "local", world)
effects = [effect for action in kind.plan(place, kind.observe(place, Ledger(create_empty_state("benchmark")), world)) for effect in action.effects]
(prefix,) = [effect for effect in effects if isinstance(effect, CreateCondaPrefix)]

def make():
    world.solve_conda(world.ask, lambda _: None)
    world.perform(prefix, lambda _: None)

timed(make)
"""  # noqa: E501
)
_BARE = (
    _TIMED
    + """
import asyncio, rattler
channel, lock, prefix, kept = sys.argv[1:]
rows = json.loads(Path(lock).read_text())["conda"]
wishes = [rattler.MatchSpec(f"{row['name']} =={row['version']} {row['build']}") for row in rows]
virtual = [rattler.GenericVirtualPackage(rattler.PackageName("__glibc"), rattler.Version("2.28"), rattler.BuildString("0"))]
gateway = rattler.Gateway(cache_dir=Path(kept) / "repodata")

async def solve():
    return await rattler.solve([channel], wishes, gateway=gateway, platforms=["linux-64", "noarch"], virtual_packages=virtual)

async def make():
    records = await solve()
    assert {record.file_name for record in records} == {row["file"] for row in rows}
    await rattler.install(records, prefix, cache_dir=Path(kept) / "pkgs", show_progress=False)

asyncio.run(solve())
timed(lambda: asyncio.run(make()))
"""  # noqa: E501
)


def make(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """Solving and making a prefix, both with files in the cache; reading the spec and the lock is
    not counted.
    """
    channel, spec, variables = _locked(workshop, "conda-make")
    prefix, kept = spec.with_name("bare"), spec.with_name("kept")

    def ours() -> Cost:
        workshop.clear(spec.parent / ".provision")
        return _told(workshop.python("-c", _OURS, str(spec)), variables)

    def theirs() -> Cost:
        workshop.clear(prefix)
        return _told(
            workshop.python(
                "-c", _BARE, channel, str(spec.with_suffix(".lock")), str(prefix), str(kept)
            ),
            variables,
        )

    ours(), theirs()  # the files are in both caches from here on
    return alternate(ours, theirs, rounds=_ROUNDS)


def again(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """`provision apply` up to the verification where another folder has the same environment."""
    _, spec, variables = _locked(workshop, "conda-again")
    call = workshop.shortened("apply", str(spec), "--yes", "--locked")
    call = Call(call.argv, {**call.environment, **variables}, call.cwd)

    def second() -> Cost:
        workshop.clear(spec.parent / ".provision")
        return cost(call)

    second()
    return repeat(second, _ROUNDS), None


def _locked(workshop: Workshop, name: str) -> tuple[str, Path, dict[str, str]]:
    """Return the channel's address, the path of a locked spec and the variables that lead to the
    channel.
    """
    spec = workshop.project(name, locked=False)
    spec.write_text(_SPEC)
    made = Call(
        (sys.executable, "-c", _CHANNEL, str(ROOT / ".pytest_cache/conda")),
        {**workshop.environment, "PYTHONPATH": str(ROOT)},
        ROOT,
    )
    channel = _said(made).strip()
    variables = {"PROVISION_CHANNEL_CONDA_FORGE": channel, "PROVISION_CONDA": "py-rattler"}
    lock = workshop.script("provision", "lock", str(spec))
    _said(Call(lock.argv, {**lock.environment, **variables}, lock.cwd))
    return channel, spec, variables


def _told(call: Call, variables: dict[str, str]) -> Cost:
    return Cost(*json.loads(_said(Call(call.argv, {**call.environment, **variables}, call.cwd))))


def _said(call: Call) -> str:
    done = subprocess.run(
        call.argv,
        env=dict(call.environment),
        cwd=call.cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Unmeasured(
            f"{Path(call.argv[0]).name}: exit code {done.returncode}\n{done.stderr[-1500:]}"
        )
    return done.stdout
