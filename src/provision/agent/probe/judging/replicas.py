"""Judges the machines of a job against each other."""

from __future__ import annotations

import math

from ..byte_sizes import format_bytes
from ..checks.replicas import CLOCKS_DIFFER, SLOW_MACHINE, SLOW_NETWORK
from ..checks.training import DISTRIBUTED_ERROR
from ..model import JsonObject, Judgement, Proof
from .judgement import (
    JudgeInput,
    fails,
    format_list,
    format_number,
    is_number,
    passes,
    skipped,
    unknown,
    warns,
)
from .launch import ALONE_ON_CPU, DISTRIBUTED_MODE
from .symptoms import explain_error

_PORT_FIX = (
    "check that the machines reach each other on the port of the rendezvous; look at the "
    "replicas' logs in Cloud Logging"
)


def _count(given: JudgeInput) -> int:
    declared = given.expected.replicas
    return 0 if declared is None else declared.count


def _machines(count: int) -> str:
    return "the machine is" if count == 1 else f"all {count} machines are"


def _presence(given: JudgeInput) -> Judgement:
    expected, names = _count(given), given["replicas.names"]
    if not names:
        return unknown("the probe does not run in a job", expected)
    observed = given["replicas.count"]
    if observed == expected == len(set(names)):
        return passes(f"{_machines(expected)} present", expected, observed)
    declared = given.expected.replicas
    missing = sorted(set(declared.names if declared else ()) - set(names))
    which = f": {', '.join(missing)} did not report" if missing else ""
    return fails(
        f"{len(set(names))} of {expected} machines are present{which}",
        expected,
        len(set(names)),
        "a machine did not start, or could not write to the bucket",
        "check the logs of the missing machine in Cloud Logging, and run the job again",
    )


def _sums(given: JudgeInput) -> Judgement:
    own = given.expected.gpu_count or 1
    world = _count(given) * own
    observed = given["replicas.sums_ranks"]
    if observed is None:
        return unknown("the probe does not run in a job", world)
    code, tail = given["replicas.sums_exit"], given.get("_replicas.tail") or ""
    if code is None or code or observed != own:
        how = "hangs" if code is None else f"ended with exit code {code}"
        cause, fix = explain_error(tail)
        return fails(
            f"an all-reduce across {_count(given)} machines {how}: {observed} of {own} "
            f"processes on this machine finished.{f' They printed: {tail}' if tail else ''}",
            own,
            observed,
            cause or "the machines do not reach each other, or a process ended",
            fix or _PORT_FIX,
        )
    if given["replicas.sums_world"] != [world]:
        return fails(
            f"the processes form a group of {_to_text(given['replicas.sums_world'])}, expected "
            f"{world}",
            world,
            given["replicas.sums_world"],
            "the machines formed more than one group",
            _PORT_FIX,
        )
    wrong = given["replicas.sums_wrong"]
    if wrong:
        return fails(
            f"{wrong} all-reduce results across {_count(given)} machines are wrong",
            0,
            wrong,
            "the network or a machine is faulty, or a process took part twice",
            "run the job again on other machines",
        )
    return passes(
        f"all-reduce results of {world} processes on {_count(given)} machines are exact "
        f"({given['replicas.backend']})",
        0,
        0,
    )


def _bandwidth(given: JudgeInput) -> Judgement:
    observed = given["replicas.bus_gb_s"]
    if observed is None:
        return unknown("the processes of the machines did not finish (see G02)")
    if _count(given) == 1:
        return skipped("there is one machine", observed)
    message = (
        f"{observed:.3g} GB/s of bus bandwidth between {_count(given)} machines "
        f"({given['replicas.backend']})"
    )
    if observed < SLOW_NETWORK.value:
        return warns(
            message,
            SLOW_NETWORK.value,
            observed,
            "one machine's network connection is slow (see G04), or other jobs are using it",
            "run the check again, or use a machine type with a faster network",
            SLOW_NETWORK,
        )
    return passes(message, SLOW_NETWORK.value, observed, SLOW_NETWORK)


