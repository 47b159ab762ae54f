"""Measures one limit of this machine: CASE says which, and how much there has to be. Exit 1 while there is less, 0 when there is enough."""

import os
import resource
import shutil
import sys
import tempfile

CASE = {"CASE": "HERE"}


def read(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return ["max"]


def measured(what):
    if what == "CPUs":
        quota, *period = read("/sys/fs/cgroup/cpu.max")
        there = float(len(os.sched_getaffinity(0)))
        return there if quota == "max" else min(there, int(quota) / int(period[0]))
    if what == "memory":
        total, limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), read("/sys/fs/cgroup/memory.max")[0]
        return total if limit == "max" else min(total, int(limit))
    if what == "shared memory":
        return os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize
    if what == "open files":
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return limit if limit >= 0 else sys.maxsize
    known = {"environment": sys.prefix, "tmp": tempfile.gettempdir(), "working": "."}
    places = [known.get(place, os.path.expandvars(os.path.expanduser(place))) for place in CASE["places"]]
    return min(shutil.disk_usage(place).free for place in places)


found = measured(CASE["what"])
print(f"{CASE['what']}: {found:,} found, {CASE['least']:,} needed {CASE['unit']}")
sys.exit(found < CASE["least"])
