"""Judges the host: system, C library, CPU, memory, disk, shared memory, limits, locale."""

from __future__ import annotations

from ...core.versions import specifier_allows
from ..byte_sizes import format_bytes
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
        f"this machine is {observed}, but the lock is for {expected}",
        expected,
        observed,
        "the environment was created on a platform that the lock does not cover",
        "add this platform to `platforms` in the spec and lock again, or use a machine with a "
        "platform that the lock covers",
    )


def _libc(given: JudgeInput) -> Judgement:
    needed, observed = given.expected.glibc_min, given["host.glibc"]
    if needed is None and observed is not None:
        return passes(
            f"glibc {observed}; no locked wheel requires a minimum version", None, observed
        )
    if needed is None:
        return skipped("no locked wheel requires glibc, and this system has none")
    if observed is None:
        return fails(
            f"glibc >= {needed} is required, but this system has no glibc",
            f">={needed}",
            None,
            "the system uses a different C library (Alpine uses musl) or is not Linux, so "
            "manylinux wheels cannot be loaded",
            "use an image with glibc, such as Debian or Ubuntu",
        )
    if specifier_allows(f">={needed}", observed):
        return passes(f"glibc {observed} >= {needed}", f">={needed}", observed)
    return fails(
        f"glibc {observed} is older than {needed}, which the locked wheels require",
        f">={needed}",
        observed,
        "the system image is too old for the wheels",
        "use a newer image, or lock versions whose wheels have an older manylinux tag",
    )


def _cpu(given: JudgeInput) -> Judgement:
    cpus, workers = given["host.cpus"], given.expected.training.dataloader_workers
    if not workers:
        return passes(f"{cpus:g} CPUs (no DataLoader workers declared)", None, cpus)
    if workers <= cpus:
        return passes(f"{cpus:g} CPUs for {workers} DataLoader workers", workers, cpus)
    quota = given.get("host.cpu_quota")
    return fails(
        f"{workers} DataLoader workers are declared, but this process has only {cpus:g} CPUs",
        workers,
        cpus,
        "the container limits the CPUs"
        if quota
        else "the machine has fewer CPUs, or the CPU affinity excludes some",
        "lower `training.dataloader_workers`, or use a machine type with more CPUs",
        Threshold(
            workers, "CPUs", "PyTorch's DataLoader warns if there are more workers than CPUs"
        ),
    )


def _memory(given: JudgeInput) -> Judgement:
    total, limit = given["host.ram_bytes"], given["host.cgroup_ram_bytes"]
    needed = given.expected.requires.ram_bytes
    contained = limit is not None and limit < total
    available = limit if contained else total
    if needed is None:
        return skipped(f"no minimum is declared; {format_bytes(available)} is available", available)
    if available >= needed * (1 if contained else RAM_SHARE.value):
        return passes(
            f"{format_bytes(available)} of RAM, {format_bytes(needed)} required",
            needed,
            available,
        )
    holder = "the machine has only"
    cause = "the machine is smaller than declared"
    fix = "use a machine type with more memory, or lower `requires.ram`"
    if contained:
        holder = "the container can use only"
        cause = "the container has a memory limit, and a process that exceeds it is killed"
        fix = "raise the container's memory limit"
    return fails(
        f"{format_bytes(needed)} of RAM is required, but {holder} {format_bytes(available)}",
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
            f"no more files can be created in {', '.join(full)}",
            "free inodes",
            0,
            "the file system has no free inodes, although it has free space, and reports 'No "
            "space left on device'",
            "delete small files (caches, old checkpoints) on the disk that `df -i` shows as full",
        )
    if needed is None:
        return _disk_undeclared(given, free)
    known = {name: value for name, value in free.items() if value is not None}
    unread = [name for name, value in declared.items() if value is None]
    short = {name: value for name, value in known.items() if value < needed}
    low = ", ".join(f"{name} ({format_bytes(value)})" for name, value in short.items())
    message = f"{format_bytes(needed)} of free disk space is required, but less is free in {low}"
    bound = Threshold(needed, "bytes", "requires.disk in the spec")
    if any(name in declared for name in short):
        return fails(
            message,
            needed,
            short,
            "the disk is full or too small",
            "free up space, or use a larger disk",
            bound,
        )
    if unread:
        return unknown(f"the free space of {', '.join(unread)} could not be read", needed)
    if short:
        return warns(
            message,
            needed,
            short,
            "these folders are on a smaller disk",
            "set TMPDIR or HF_HOME to a folder on the larger disk",
            bound,
        )
    return passes(
        f"at least {format_bytes(needed)} free in every folder",
        needed,
        known,
        bound,
    )


def _disk_undeclared(given: JudgeInput, free: dict[str, int | None]) -> Judgement:
    """Judge free space without a declared size: a checkpoint fits, and a little is left."""
    message = {name: format_bytes(value) for name, value in free.items() if value is not None}
    model = given.expected.training.model
    left = free.get("path.output" if "path.output" in free else "working")
    checkpoint = int((model.parameters if model and model.parameters else 0) * CHECKPOINT.value)
    if given.expected.training.method == "full" and left is not None and left < checkpoint:
        return warns(
            f"only {format_bytes(left)} is free on the disk with the output folder, but "
            f"one checkpoint of the declared model takes {format_bytes(checkpoint)}",
            checkpoint,
            left,
            "the disk is full, or too small for the model",
            "free up space, or set `paths: {output: ...}` to a folder on a larger disk",
            Threshold(checkpoint, "bytes", f"12 bytes per parameter: {CHECKPOINT.source}"),
        )
    low = {
        name: value
        for name, value in free.items()
        if value is not None and value < DISK_FLOOR.value
    }
    if low:
        return warns(
            f"low disk space: {', '.join(f'{name} {message[name]}' for name in low)}",
            DISK_FLOOR.value,
            low,
            "the disk is full, or these folders are on a small one",
            "free up space, or set TMPDIR or HF_HOME to a folder on a larger disk",
            DISK_FLOOR,
        )
    return skipped("no minimum declared", message)


