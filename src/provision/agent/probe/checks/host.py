"""Checks of the host, its paths, variables, secrets and network."""

from __future__ import annotations

from functools import partial

from ..model import Check, Need, Threshold, Tier

GIB = 1024**3
SHM_FLOOR = Threshold(
    GIB,
    "bytes",
    "own choice: containers have 64 MiB by default (docker run --shm-size), and one batch "
    "per worker must fit",
)
NOFILE_FLOOR = Threshold(
    4096,
    "files",
    "own choice: with a limit of 256, DataLoader workers fail when 1000 batches are kept",
)
RAM_SHARE = Threshold(
    0.95,
    "of the declared bytes",
    "own choice: MemTotal leaves out what the kernel reserves (Linux, filesystems/proc)",
)
SHM_FREE = Threshold(
    0.5,
    "of the required bytes",
    "own choice: what other programs use there at the moment may be temporary",
)
DISK_FLOOR = Threshold(
    GIB / 2, "bytes", "own choice: a first run writes caches, logs and a checkpoint"
)
CHECKPOINT = Threshold(
    12,
    "bytes per parameter",
    "weights and AdamW's two moments in fp32, as Trainer writes them into a checkpoint",
)
PROCESS_FLOOR = Threshold(
    512,
    "processes and threads",
    "own choice: torch starts one thread per CPU, and again in each DataLoader worker",
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

_LIMITS = (
    "host.pids",
    "host.nproc",
    "host.address_space_bytes",
    "host.file_size_bytes",
    "host.cpu_time_s",
)

_host = partial(Check, group="host", stage="host", tier=Tier.INVENTORY)
CHECKS = (
    _host("H01", title="operating system", causes=("host.platform", "os.id", "os.version")),
    _host("H02", title="C library", causes=("host.glibc", "os.version"), required_by="glibc_min"),
    _host(
        "H03",
        title="kernel",
        causes=("host.kernel", "host.kernel_kind"),
        required_by="",
        threshold=KERNEL_FLOOR,
    ),
    _host(
        "H04",
        title="CPUs",
        causes=("host.cpus", "host.cpu_affinity", "host.cpu_quota"),
        required_by="",
    ),
    _host(
        "H05",
        title="memory",
        causes=("host.ram_bytes", "host.cgroup_ram_bytes"),
        required_by="requires.ram_bytes",
        threshold=RAM_SHARE,
    ),
    _host("H06", title="disk space", causes=("disk.*",), required_by="requires.disk_bytes"),
    _host(
        "H07",
        title="shared memory",
        causes=("host.shm_bytes", "host.shm_state"),
        required_by="requires.shm_bytes",
        threshold=SHM_FLOOR,
    ),
    _host(
        "H08", title="open files", causes=("host.nofile",), required_by="", threshold=NOFILE_FLOOR
    ),
    _host("H12", title="process limits", causes=_LIMITS, required_by="", threshold=PROCESS_FLOOR),
    _host(
        "H13",
        title="processor instructions",
        causes=("host.cpu_flags", "host.cpu_model"),
        needs=(Need.INSTRUCTIONS,),
        quiet=True,
    ),
    _host("H09", title="clock", causes=("clock.behind", "net.skew_s"), threshold=CLOCK_SKEW),
    _host(
        "H10",
        title="locale and home",
        causes=("locale.encoding", "user.home_writable", "user.caches_in_home"),
        required_by="",
    ),
    _host(
        "H11",
        title="machine and platform",
        causes=("host.place", "host.machine", "host.container"),
        required_by="",
    ),
    _host("W01", group="paths", title="declared paths", causes=("path.*",), required_by="paths"),
    _host(
        "W03",
        group="paths",
        title="temporary and cache folders",
        causes=("folder.*",),
        required_by="",
    ),
    _host(
        "W02",
        group="paths",
        title="login shell",
        causes=("login.differs",),
        tier=Tier.DEEP,
        required_by="",
    ),
    _host("E01", group="environment", title="harmful variables", causes=("env.*",), required_by=""),
    _host(
        "E02",
        group="environment",
        title="declared variables",
        causes=("declared_env.*",),
        required_by="env",
    ),
    _host(
        "E03",
        group="environment",
        title="offline variables",
        causes=("hub.offline_by",),
        required_by="",
    ),
    _host(
        "Y01",
        group="secrets",
        title="declared secrets",
        causes=("secret.*",),
        required_by="secrets",
    ),
    _host(
        "Y02",
        group="secrets",
        title="credential files",
        causes=("credentials.files",),
        required_by="",
    ),
    _host(
        "X01",
        group="network",
        title="connection to the Hub",
        causes=("net.reached", "net.problem", "net.proxy"),
        tier=Tier.DEEP,
        required_by="",
    ),
    _host(
        "X02",
        group="network",
        title="response of the Hub",
        causes=("net.status", "net.reached"),
        tier=Tier.DEEP,
        after=("X01",),
        required_by="",
    ),
)
