"""Every promise with the way it is measured, in the order of the table."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks import (
    colab,
    conda,
    many_specs,
    monitor,
    probing,
    project_code,
    vertex_job,
    workbench,
)
from benchmarks.promise import Figure, Outcome, Promise
from benchmarks.replay import Replay
from benchmarks.timing import (
    Call,
    Cost,
    Subject,
    Unmeasured,
    alternate,
    cost,
    median,
    repeat,
    total,
)
from benchmarks.workshop import ROOT, Workshop
from provision.adapters import RealSystem
from provision.lock import loads

Measure = Callable[[Workshop], tuple[Cost, Cost | None]]
"""Returns our cost and the peer's (None where there is no peer); raises Unmeasured."""

_REQUIREMENTS = ("transformers>=5.13", "safetensors")
_ADDED = "toolz"
_WITHOUT_TORCH = f"""gpu: none
python: "{sys.version_info.major}.{sys.version_info.minor}"
packages: [{", ".join(_REQUIREMENTS)}]
platforms: [{RealSystem().platform()}]
training: {{framework: none}}
"""
_RULES = """
import gc, json, sys, time
gc.disable()  # as the command line does
from pathlib import Path
from provision import rules, source
from provision.facts import load_facts
from provision.adapters import RealSystem
from provision.rules import registry
facts = load_facts()
(document,) = source.read_spec_file(Path(sys.argv[1]), RealSystem())
spec, _ = source.validate_source(document)
registry.load_registered_rules()  # their import is part of `lint`
wall, cpu = time.perf_counter(), time.process_time()
rules.run_rules(rules.LintContext(spec, document, facts))
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""


_FACTS = """
import gc, json, time
gc.disable()  # as the command line does
from provision.facts import load_facts
wall, cpu = time.perf_counter(), time.process_time()
facts = load_facts()
for name in dir(type(facts)):
    if not name.startswith("_"):
        getattr(facts, name)
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""
_MANY = """
import gc, json, sys, time
gc.disable()  # as the command line does
from pathlib import Path
from provision import rules, source
from provision.facts import load_facts
from provision.adapters import RealSystem
facts, cases = load_facts(), []
for path in sys.argv[1:]:
    for document in source.read_spec_file(Path(path), RealSystem()):
        spec, _ = source.validate_source(document)
        cases += [(spec, document)] if spec else []
for spec, document in cases:
    rules.run_rules(rules.LintContext(spec, document, facts))
wall, cpu = time.perf_counter(), time.process_time()
for spec, document in cases:
    rules.run_rules(rules.LintContext(spec, document, facts))
print(json.dumps([(time.perf_counter() - wall) / len(cases), (time.process_time() - cpu) / len(cases)]))
"""  # noqa: E501
_INSTALL = """
import json, os, sys, time
from pathlib import Path
from provision.commands.shared.load import load_spec
from provision.commands.shared.lock_file import read_lock
from provision.commands.shared.target_plans import get_driver_and_context
from provision.effects.local import CreateVenv, InstallPackages, MakeFolder
from provision.state import Ledger, create_empty_state
from provision.adapters import RealSystem
world = RealSystem()
loaded = load_spec(Path(sys.argv[1]), world)
kind, place = get_driver_and_context(loaded, read_lock(loaded, world), "local", world)
for action in kind.plan(place, kind.observe(place, Ledger(create_empty_state("benchmark")), world)):
    for effect in action.effects:
        if isinstance(effect, InstallPackages):
            wall, before = time.perf_counter(), os.times()
            world.perform(effect, print)
            wall, after = time.perf_counter() - wall, os.times()
        elif isinstance(effect, CreateVenv | MakeFolder):
            world.perform(effect, print)
print(json.dumps([wall, sum(after[:4]) - sum(before[:4])]))
"""


def measure(names: Iterable[str], workshop: Workshop) -> Iterator[Outcome]:
    """Measure the named promises, in the table's order, and yield each outcome as it is known."""
    wanted = set(names)
    for promise, way in PROMISES.items():
        if promise.name in wanted:
            yield _measured(promise, way, workshop)


def _measured(promise: Promise, way: Measure, workshop: Workshop) -> Outcome:
    try:
        ours, peer = way(workshop)
    except Unmeasured as error:
        return Outcome(promise, trouble=str(error))
    return Outcome(promise, ours, peer)


