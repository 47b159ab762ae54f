"""Which of all that observers note is published, and what a difference in it means, as data."""

from __future__ import annotations

from .values import Reading, ReadingClass, Seen

_C = ReadingClass
READINGS: tuple[tuple[str, ReadingClass], ...] = (
    ("os.id", _C.IDENTITY),
    ("os.version", _C.IDENTITY),
    ("host.glibc", _C.IDENTITY),
    ("host.platform", _C.IDENTITY),
    ("host.kernel", _C.CONTEXT),
    ("host.cpus", _C.CONTEXT),
    ("host.cpu_affinity", _C.CONTEXT),
    ("host.cpu_quota", _C.CONTEXT),
    ("host.cpu_model", _C.CONTEXT),
    ("host.cpu_flags", _C.CONTEXT),
    ("host.ram_bytes", _C.CONTEXT),
    ("host.cgroup_ram_bytes", _C.CONTEXT),
    ("host.shm_bytes", _C.CONTEXT),
    ("host.nofile", _C.CONTEXT),
    ("disk.*", _C.NOISE),
    ("path.*", _C.CONTEXT),
    ("locale.encoding", _C.CONTEXT),
    ("user.home_writable", _C.CONTEXT),
    ("user.is_root", _C.CONTEXT),
    ("user.umask", _C.CONTEXT),
    ("env.*", _C.CONTEXT),
    ("declared_env.*", _C.CONTEXT),
    ("secret.*", _C.CONTEXT),
    ("python.minor", _C.IDENTITY),
    ("python.version", _C.IDENTITY_WEAK),
    ("python.implementation", _C.IDENTITY),
    ("python.prefix_matches", _C.CONTEXT),
    ("packages.digest", _C.IDENTITY),
    ("packages.count", _C.CONTEXT),
    ("packages.provenance", _C.CONTEXT),
    ("packages.unlocked", _C.CONTEXT),
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
    ("torch.version", _C.IDENTITY),
    ("torch.cuda", _C.IDENTITY),
    ("torch.git", _C.IDENTITY_WEAK),
    ("torch.cpu_capability", _C.CONTEXT),
    ("torch.arch_list", _C.CONTEXT),
    ("gpu.available", _C.CONTEXT),
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
    ("nvml.used_bytes", _C.NOISE),
    ("nvml.reasons", _C.NOISE),
    ("numerics.device", _C.CONTEXT),
    ("numerics.fp32_error", _C.MEASUREMENT),
    ("numerics.bf16_error", _C.MEASUREMENT),
    ("numerics.*", _C.CONTEXT),
    ("loaders.*", _C.CONTEXT),
    ("train.loss_first", _C.MEASUREMENT),
    ("train.loss_last", _C.MEASUREMENT),
    ("train.weights_sha", _C.EXACT),
    ("train.repeat_sha", _C.EXACT),
    ("resume.weights_sha", _C.EXACT),
    ("train.*", _C.CONTEXT),
    ("train.run_s", _C.NOISE),
    ("resume.run_s", _C.NOISE),
    ("rehearsal.*", _C.CONTEXT),
    ("rehearsal.peak_bytes", _C.MEASUREMENT),
    ("rehearsal.memory_bytes", _C.NOISE),
    ("rehearsal.step_s", _C.NOISE),
)
"""What is published of all that observers note, and what a difference in it means; the longest matching pattern counts, the rest stays unpublished."""


def class_of(key: str) -> ReadingClass | None:
    """The class of a reading, or None for what observers note for the judges alone (keys that start with "_")."""
    fitting = [(len(pattern), kind) for pattern, kind in READINGS if key == pattern or (pattern.endswith(".*") and key.startswith(pattern[:-1]))]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting and not key.startswith("_") else None


def readings(seen: Seen) -> list[Reading]:
    """The published readings, sorted by key."""
    found = ((key, class_of(key)) for key in sorted(seen))
    return [Reading(key, seen[key], kind) for key, kind in found if kind is not None]
