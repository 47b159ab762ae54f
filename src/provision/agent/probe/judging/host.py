"""Judges the host: system, C library, CPU, memory, disk, shared memory, limits, locale."""

from __future__ import annotations

from ...core.versions import specifier_allows
from ..checks.host import (
    CHECKPOINT,
    DISK_FLOOR,
    NOFILE_FLOOR,
    PROCESS_FLOOR,
    RAM_SHARE,
    SHM_FLOOR,
    SHM_FREE,
)
from ..model import Judgement, Threshold
from .judgement import (
    JudgeInput,
    fails,
    format_bytes,
    format_list,
    passes,
    skipped,
    unknown,
    warns,
)


def _system(given: JudgeInput) -> Judgement:
    expected, observed = given.expected.platform, given["host.platform"]
    if observed == expected:
        return passes(
            f"{given['os.id']} {given['os.version']} on {observed}",
            expected,
            observed,
        )
    return fails(
        f"this machine is {observed}, the lock is for {expected}",
        expected,
        observed,
        "the environment was made on another kind of machine than the lock's",
        "lock for this platform too (platforms: in the spec), or use a machine of the "
        "locked platform",
    )


def _libc(given: JudgeInput) -> Judgement:
    needed, observed = given.expected.glibc_min, given["host.glibc"]
    if needed is None and observed is not None:
        return passes(f"glibc {observed}; no locked wheel names an oldest one", None, observed)
    if needed is None:
        return skipped("no locked wheel asks for a glibc version, and this system has none")
    if observed is None:
        return fails(
            f"glibc >= {needed} is needed, none was found",
            f">={needed}",
            None,
            "this system has no glibc (musl, as in Alpine, or not Linux); manylinux wheels do "
            "not load here",
            "use an image with glibc, such as Debian or Ubuntu",
        )
    if specifier_allows(f">={needed}", observed):
        return passes(f"glibc {observed} >= {needed}", f">={needed}", observed)
    return fails(
        f"glibc {observed} < {needed}, which the locked wheels need",
        f">={needed}",
        observed,
        "the system image is older than the wheels allow",
        "use a newer image, or lock versions whose wheels carry an older manylinux tag",
    )


def _cpu(given: JudgeInput) -> Judgement:
    cpus, workers = given["host.cpus"], given.expected.training.dataloader_workers
    if workers <= cpus:
        return passes(f"{cpus:g} CPUs for {workers} DataLoader workers", workers or None, cpus)
    quota = given.get("host.cpu_quota")
    return fails(
        f"{workers} DataLoader workers are declared, this process gets {cpus:g} CPUs",
        workers,
        cpus,
        "a control group limits the CPU share"
        if quota
        else "the machine, or the CPU affinity, gives fewer CPUs",
        "lower training.dataloader_workers or take a machine type with more CPUs",
        Threshold(
            workers, "CPUs", "PyTorch's DataLoader warns when it gets more workers than CPUs"
        ),
    )


def _memory(given: JudgeInput) -> Judgement:
    total, limit = given["host.ram_bytes"], given["host.cgroup_ram_bytes"]
    needed = given.expected.requires.ram_bytes
    contained = limit is not None and limit < total
    available = limit if contained else total
    if needed is None:
        return skipped(f"nothing declared; {format_bytes(available)} here", available)
    if available >= needed * (1 if contained else RAM_SHARE.value):
        return passes(
            f"{format_bytes(available)} of memory, {format_bytes(needed)} declared",
            needed,
            available,
        )
    holder = "the machine has"
    cause = "the machine is smaller than declared"
    fix = "take a machine type with more memory, or lower requires.ram"
    if contained:
        holder = "the container may use"
        cause = "a memory limit of the container: beyond it the process is killed"
        fix = "raise the container's memory limit"
    return fails(
        f"{format_bytes(needed)} of memory declared, {holder} {format_bytes(available)}",
        needed,
        available,
        cause,
        fix,
    )