def _start(option: str) -> Measure:
    def way(workshop: Workshop) -> tuple[Cost, Cost | None]:
        return alternate(
            _once(workshop.script("provision", option)),
            _once(workshop.python("-c", "import click")),
            rounds=21,
        )

    return way


def _lint(workshop: Workshop) -> tuple[Cost, Cost | None]:
    spec = workshop.project("lint")
    schema = spec.with_name("schema.json")
    schema.write_text(_said(workshop.script("provision", "schema")))
    theirs = workshop.script("check-jsonschema", "--schemafile", str(schema), str(spec))
    return alternate(
        _once(workshop.script("provision", "lint", str(spec))), _once(theirs), rounds=11
    )


def _lint_diff_base(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """A spec that differs from the commit, so that both versions are checked, and a plain run."""
    spec = workshop.project("lint-diff-base")
    text = spec.read_text()
    git = ("git", "-C", str(spec.parent), "-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "-m", "x")):
        _said(Call((*git, *words), workshop.environment))
    spec.write_text(f"# changed\n{text}")
    plain = workshop.script("provision", "lint", str(spec))
    compared = Call((*plain.argv, "--diff-base", "HEAD"), plain.environment, spec.parent)
    return alternate(_once(compared), _once(plain), rounds=11)


def _check(workshop: Workshop) -> tuple[Cost, Cost | None]:
    file = workshop.project("check").with_name("requirements.txt")
    file.write_text("torch==2.13.0\ntransformers[torch]==5.13.1\ndatasets\npeft\n")
    places = ("--on", "colab-t4", "--on", "workbench-l4", "--on", "this")
    program = workshop.script("provision", "check", str(file), *places)
    return repeat(_once(program), rounds=5), None


def _fit(workshop: Workshop) -> tuple[Cost, Cost | None]:
    spec = workshop.project("fit")
    spec.write_text(f"{spec.read_text()}\nrequires: {{ram: 1GiB}}\n")
    return repeat(_once(workshop.script("provision", "fit", str(spec))), rounds=5), None


def _rules(workshop: Workshop) -> tuple[Cost, Cost | None]:
    asked = workshop.python("-c", _RULES, str(workshop.project("rules")))
    return median([Cost(*json.loads(_said(asked))) for _ in range(7)]), None


def _facts(workshop: Workshop) -> tuple[Cost, Cost | None]:
    asked = workshop.python("-c", _FACTS)
    return median([Cost(*json.loads(_said(asked))) for _ in range(7)]), None


def _rules_many(workshop: Workshop) -> tuple[Cost, Cost | None]:
    golden = sorted(str(path) for path in (ROOT / "tests" / "golden").glob("*/spec.yaml"))
    asked = workshop.python("-c", _MANY, *golden)
    return median([Cost(*json.loads(_said(asked))) for _ in range(7)]), None


def _lock_online(workshop: Workshop) -> tuple[Cost, Cost | None]:
    return alternate(_locking(workshop), _by_hand(workshop.lock_by_hand), rounds=5)


def _lock_offline(workshop: Workshop) -> tuple[Cost, Cost | None]:
    return alternate(
        _locking(workshop, "--offline"), _by_hand(workshop.lock_by_hand, UV_OFFLINE="1"), rounds=7
    )


def _lock_check(workshop: Workshop) -> tuple[Cost, Cost | None]:
    return repeat(
        _once(workshop.script("provision", "lock", "--check", str(workshop.project("lock-check")))),
        rounds=21,
    ), None


def _pip_compile(workshop: Workshop) -> tuple[Cost, Cost | None]:
    folder = workshop.project("pip-compile", locked=False).parent

    def ours() -> Cost:
        spec = workshop.project("pip-compile", locked=False)
        spec.write_text(_WITHOUT_TORCH)
        return cost(workshop.script("provision", "lock", str(spec)))

    def theirs() -> Cost:
        workshop.clear(folder)
        folder.mkdir()
        wanted, made = folder / "requirements.in", folder / "requirements.txt"
        wanted.write_text("\n".join(_REQUIREMENTS) + "\n")
        return cost(
            workshop.script(
                "pip-compile",
                "--quiet",
                "--strip-extras",
                "--generate-hashes",
                "--output-file",
                str(made),
                str(wanted),
            )
        )

    return alternate(ours, theirs, rounds=1)


def _apply(workshop: Workshop) -> tuple[Cost, Cost | None]:
    def ours() -> Cost:
        spec = workshop.project("apply")
        return cost(workshop.shortened("apply", str(spec), "--yes", "--locked"))

    return alternate(ours, _by_hand(workshop.apply_by_hand), rounds=3)


def _install(workshop: Workshop) -> tuple[Cost, Cost | None]:
    def ours() -> Cost:
        return Cost(
            *json.loads(_said(workshop.python("-c", _INSTALL, str(workshop.project("install")))))
        )

    def theirs() -> Cost:
        *before, sync = workshop.apply_by_hand.prepare()
        total(before)
        return cost(sync)

    return alternate(ours, theirs, rounds=5)


def _add(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """One pure package more for an applied spec, up to the proof; by hand: the new environment."""
    more = workshop.project("add-recorded")
    cost(workshop.script("provision", "add", _ADDED, str(more)))
    words = ("apply", str(more), "--yes", "--locked")
    by_hand = workshop.recorded("add", *words, environment_of=more)

    def ours() -> Cost:
        spec = workshop.project("add")
        cost(workshop.shortened("apply", str(spec), "--yes", "--locked"))
        return cost(workshop.shortened("add", _ADDED, str(spec), "--apply", "--yes"))

    return alternate(ours, lambda: total(by_hand.prepare()), rounds=5)


def _pip(workshop: Workshop) -> tuple[Cost, Cost | None]:
    spec = workshop.project("pip", locked=False)
    spec.write_text(_WITHOUT_TORCH)
    cost(workshop.script("provision", "lock", str(spec)))
    lock = loads(spec.with_suffix(".lock").read_text(), "spec.lock")
    pins = (
        f"{one.name}=={one.version} "
        + " ".join(f"--hash=sha256:{file.sha256}" for file in one.files)
        for one in lock.packages
    )
    requirements = spec.with_name("requirements.txt")
    requirements.write_text("\n".join(pins) + "\n")
    environment = spec.with_name("pip-env")

    def ours() -> Cost:
        workshop.clear(spec.parent / ".provision")
        return cost(workshop.shortened("apply", str(spec), "--yes", "--locked"))

    def theirs() -> Cost:
        workshop.clear(environment)
        # Without bytecode, as on our side: there the first import writes it.
        pip = (
            str(environment / "bin/python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-compile",
            "--require-hashes",
            "-r",
            str(requirements),
        )
        return total(
            (
                workshop.python("-m", "venv", str(environment)),
                Call(pip, workshop.environment, workshop.folder),
            )
        )

    return alternate(ours, theirs, rounds=1)


def _verify(workshop: Workshop) -> tuple[Cost, Cost | None]:
    return cost(workshop.script("provision", "verify", str(workshop.applied))), None


def _no_change(workshop: Workshop) -> tuple[Cost, Cost | None]:
    return repeat(
        _once(workshop.script("provision", "apply", str(workshop.applied), "--yes")), rounds=5
    ), None


def _once(call: Call) -> Subject:
    return lambda: cost(call)


def _locking(workshop: Workshop, *options: str) -> Subject:
    def ours() -> Cost:
        return cost(
            workshop.script(
                "provision", "lock", str(workshop.project("lock", locked=False)), *options
            )
        )

    return ours


def _by_hand(replay: Replay, **variables: str) -> Subject:
    def theirs() -> Cost:
        return total(
            replace(call, environment={**call.environment, **variables})
            for call in replay.prepare()
        )

    return theirs


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


PROMISES: dict[Promise, Measure] = {
    Promise(
        "version", "provision --version", "python -c 'import click'", Figure.CPU_RATIO, 1.4
    ): _start("--version"),
    Promise("help", "provision --help", "python -c 'import click'", Figure.CPU_RATIO, 1.4): _start(
        "--help"
    ),
    Promise("lint", "provision lint", "check-jsonschema", Figure.CPU_RATIO, 0.9): _lint,
    Promise(
        "lint-many", "provision lint of 1,000 specs", "check-jsonschema", Figure.WALL_RATIO, 0.4
    ): many_specs.lint,
    Promise(
        "lint-many-one", "the same on one core", "the same on one core", Figure.CPU_RATIO, 0.4
    ): many_specs.lint_on_one_core,
    Promise(
        "lint-diff-base", "provision lint --diff-base", "provision lint", Figure.WALL_RATIO, 2.2
    ): _lint_diff_base,
    Promise("check", "provision check, three places", "", Figure.WALL, 0.5): _check,
    Promise("fit", "provision fit", "", Figure.CPU, 0.3): _fit,
    Promise("facts", "all tables of facts, beyond import", "", Figure.CPU, 0.015): _facts,
    Promise("rules", "the rules on one spec, beyond import", "", Figure.CPU, 0.02): _rules,
    Promise("rules-many", "the same, a spec of many", "", Figure.CPU, 0.001): _rules_many,
    Promise(
        "lock-online",
        "provision lock, warm, online",
        "the same calls of uv",
        Figure.WALL_RATIO,
        1.25,
    ): _lock_online,
    Promise(
        "lock-offline", "provision lock --offline", "the same calls of uv", Figure.CPU_ADDED, 0.4
    ): _lock_offline,
    Promise(
        "lock-check", "provision lock --check, the lock holds", "", Figure.WALL, 0.3
    ): _lock_check,
    Promise(
        "pip-compile",
        "provision lock, transformers without torch",
        "pip-compile --generate-hashes",
        Figure.WALL_RATIO,
        None,
    ): _pip_compile,
    Promise(
        "apply",
        "provision apply up to verification, warm",
        "the same calls of uv",
        Figure.CPU_ADDED,
        0.8,
    ): _apply,
    Promise(
        "install", "installing from the lock, warm", "the same uv pip sync", Figure.CPU_ADDED, 0.5
    ): _install,
    Promise(
        "add-apply",
        "provision add --apply of a pure package, without the proof",
        "uv venv + uv pip sync of that lock",
        Figure.WALL_RATIO,
        1.5,
    ): _add,
    Promise(
        "pip",
        "the same, transformers without torch",
        "venv + pip install --no-compile",
        Figure.WALL_RATIO,
        None,
    ): _pip,
    Promise("verify", "provision verify, quick", "", Figure.CPU, 30): _verify,
    Promise("verify-keras", "the same with Keras", "", Figure.CPU, 40): probing.keras,
    Promise(
        "verify-overhead", "the probe, quick", "what its checks took, summed", Figure.WALL_ADDED, 1
    ): probing.overhead,
    Promise(
        "inventory", "the probe, inventory tier, torch installed", "", Figure.WALL, 1
    ): probing.inventory,
    Promise("env", "provision env, torch installed", "", Figure.WALL, 1): probing.env,
    Promise("monitor", "the monitor of a run of 20 s", "", Figure.CPU, 0.2): monitor.beside,
    Promise("no-change", "provision apply, nothing to change", "", Figure.WALL, 3): _no_change,
    Promise(
        "plan-code",
        "provision plan, 5,000 unchanged files of code",
        "the same without code",
        Figure.WALL_ADDED,
        0.03,
    ): project_code.unchanged,
    Promise(
        "plan-code-colab",
        "provision plan, 5,000 unchanged files in a notebook",
        "the same without code",
        Figure.CPU_ADDED,
        0.1,
    ): project_code.unchanged_in_notebook,
    Promise(
        "plan-code-edit",
        "the same after an edit of one file",
        "the same without code",
        Figure.CPU_ADDED,
        0.5,
    ): project_code.edited_in_notebook,
    Promise(
        "conda-make",
        "solving and making a conda prefix, warm",
        "the same records, py-rattler alone",
        Figure.CPU_ADDED,
        0.5,
    ): conda.make,
    Promise(
        "conda-again", "a second conda environment, up to verification", "", Figure.WALL, 2
    ): conda.again,
    Promise(
        "workbench-apply",
        "provision apply --sandbox, without torch",
        "the same calls of uv",
        Figure.CPU_ADDED,
        1.5,
    ): workbench.apply,
    Promise(
        "workbench-install",
        "a device, boot to packages",
        "the same, venv + pip install -r",
        Figure.WALL_RATIO,
        0.25,
    ): workbench.install,
    Promise(
        "workbench-bare", "the same", "venv + pip install --no-compile", Figure.WALL_RATIO, None
    ): workbench.install_uncompiled,
    Promise(
        "job-apply", "provision apply of a job, without the services", "", Figure.CPU, 1.5
    ): vertex_job.apply,
    Promise(
        "colab-checked", "the cell, until it has checked the machine", "", Figure.WALL, 2
    ): colab.checked,
    Promise("colab-again", "the cell, nothing to change", "", Figure.WALL, 3): colab.again,
    Promise(
        "colab-install",
        "what a runtime lacks, warm",
        "uv pip install --no-deps",
        Figure.WALL_ADDED,
        1,
    ): colab.install,
    Promise("colab-pip", "the same", "pip install -r", Figure.WALL_RATIO, None): colab.pip,
}
