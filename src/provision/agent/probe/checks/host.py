"""Checks of the host, its paths, variables, secrets and network."""

from __future__ import annotations

from ..model import Check, Threshold, Tier

GIB = 1024**3
SHM_FLOOR = Threshold(
    GIB,
    "bytes",
    "own choice: containers start with 64 MiB (docker run --shm-size), one batch per "
    "worker has to fit",
)
NOFILE_FLOOR = Threshold(
    4096,
    "files",
    "own choice: a limit of 256 breaks DataLoader workers while 1000 batches are kept",
)
RAM_SHARE = Threshold(
    0.95,
    "of the declared bytes",
    "own choice: MemTotal leaves out what the kernel reserves (Linux, filesystems/proc)",
)
SHM_FREE = Threshold(
    0.5,
    "of the bytes that are asked for",
    "own choice: what other programs hold there at this moment may come and go",
)
DISK_FLOOR = Threshold(
    GIB / 2, "bytes", "own choice: a first run writes caches, logs and a checkpoint"
)
CHECKPOINT = Threshold(
    12,
    "bytes a parameter",
    "weights and AdamW's two moments in fp32, as Trainer writes them into a checkpoint",
)
PROCESS_FLOOR = Threshold(
    512,
    "processes and threads",
    "own choice: torch starts a thread a CPU, once more in each DataLoader worker",
)
CLOCK_SKEW = Threshold(
    300,
    "seconds",
    "own choice: certificates and signed requests are refused soon after (Google and "
    "Amazon allow 5 to 15 minutes)",
)
KERNEL_FLOOR = Threshold(
    5.5, "kernel release", "accelerate, check_os_kernel: older kernels can make a process hang"
)

_NEVER = ""
_LIMITS = (
    "host.pids",
    "host.nproc",
    "host.address_space_bytes",
    "host.file_size_bytes",
    "host.cpu_time_s",
)

CHECKS: tuple[Check, ...] = (
    Check(
        "H01",
        "host",
        "operating system",
        "host",
        ("host.platform", "os.id", "os.version"),
        Tier.INVENTORY,
    ),
    Check(
        "H02",
        "host",
        "C library",
        "host",
        ("host.glibc", "os.version"),
        Tier.INVENTORY,
        required_by="glibc_min",
    ),
    Check(
        "H03",
        "host",
        "kernel",
        "host",
        ("host.kernel", "host.kernel_kind"),
        Tier.INVENTORY,
        required_by=_NEVER,
        threshold=KERNEL_FLOOR,
    ),
    Check(
        "H04",
        "host",
        "CPU share",
        "host",
        ("host.cpus", "host.cpu_affinity", "host.cpu_quota"),
        Tier.INVENTORY,
        required_by="",
    ),
    Check(
        "H05",
        "host",
        "memory",
        "host",
        ("host.ram_bytes", "host.cgroup_ram_bytes"),
        Tier.INVENTORY,
        required_by="requires.ram_bytes",
        threshold=RAM_SHARE,
    ),
    Check(
        "H06",
        "host",
        "disk space",
        "host",
        ("disk.*",),
        Tier.INVENTORY,
        required_by="requires.disk_bytes",
    ),
    Check(
        "H07",
        "host",
        "shared memory",
        "host",
        ("host.shm_bytes", "host.shm_state"),
        Tier.INVENTORY,
        required_by="requires.shm_bytes",
        threshold=SHM_FLOOR,
    ),
    Check(
        "H08",
        "host",
        "open files",
        "host",
        ("host.nofile",),
        Tier.INVENTORY,
        required_by="",
        threshold=NOFILE_FLOOR,
    ),
    Check(
        "H12",
        "host",
        "limits of programs",
        "host",
        _LIMITS,
        Tier.INVENTORY,
        required_by="",
        threshold=PROCESS_FLOOR,
    ),
    Check(
        "H09",
        "host",
        "clock",
        "host",
        ("clock.behind", "net.skew_s"),
        Tier.INVENTORY,
        threshold=CLOCK_SKEW,
    ),
    Check(
        "H10",
        "host",
        "locale and home",
        "host",
        ("locale.encoding", "user.home_writable", "user.caches_in_home"),
        Tier.INVENTORY,
        required_by="",
    ),
    Check(
        "H11",
        "host",
        "kind of place",
        "host",
        ("host.place", "host.machine", "host.container"),
        Tier.INVENTORY,
        required_by=_NEVER,
    ),
    Check(
        "W01", "paths", "declared paths", "host", ("path.*",), Tier.INVENTORY, required_by="paths"
    ),
    Check(
        "W03",
        "paths",
        "temporary folder and caches",
        "host",
        ("folder.*",),
        Tier.INVENTORY,
        required_by=_NEVER,
    ),
    Check(
        "W02",
        "paths",
        "a new login shell",
        "host",
        ("login.differs",),
        Tier.DEEP,
        required_by=_NEVER,
    ),
    Check(
        "E01",
        "environment",
        "harmful variables",
        "host",
        ("env.*",),
        Tier.INVENTORY,
        required_by="",
    ),
    Check(
        "E02",
        "environment",
        "declared variables",
        "host",
        ("declared_env.*",),
        Tier.INVENTORY,
        required_by="env",
    ),
    Check(
        "E03",
        "environment",
        "kept offline",
        "host",
        ("hub.offline_by",),
        Tier.INVENTORY,
        required_by=_NEVER,
    ),
    Check(
        "Y01",
        "secrets",
        "declared secrets",
        "host",
        ("secret.*",),
        Tier.INVENTORY,
        required_by="secrets",
    ),
    Check(
        "Y02",
        "secrets",
        "files of credentials",
        "host",
        ("credentials.files",),
        Tier.INVENTORY,
        required_by=_NEVER,
    ),
    Check(
        "X01",
        "network",
        "way to the hub",
        "host",
        ("net.reached", "net.problem", "net.proxy"),
        Tier.DEEP,
        required_by=_NEVER,
    ),
    Check(
        "X02",
        "network",
        "answer of the hub",
        "host",
        ("net.status", "net.reached"),
        Tier.DEEP,
        after=("X01",),
        required_by=_NEVER,
    ),
)