def _links(given: JudgeInput) -> Judgement:
    count = _count(given)
    if count < 3:
        return skipped("a slow machine is recognized among three or more")
    links = given["replicas.links_mb_s"]
    if links is None:
        return unknown("the processes of the machines did not finish (see G02)")
    # Both links of a slow machine are slow. Of its neighbours, only one is.
    best: dict[str, float] = {}
    for pair, speed in links.items():
        for name in pair.split():
            best[name] = max(speed, best.get(name, 0.0))
    middle = sorted(best.values())[len(best) // 2]
    slow = sorted(name for name, speed in best.items() if speed * SLOW_MACHINE.value < middle)
    shown = ", ".join(
        f"{pair.replace(' ', ' and ')}: {speed:,.0f} MB/s" for pair, speed in links.items()
    )
    if slow:
        return fails(
            f"{' and '.join(slow)}: every link is slow ({shown})"[:600],
            round(middle, 1),
            {name: best[name] for name in slow},
            "this machine's network connection is slow, and all other machines wait for it",
            "run the job again; it will probably get different machines",
            SLOW_MACHINE,
        )
    return passes(
        f"each of the {count} machines has a link that carries {min(best.values()):,.0f} MB/s "
        "or more",
        round(middle, 1),
        min(best.values()),
        SLOW_MACHINE,
    )


def _training(given: JudgeInput) -> Judgement:
    if _count(given) == 1:
        return skipped("there is one machine")
    if "transformers" not in given.expected.packages:
        return skipped("transformers is not in the lock")
    if given.expected.proof is not Proof.HF_TRAINER:
        return skipped("the declared training does not use Trainer")
    own, notes = given.expected.gpu_count or 1, given["replicas.training"]
    if notes is None:
        return unknown("the processes of the machines did not finish (see G02)")
    errors = [note["error"] for note in notes if "error" in note]
    if errors or len(notes) < own:
        tail = given.get("_replicas.training_tail") or ""
        code = given["replicas.training_exit"]
        how = "hangs" if code is None else f"ended with exit code {code}"
        cause, fix = explain_error(errors[0] if errors else tail)
        return fails(
            f"a training step across {_count(given)} machines fails: {errors[0]}"
            if errors
            else f"a training step across {_count(given)} machines {how}",
            own,
            len(notes) - len(errors),
            cause or "a process of this or of another machine failed",
            fix or "see the same check in the reports of the other machines",
        )
    mode = notes[0]["ddp"]["mode"]
    if given.expected.training.strategy != "none" and mode != DISTRIBUTED_MODE:
        return fails(
            f"a program with Trainer trains on each of the {_count(given)} machines alone: its "
            f"parallel mode is {mode}",
            DISTRIBUTED_MODE,
            mode,
            *ALONE_ON_CPU,
        )
    world = _count(given) * own
    wrong = [text for note in notes[:1] for text in _wrong_steps(note, world)]
    shown = {name: notes[0][name].get("loss") for name in ("ddp", "fsdp")}
    if wrong:
        return fails(
            f"a training step across {_count(given)} machines: {format_list(wrong)}",
            DISTRIBUTED_ERROR.value,
            shown,
            "one process's gradients do not reach the other processes, or one process computes "
            "wrong results",
            "lock torch, transformers and accelerate together, or run the job again on other "
            "machines",
            DISTRIBUTED_ERROR,
        )
    without = notes[0]["fsdp"].get("reason")
    names = "ddp" if without else "ddp and with fsdp"
    return passes(
        f"a step with {names} leaves {world} processes with equal weights"
        + (f"; fsdp was not tested: {without}" if without else ""),
        DISTRIBUTED_ERROR.value,
        shown,
        DISTRIBUTED_ERROR,
    )


def _wrong_steps(note: JsonObject, world: int) -> list[str]:
    wrong, ddp, fsdp = [], note["ddp"], note["fsdp"]
    if "DistributedDataParallel" not in ddp["wrapper"]:
        wrong.append(f"Trainer wraps the model in {ddp['wrapper'] or 'nothing'}, not in ddp")
    for name, step in (("ddp", ddp), ("fsdp", fsdp)):
        if "reason" in step:
            continue
        if not is_number(step["loss"]) or not math.isfinite(step["loss"]):
            wrong.append(f"the loss with {name} is {step['loss']}")
        hashes = step["weights"]
        different = [rank for rank, digest in enumerate(hashes) if digest != hashes[0]]
        if different:
            ranks = ", ".join(map(str, different))
            wrong.append(f"with {name}, weights of rank {ranks} differ from those of rank 0")
        if len(hashes) != world:
            noun = "process" if len(hashes) == 1 else "processes"
            wrong.append(f"with {name}, {len(hashes)} {noun} trained instead of {world}")
    error = fsdp.get("error", 0.0)
    if not is_number(error) or not error <= DISTRIBUTED_ERROR.value:
        shown = format_number(error) if is_number(error) else error
        wrong.append(f"with fsdp, weights differ from those of a single process by {shown}")
    return wrong


def _marks(given: JudgeInput) -> Judgement:
    path, unread = given["replicas.shared_path"], given["replicas.unread_marks"]
    if path is None:
        return skipped("neither `paths.checkpoints` nor `paths.output` is declared")
    if unread:
        return fails(
            f"{path}: this machine cannot read what {', '.join(unread)} wrote"[:600],
            "readable",
            unread,
            "the folder is not writable, or it is on each machine's local disk, which is lost when "
            "the job ends",
            "use a folder in a bucket, such as /gcs/BUCKET/FOLDER",
        )
    return passes(
        f"{path}: this machine can read what each of the {_count(given)} wrote",
        "readable",
        "readable",
    )


def _identity(given: JudgeInput) -> Judgement:
    if not given["replicas.compared"]:
        return unknown("the probe does not run in a job")
    differences = given["replicas.differences"]
    if not differences:
        return passes(
            "the environment, driver and GPUs are the same on all machines", "the same", "the same"
        )
    key, values = next(iter(differences.items()))
    shown = ", ".join(f"{name}: {_to_text(value)}" for name, value in sorted(values.items()))
    more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
    return fails(
        f"the machines differ in {key}{more}: {shown}"[:600],
        "the same",
        sorted(differences),
        "the machines have different images, drivers or packages",
        "run the check again; if the driver differs, use another region or machine type",
    )


def _to_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "unknown" if value is None else str(value)


def _clocks(given: JudgeInput) -> Judgement:
    spread = given["replicas.clock_spread_s"]
    if spread is None:
        return unknown("not every machine reported its clock")
    if spread > CLOCKS_DIFFER.value:
        return fails(
            f"the clocks of the machines differ by {spread:.1f} s",
            CLOCKS_DIFFER.value,
            spread,
            "a machine's clock is not synchronized",
            "run the job again on other machines",
        )
    sizes = given["replicas.shm_bytes"]
    required = given.expected.requires.shm_bytes
    known = {name: size for name, size in sizes.items() if isinstance(size, int)}
    short = sorted(name for name in sizes if known.get(name, 0) < (required or 0))
    if required and short:
        return fails(
            f"/dev/shm on {', '.join(short)} is smaller than {format_bytes(required)}",
            required,
            min(known.values(), default=0),
            "Vertex AI sets the size of /dev/shm, and it cannot be configured",
            "lower `requires.shm`, and use fewer DataLoader workers",
        )
    shown = format_bytes(min(known.values())) if known else "unknown"
    return passes(
        f"clocks differ by {spread:.2f} s; /dev/shm is {shown} or more",
        CLOCKS_DIFFER.value,
        round(spread, 3),
    )


JUDGES = {
    "G01": _presence,
    "G02": _sums,
    "G03": _bandwidth,
    "G04": _links,
    "G05": _training,
    "G06": _identity,
    "G07": _marks,
    "G08": _clocks,
}
