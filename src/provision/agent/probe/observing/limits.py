"""Looks at the limits under which programs run here: processes, address space, size of files,
seconds of CPU.
"""

from __future__ import annotations

from typing import Any

from . import ObserverContext
from .cgroups import process_limit

_LIMITS = {
    "host.address_space_bytes": "RLIMIT_AS",
    "host.file_size_bytes": "RLIMIT_FSIZE",
    "host.cpu_time_s": "RLIMIT_CPU",
    "host.nproc": "RLIMIT_NPROC",
}


def observe_limits(bench: ObserverContext) -> dict[str, Any]:
    """Each soft limit, None where there is none, and the processes that the control groups leave to
    start.
    """
    try:
        import resource
    except ImportError:
        return {**dict.fromkeys(_LIMITS), "host.pids": None}
    found = {
        key: resource.getrlimit(getattr(resource, name))[0]
        for key, name in _LIMITS.items()
        if hasattr(resource, name)
    }
    limits = {
        key: None if value == resource.RLIM_INFINITY else value for key, value in found.items()
    }
    return {**dict.fromkeys(_LIMITS), **limits, "host.pids": process_limit(bench.root)}
