"""Observes resource limits: processes, address space, file size, CPU seconds."""

from __future__ import annotations

from ..context import ObserverContext
from ..model import Readings
from .cgroups import process_limit

_LIMITS = {
    "host.address_space_bytes": "RLIMIT_AS",
    "host.file_size_bytes": "RLIMIT_FSIZE",
    "host.cpu_time_s": "RLIMIT_CPU",
    "host.nproc": "RLIMIT_NPROC",
}


def observe_limits(context: ObserverContext) -> Readings:
    """Return each soft limit, None for unlimited, and the processes left in the control group."""
    try:
        import resource
    except ImportError:
        return {**dict.fromkeys(_LIMITS), "host.pids": None}
    values = {
        key: resource.getrlimit(getattr(resource, name))[0]
        for key, name in _LIMITS.items()
        if hasattr(resource, name)
    }
    limits = {
        key: None if value == resource.RLIM_INFINITY else value for key, value in values.items()
    }
    return {**dict.fromkeys(_LIMITS), **limits, "host.pids": process_limit(context.root)}
