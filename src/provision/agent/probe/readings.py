"""Published readings and their classes, as data."""

from __future__ import annotations

from .model import ObservedValues, Reading, ReadingClass

PUBLISHED_PATTERNS: dict[ReadingClass, tuple[str, ...]] = {
    ReadingClass.IDENTITY: (
        "os.id",
        "os.version",
        "host.glibc",
        "host.platform",
        "python.minor",
        "python.implementation",
        "packages.digest",
        "package.*",
        "torch.version",
        "torch.cuda",
        "gpu.count",
        "gpu.name",
        "gpu.compute_capability",
        "driver.major",
        "nvml.count",
    ),
    ReadingClass.IDENTITY_WEAK: (
        "python.version",
        "torch.git",
        "torch.mkl",
        "torch.libraries",
        "driver.version",
    ),
    ReadingClass.EXACT: (
        "rng.*",
        "train.weights_sha",
        "train.repeat_sha",
        "resume.weights_sha",
    ),
    ReadingClass.MEASUREMENT: (
        "numerics.fp32_error",
        "numerics.bf16_error",
        "speed.*",
        "burn.*",
        "several.bus_gb_s",
        "compile.error",
        "train.loss_first",
        "train.loss_last",
        "train.product_error",
        "launch.weights_error",
        "pace.tokens_per_s",
        "rehearsal.peak_bytes",
    ),
    ReadingClass.CONTEXT: (
        "host.kernel",
        "host.kernel_kind",
        "host.place",
        "host.container",
        "host.machine",
        "clock.behind",
        "login.differs",
        "hub.offline_by",
        "net.*",
        "host.cpus",
        "host.cpu_affinity",
        "host.cpu_quota",
        "host.cpu_model",
        "host.cpu_flags",
        "host.ram_bytes",
        "host.cgroup_ram_bytes",
        "host.shm_bytes",
        "host.shm_state",
        "host.nofile",
        "host.nproc",
        "host.pids",
        "host.address_space_bytes",
        "host.file_size_bytes",
        "host.cpu_time_s",
        "folder.*",
        "path.*",
        "locale.encoding",
        "user.home_writable",
        "user.caches_in_home",
        "user.is_root",
        "user.umask",
        "env.*",
        "declared_env.*",
        "secret.*",
        "credentials.files",
        "python.made_with",
        "python.prefix_matches",
        "packages.count",
        "packages.provenance",
        "packages.unlocked",
        "packages.hidden_by_working_folder",
        "packages.duplicates",
        "packages.elsewhere",
        "packages.shadowed",
        "packages.unmet",
        "packages.unmet_unlocked",
        "packages.unread",
        "packages.files",
        "packages.altered",
        "packages.without_record",
        "packages.never_fitted",
        "packages.stray_pth",
        "packages.stray",
        "libraries.*",
        "torch.cpu_capability",
        "torch.arch_list",
        "torch.flags",
        "gpu.formats",
        "gpu.available",
        "gpu.why",
        "gpu.errors",
        "gpu.cuda_code",
        "gpu.vram_bytes",
        "driver.cuda",
        "driver.error",
        "driver.by",
        "nvml.*",
        "dcgm.*",
        "numerics.device",
        "numerics.*",
        "attention.*",
        "memory.*",
        "link.gb_s",
        "burn.other_results",
        "several.*",
        "compile.*",
        "loaders.*",
        "train.*",
        "launch.*",
        "pace.*",
        "rehearsal.*",
    ),
    ReadingClass.NOISE: (
        "net.skew_s",
        "host.shm_free_bytes",
        "disk.*",
        "nvml.used_bytes",
        "nvml.reasons",
        "nvml.holders",
        # Of several cards each one's; the worst is under the key itself, and is compared.
        "cards.*",
        "memory.free_bytes",
        "memory.held_bytes",
        "memory.wanted_bytes",
        "burn.reasons",
        "burn.temperature_c",
        "compile.compile_s",
        "train.run_s",
        "resume.run_s",
        "launch.run_s",
        "rehearsal.memory_bytes",
        "rehearsal.step_s",
    ),
}
READING_CLASSES: dict[str, ReadingClass] = {
    pattern: kind for kind, patterns in PUBLISHED_PATTERNS.items() for pattern in patterns
}
"""The published readings by key or pattern; the longest matching pattern counts."""


def class_of_reading(key: str) -> ReadingClass | None:
    """Return the class of a reading; None for keys with "_", which only judges see."""
    matching = [
        pattern
        for pattern in READING_CLASSES
        if key == pattern or (pattern.endswith(".*") and key.startswith(pattern[:-1]))
    ]
    return READING_CLASSES[max(matching, key=len)] if matching else None


def published_readings(seen: ObservedValues) -> list[Reading]:
    """The published readings, sorted by key."""
    classes = ((key, class_of_reading(key)) for key in sorted(seen))
    return [Reading(key, seen[key], kind) for key, kind in classes if kind is not None]