def _shared_memory(given: JudgeInput) -> Judgement:
    observed, needed = given["host.shm_bytes"], given.expected.requires.shm_bytes
    if not given["_shm.applies"]:
        return skipped("this system has no /dev/shm")
    floor = needed if needed is not None else int(SHM_FLOOR.value)
    if needed is None and given.expected.training.dataloader_workers == 0:
        return skipped(
            f"no minimum and no DataLoader workers are declared; {format_bytes(observed)} is "
            "available",
            observed,
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
            "/dev/shm is not mounted, is mounted read-only, or its permissions are not 1777; "
            "multiprocessing needs it for workers and locks",
            "run `mount -t tmpfs -o size=2g tmpfs /dev/shm; chmod 1777 /dev/shm`, or start the "
            "container with --shm-size",
        )
    if observed >= floor and left < floor * SHM_FREE.value:
        return fails(
            f"/dev/shm has {format_bytes(observed)}, of which only {format_bytes(left)} is free; "
            f"{format_bytes(floor)} is required",
            floor,
            left,
            "another program is using it, or killed programs left files in it",
            "list its files with `ls -l /dev/shm`, and delete any torch_* and psm_* files that "
            "no program is using",
            SHM_FREE,
        )
    if observed >= floor:
        return passes(
            f"/dev/shm has {format_bytes(observed)}, {format_bytes(floor)} required",
            floor,
            observed,
        )
    return fails(
        f"/dev/shm has only {format_bytes(observed)}, but {format_bytes(floor)} is "
        f"{'required' if needed is not None else 'recommended for DataLoader workers'}",
        floor,
        observed,
        "containers have 64 MiB by default; a worker whose batch does not fit "
        "dies with a bus error",
        "start the container with --shm-size, or call "
        "torch.multiprocessing.set_sharing_strategy('file_system')",
        None if needed is None else Threshold(needed, "bytes", "requires.shm in the spec"),
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
        f"only {limit} open files are allowed, but {NOFILE_FLOOR.value:g} are recommended "
        "for DataLoader workers",
        NOFILE_FLOOR.value,
        limit,
        "each tensor that a worker returns keeps a file open, which leads to 'Too many open files'",
        "run `ulimit -n 65536`, or set torch.multiprocessing's sharing strategy to 'file_system'",
    )


_NO_LIMIT = "no low limit"


def _limits(given: JudgeInput) -> Judgement:
    seen, message = given.seen, []
    started = [seen[key] for key in ("host.pids", "host.nproc") if seen[key] is not None]
    if seen["host.address_space_bytes"] is not None:
        message.append(
            f"{format_bytes(seen['host.address_space_bytes'])} of address space (ulimit -v): "
            "CUDA and memory-mapped models reserve far more than they use"
        )
    if seen["host.file_size_bytes"] is not None:
        message.append(
            f"files of {format_bytes(seen['host.file_size_bytes'])} (ulimit -f): writing a "
            "larger checkpoint kills the program (SIGXFSZ)"
        )
    if seen["host.cpu_time_s"] is not None:
        message.append(
            f"{seen['host.cpu_time_s']} s of CPU time (ulimit -t): the program is then killed "
            "(SIGXCPU)"
        )
    if started and min(started) < PROCESS_FLOOR.value:
        message.append(f'{min(started)} processes and threads: "can\'t start new thread"')
    if not message:
        return passes(
            "no limit on address space, file size or CPU time, and a high enough limit on "
            "processes and threads",
            _NO_LIMIT,
            f"{min(started)} processes and threads" if started else "none",
        )
    return warns(
        f"programs are limited to {format_list(message)}",
        _NO_LIMIT,
        message,
        "the limits are set by the shell (ulimit), by the service that starts the program, or by "
        "the container (--pids-limit)",
        "raise the limits with `ulimit -v unlimited -f unlimited -t unlimited`, or start the "
        "container with --pids-limit -1",
    )


def _person(given: JudgeInput) -> Judgement:
    encoding, writable = given["locale.encoding"], given["user.home_writable"]
    if encoding.replace("-", "").replace("_", "") != "utf8":
        return fails(
            f"text files are read as {encoding}",
            "UTF-8",
            encoding,
            "the locale is not UTF-8, so datasets may be decoded incorrectly or fail to decode",
            "set LANG=C.UTF-8 or PYTHONUTF8=1",
        )
    if not writable:
        caches = given.get("user.caches_in_home", ["torch", "Hugging Face"])
        if not caches:
            return passes(
                "UTF-8; the home folder is not writable, but environment variables "
                "redirect the caches to other folders",
                "UTF-8",
                encoding,
            )
        return fails(
            "the home folder is not writable",
            "writable",
            "not writable",
            "the home folder is missing or read-only, and these caches are in "
            f"it: {', '.join(caches)}",
            "set HOME to a writable folder, or set "
            f"{', '.join(_CACHE_VARIABLES[name] for name in caches)} to one",
        )
    return passes(
        "the text encoding is UTF-8, and the home folder is writable",
        "UTF-8, writable",
        f"{encoding}, writable",
    )


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
