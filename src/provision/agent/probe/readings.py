"""Which of all that observers note is published, and what a difference in it means, as data."""

from __future__ import annotations

from .model import ObservedValues, Reading, ReadingClass

_C = ReadingClass
READING_CLASSES: tuple[tuple[str, ReadingClass], ...] = (
    ("os.id", _C.IDENTITY),
    ("os.version", _C.IDENTITY),
    ("host.glibc", _C.IDENTITY),
    ("host.platform", _C.IDENTITY),
    ("host.kernel", _C.CONTEXT),
    ("host.kernel_kind", _C.CONTEXT),
    ("host.place", _C.CONTEXT),
    ("host.container", _C.CONTEXT),
    ("host.machine", _C.CONTEXT),
    ("clock.behind", _C.CONTEXT),
    ("login.differs", _C.CONTEXT),
    ("hub.offline_by", _C.CONTEXT),
    ("net.*", _C.CONTEXT),
    ("net.skew_s", _C.NOISE),
    ("host.cpus", _C.CONTEXT),
    ("host.cpu_affinity", _C.CONTEXT),
    ("host.cpu_quota", _C.CONTEXT),
    ("host.cpu_model", _C.CONTEXT),
    ("host.cpu_flags", _C.CONTEXT),
    ("host.ram_bytes", _C.CONTEXT),
    ("host.cgroup_ram_bytes", _C.CONTEXT),
    ("host.shm_bytes", _C.CONTEXT),
    ("host.shm_free_bytes", _C.NOISE),
    ("host.shm_state", _C.CONTEXT),
    ("host.nofile", _C.CONTEXT),
    ("host.nproc", _C.CONTEXT),
    ("host.pids", _C.CONTEXT),
    ("host.address_space_bytes", _C.CONTEXT),
    ("host.file_size_bytes", _C.CONTEXT),
    ("host.cpu_time_s", _C.CONTEXT),
    ("folder.*", _C.CONTEXT),
    ("disk.*", _C.NOISE),
    ("path.*", _C.CONTEXT),
    ("locale.encoding", _C.CONTEXT),
    ("user.home_writable", _C.CONTEXT),
    ("user.caches_in_home", _C.CONTEXT),
    ("user.is_root", _C.CONTEXT),
    ("user.umask", _C.CONTEXT),
    ("env.*", _C.CONTEXT),
    ("declared_env.*", _C.CONTEXT),
    ("secret.*", _C.CONTEXT),
    ("credentials.files", _C.CONTEXT),
    ("python.minor", _C.IDENTITY),
    ("python.version", _C.IDENTITY_WEAK),
    ("python.implementation", _C.IDENTITY),
    ("python.made_with", _C.CONTEXT),
    ("python.prefix_matches", _C.CONTEXT),
    ("packages.digest", _C.IDENTITY),
    ("packages.count", _C.CONTEXT),
    ("packages.provenance", _C.CONTEXT),
    ("packages.unlocked", _C.CONTEXT),
    ("packages.hidden_by_working_folder", _C.CONTEXT),
    ("packages.duplicates", _C.CONTEXT),
    ("packages.elsewhere", _C.CONTEXT),
    ("packages.shadowed", _C.CONTEXT),
    ("packages.unmet", _C.CONTEXT),
    ("packages.unmet_unlocked", _C.CONTEXT),
    ("packages.unread", _C.CONTEXT),
    ("packages.files", _C.CONTEXT),
    ("packages.altered", _C.CONTEXT),
    ("packages.without_record", _C.CONTEXT),
    ("packages.never_fitted", _C.CONTEXT),
    ("packages.stray_pth", _C.CONTEXT),
    ("packages.stray", _C.CONTEXT),
    ("package.*", _C.IDENTITY),
    ("libraries.*", _C.CONTEXT),
    ("torch.version", _C.IDENTITY),
    ("torch.cuda", _C.IDENTITY),
    ("torch.git", _C.IDENTITY_WEAK),
    ("torch.mkl", _C.IDENTITY_WEAK),
    ("torch.cpu_capability", _C.CONTEXT),
    ("torch.arch_list", _C.CONTEXT),
    ("torch.libraries", _C.IDENTITY_WEAK),
    ("torch.flags", _C.CONTEXT),
    ("gpu.formats", _C.CONTEXT),
    ("gpu.available", _C.CONTEXT),
    ("gpu.why", _C.CONTEXT),
    ("gpu.errors", _C.CONTEXT),
    ("gpu.cuda_code", _C.CONTEXT),
    ("gpu.count", _C.IDENTITY),
    ("gpu.name", _C.IDENTITY),
    ("gpu.compute_capability", _C.IDENTITY),
    ("gpu.vram_bytes", _C.CONTEXT),
    ("driver.major", _C.IDENTITY),
    ("driver.version", _C.IDENTITY_WEAK),
    ("driver.cuda", _C.CONTEXT),
    ("driver.error", _C.CONTEXT),
    ("driver.by", _C.CONTEXT),
    ("nvml.*", _C.CONTEXT),
    ("nvml.count", _C.IDENTITY),
    ("nvml.used_bytes", _C.NOISE),
    ("nvml.reasons", _C.NOISE),
    ("nvml.holders", _C.NOISE),
    ("dcgm.*", _C.CONTEXT),
    # What each of several cards gave; what the worst gave stands under the key itself, and is
    # compared.
    ("cards.*", _C.NOISE),
    ("numerics.device", _C.CONTEXT),
    ("numerics.fp32_error", _C.MEASUREMENT),
    ("numerics.bf16_error", _C.MEASUREMENT),
    ("numerics.*", _C.CONTEXT),
    ("attention.*", _C.CONTEXT),
    ("rng.*", _C.EXACT),
    ("memory.*", _C.CONTEXT),
    ("memory.free_bytes", _C.NOISE),
    ("memory.held_bytes", _C.NOISE),
    ("memory.wanted_bytes", _C.NOISE),
    ("speed.*", _C.MEASUREMENT),
    ("link.gb_s", _C.CONTEXT),
    ("burn.*", _C.MEASUREMENT),
    ("burn.reasons", _C.NOISE),
    ("burn.other_results", _C.CONTEXT),
    ("burn.temperature_c", _C.NOISE),
    ("several.*", _C.CONTEXT),
    ("several.bus_gb_s", _C.MEASUREMENT),
    ("compile.*", _C.CONTEXT),
    ("compile.error", _C.MEASUREMENT),
    ("compile.compile_s", _C.NOISE),
    ("loaders.*", _C.CONTEXT),
    ("train.loss_first", _C.MEASUREMENT),
    ("train.loss_last", _C.MEASUREMENT),
    ("train.weights_sha", _C.EXACT),
    ("train.repeat_sha", _C.EXACT),
    ("resume.weights_sha", _C.EXACT),
    ("train.*", _C.CONTEXT),
    ("train.run_s", _C.NOISE),
    ("resume.run_s", _C.NOISE),
    ("train.product_error", _C.MEASUREMENT),
    ("launch.*", _C.CONTEXT),
    ("launch.weights_error", _C.MEASUREMENT),
    ("launch.run_s", _C.NOISE),
    ("pace.*", _C.CONTEXT),
    ("pace.tokens_per_s", _C.MEASUREMENT),
    ("rehearsal.*", _C.CONTEXT),
    ("rehearsal.peak_bytes", _C.MEASUREMENT),
    ("rehearsal.memory_bytes", _C.NOISE),
    ("rehearsal.step_s", _C.NOISE),
)
"""What is published of all that observers note, and what a difference in it means; the longest
matching pattern counts, the rest stays unpublished.
"""


def class_of_reading(key: str) -> ReadingClass | None:
    """The class of a reading, or None for what observers note for the judges alone (keys that start
    with "_").
    """
    fitting = [
        (len(pattern), kind)
        for pattern, kind in READING_CLASSES
        if key == pattern or (pattern.endswith(".*") and key.startswith(pattern[:-1]))
    ]
    return (
        max(fitting, key=lambda pair: pair[0])[1] if fitting and not key.startswith("_") else None
    )


def published_readings(seen: ObservedValues) -> list[Reading]:
    """The published readings, sorted by key."""
    found = ((key, class_of_reading(key)) for key in sorted(seen))
    return [Reading(key, seen[key], kind) for key, kind in found if kind is not None]