def _disk(given: JudgeInput) -> Judgement:
    needed = given.expected.requires.disk_bytes
    free = {
        key.removeprefix("disk.").removesuffix(".free_bytes"): value
        for key, value in given.seen.items()
        if key.startswith("disk.") and key.endswith(".free_bytes")
    }
    declared = {name: value for name, value in free.items() if name.startswith("path.")}
    if not declared:
        # A size without declared paths is about the environment, or about where a run writes if
        # that is mounted read-only.
        folders = ("environment", "working", "hf_cache")
        folder = next((name for name in folders if name in free), "environment")
        declared = {folder: free.get(folder)}
    # Installed packages take no further file; without another place, a run writes there too.
    if "environment" not in declared:
        free.pop("environment", None)
    if full := [name for name in sorted(free) if given.get(f"disk.{name}.free_files") == 0]:
        return fails(
            f"no further file can be made at {', '.join(full)}",
            "some",
            0,
            "its table of files is full, although bytes may be free: 'No space left on device'",
            "remove small files there (caches, old checkpoints): df -i tells which disk",
        )
    if needed is None:
        return _disk_undeclared(given, free)
    blind = [name for name, value in declared.items() if value is None]
    short = {name: value for name, value in free.items() if value is not None and value < needed}
    message = ", ".join(f"{name} {format_bytes(value)}" for name, value in short.items())
    if any(name in declared for name in short):
        return fails(
            f"{format_bytes(needed)} free disk declared, there is less at {message}",
            needed,
            short,
            "the disk is too small or full",
            "free space, or make the disk larger",
        )
    if blind:
        return unknown(f"free space could not be read at {', '.join(blind)}", needed)
    if short:
        return warns(
            f"{format_bytes(needed)} free disk declared, there is less at {message}",
            needed,
            short,
            "these folders lie on a smaller disk",
            "point TMPDIR or HF_HOME at the larger disk",
        )
    return passes(
        f"at least {format_bytes(needed)} free at every declared place",
        needed,
        {name: value for name, value in free.items() if value is not None},
    )


def _disk_undeclared(given: JudgeInput, free: dict[str, int | None]) -> Judgement:
    """Judge free space without a declared size: a checkpoint fits, and a little is left."""
    message = {name: format_bytes(value) for name, value in free.items() if value is not None}
    model = given.expected.training.model
    left = free.get("path.output" if "path.output" in free else "working")
    checkpoint = int((model.parameters if model and model.parameters else 0) * CHECKPOINT.value)
    if given.expected.training.method == "full" and left is not None and left < checkpoint:
        return warns(
            f"{format_bytes(left)} are free where a run writes, one checkpoint of the declared "
            f"model takes {format_bytes(checkpoint)}",
            checkpoint,
            left,
            "the disk is too small for the model, or full",
            "free space, or declare a larger disk as paths: {output: ...} and requires.disk",
            CHECKPOINT,
        )
    low = {
        name: value
        for name, value in free.items()
        if value is not None and value < DISK_FLOOR.value
    }
    if low:
        return warns(
            f"little disk is left: {', '.join(f'{name} {message[name]}' for name in low)}",
            DISK_FLOOR.value,
            low,
            "the disk is full, or these folders lie on a small one",
            "free space, or point TMPDIR or HF_HOME at a larger disk",
            DISK_FLOOR,
        )
    return skipped("nothing declared", message)


def _shared_memory(given: JudgeInput) -> Judgement:
    observed, needed = given["host.shm_bytes"], given.expected.requires.shm_bytes
    if not given["_shm.applies"]:
        return skipped("this system has no /dev/shm")
    floor = needed if needed is not None else int(SHM_FLOOR.value)
    if needed is None and given.expected.training.dataloader_workers == 0:
        return skipped(
            f"nothing declared and no DataLoader workers; {format_bytes(observed)} here", observed
        )
    state, left = (
        given.get("host.shm_state", "writable"),
        given.get("host.shm_free_bytes", observed),
    )
    if state != "writable":
        return fails(
            f"/dev/shm is {state}",
            "writable",
            state,
            "it is not mounted here, is mounted read-only, or its permissions are not 1777; "
            "workers and locks of multiprocessing need it",
            "mount -t tmpfs -o size=2g tmpfs /dev/shm; chmod 1777 /dev/shm; or start the "
            "container with --shm-size",
        )
    if observed >= floor and left < floor * SHM_FREE.value:
        return fails(
            f"/dev/shm has {format_bytes(observed)}, of which {format_bytes(left)} are free; "
            f"{format_bytes(floor)} needed",
            floor,
            left,
            "another program uses it, or files of programs that were killed are left there",
            "look at ls -l /dev/shm, and remove what no program uses (torch_*, psm_*)",
            SHM_FREE,
        )
    if observed >= floor:
        return passes(
            f"/dev/shm has {format_bytes(observed)}, {format_bytes(floor)} needed", floor, observed
        )
    return fails(
        f"/dev/shm has {format_bytes(observed)}, {format_bytes(floor)} "
        f"{'declared' if needed is not None else 'advised for DataLoader workers'}",
        floor,
        observed,
        "containers start with 64 MiB; worker batches that do not fit die with a bus error",
        "start the container with --shm-size, or use "
        "torch.multiprocessing.set_sharing_strategy('file_system')",
        None if needed is None else Threshold(needed, "bytes", "requires.shm of the spec"),
    )


def _open_files(given: JudgeInput) -> Judgement:
    limit, workers = given["host.nofile"], given.expected.training.dataloader_workers
    if workers == 0 or limit is None:
        return skipped(
            "no DataLoader workers declared" if workers == 0 else "this system has no such limit",
            limit,
        )
    # RLIM_INFINITY is -1 in Python.
    if limit < 0 or limit >= NOFILE_FLOOR.value:
        message = "unlimited" if limit < 0 else limit
        return passes(f"{message} open files allowed", NOFILE_FLOOR.value, message)
    return fails(
        f"{limit} open files allowed, {NOFILE_FLOOR.value:g} advised with DataLoader workers",
        NOFILE_FLOOR.value,
        limit,
        "each tensor that a worker hands over keeps a file open: 'Too many open files'",
        "ulimit -n 65536, or the sharing strategy 'file_system'",
    )


def _limits(given: JudgeInput) -> Judgement:
    seen, message = given.seen, []
    started = [seen[key] for key in ("host.pids", "host.nproc") if seen[key] is not None]
    if seen["host.address_space_bytes"] is not None:
        message.append(
            f"{format_bytes(seen['host.address_space_bytes'])} of addresses (ulimit -v): "
            "CUDA and mapped models reserve far more than they use"
        )
    if seen["host.file_size_bytes"] is not None:
        message.append(
            f"files of {format_bytes(seen['host.file_size_bytes'])} (ulimit -f): writing a "
            "larger checkpoint ends the program (SIGXFSZ)"
        )
    if seen["host.cpu_time_s"] is not None:
        message.append(
            f"{seen['host.cpu_time_s']} s of CPU (ulimit -t): the program is ended after "
            "them (SIGXCPU)"
        )
    if started and min(started) < PROCESS_FLOOR.value:
        message.append(f'{min(started)} processes and threads: "can\'t start new thread"')
    if not message:
        return passes(
            "no limit on addresses, files or CPU time, and enough processes and threads",
            "none",
            min(started, default="none"),
        )
    return warns(
        f"programs are limited to {format_list(message)}",
        "none",
        message,
        "the shell (ulimit), the service that starts the program, or the container "
        "(--pids-limit) sets them",
        "raise them: ulimit -v unlimited -f unlimited -t unlimited; --pids-limit -1",
    )


def _person(given: JudgeInput) -> Judgement:
    encoding, writable = given["locale.encoding"], given["user.home_writable"]
    if encoding.replace("-", "").replace("_", "") != "utf8":
        return fails(
            f"text files are read as {encoding}",
            "utf-8",
            encoding,
            "the locale is not UTF-8, so data sets decode differently or fail",
            "set LANG=C.UTF-8 or PYTHONUTF8=1",
        )
    if not writable:
        caches = given.get("user.caches_in_home", ["torch", "Hugging Face"])
        if not caches:
            return passes(
                "UTF-8; the home folder cannot be written, and variables take the caches elsewhere",
                "utf-8",
                encoding,
            )
        return fails(
            "the home folder cannot be written",
            "writable",
            "not writable",
            f"the home folder is absent or read-only, and caches go there: {', '.join(caches)}",
            "set HOME to a folder of this user, or name such a folder in "
            f"{', '.join(_CACHE_VARIABLES[name] for name in caches)}",
        )
    return passes("UTF-8 and a writable home folder", "utf-8", encoding)


_CACHE_VARIABLES = {"Hugging Face": "HF_HOME", "torch": "TORCH_HOME", "Triton": "TRITON_CACHE_DIR"}
JUDGES = {
    "H01": _system,
    "H02": _libc,
    "H04": _cpu,
    "H05": _memory,
    "H06": _disk,
    "H07": _shared_memory,
    "H08": _open_files,
    "H12": _limits,
    "H10": _person,
}
