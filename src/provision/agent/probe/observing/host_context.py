"""Observes the host around the environment: kernel, clock, cloud, login shell, hub settings."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from ..checks.host import CLOCK_SKEW
from ..context import ObserverContext
from ..model import Environ, Readings
from ..own_code import own_program
from ..text_files import read_text
from .variables import HARMFUL_VARIABLES, OFFLINE_VARIABLES, harmful_part

_TRUE = ("1", "true", "yes", "on")
"""Values that huggingface_hub and transformers take for yes (their constants)."""
_GVISOR = ("4.4.0", "#1 SMP Sun Jan 10 15:06:54 PST 2016")
"""The release and version that gVisor reports on any host (google/gvisor,
pkg/sentry/kernel/version.go).
"""
_CONTAINERS = (
    ("kubernetes", "var/run/secrets/kubernetes.io"),
    ("docker", ".dockerenv"),
    ("podman", "run/.containerenv"),
)
_VERTEX_PRODUCTS = {"COLAB_ENTERPRISE": "colab-enterprise", "WORKBENCH_INSTANCE": "workbench"}
_PLACE_VARIABLES = (
    ("colab", "COLAB_RELEASE_TAG"),
    ("kaggle", "KAGGLE_KERNEL_RUN_TYPE"),
    ("sagemaker", "SAGEMAKER_INTERNAL_IMAGE_URI"),
)
_PLACE_FILES = (
    ("colab", "var/colab/hostname"),
    ("workbench", "opt/deeplearning/metadata"),
    ("workbench", "opt/c2d"),
)
_VENDORS = (
    ("Google Compute Engine", "google compute engine"),
    ("Amazon EC2", "amazon ec2"),
    ("KVM", "kvm"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
)
_SHELL_PATIENCE_S = 6
_ASK = "import json, os, sys; json.dump(dict(os.environ), sys.stdout)"
_MARK = "provision-login-shell:"


def _kernel(_context: ObserverContext) -> Readings:
    release = platform.release()
    return {
        "host.kernel": release,
        "host.kernel_kind": "gvisor" if (release, platform.version()) == _GVISOR else sys.platform,
    }


def _clock(context: ObserverContext) -> Readings:
    """Return how far the newest older file is in the future; negative if the clock is right."""
    prefix, archive = context.expected.python_prefix, own_program()
    files = [os.path.join(prefix, "pyvenv.cfg"), context.expected.provenance_file]
    if archive:
        files += [str(archive), os.path.join(os.path.dirname(archive), "expectations.json")]
    stamps = {os.stat(name).st_mtime: name for name in files if os.path.exists(name)}
    newest = max(stamps, default=None)
    ahead = None if newest is None else newest - time.time()
    return {
        "clock.behind": ahead is not None and ahead > CLOCK_SKEW.value,
        "_clock.ahead_s": ahead,
        "_clock.file": stamps.get(newest or 0.0),
    }


def _place(context: ObserverContext) -> Readings:
    folder = context.root / "sys/class/dmi/id"
    vendor = f"{read_text(folder / 'sys_vendor')} {read_text(folder / 'product_name')}".lower()
    return {
        "host.place": find_place(context.environ, context.root),
        "host.container": find_container(context.environ, context.root),
        "host.machine": next((name for name, text in _VENDORS if text in vendor), None)
        or _hypervisor(context.root),
    }


def find_place(environ: Environ, root: Path) -> str | None:
    """Return the product that the machine is part of, such as "colab"; None if there is no mark.

    Colab Enterprise has Colab's marks too, so the variable of Vertex AI comes first.
    """
    vertex = _VERTEX_PRODUCTS.get(environ.get("VERTEX_PRODUCT", ""))
    named = (place for place, variable in _PLACE_VARIABLES if environ.get(variable))
    return vertex or next(named, None) or _first_marked(_PLACE_FILES, root)


def find_container(environ: Environ, root: Path) -> str | None:
    """Return the kind of container that this process runs in; None if there is no mark."""
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    return _first_marked(_CONTAINERS, root) or environ.get("container") or None


def _first_marked(marks: Iterable[tuple[str, str]], root: Path) -> str | None:
    # os.path.exists: a mark that this user may not see does not count; Path.exists raises then.
    return next((name for name, mark in marks if os.path.exists(root / mark)), None)


def _hypervisor(root: Path) -> str | None:
    if re.search(r"-fc\d*\b", read_text(root / "proc/sys/kernel/osrelease")):
        return "Firecracker"
    flags = next(
        (
            line
            for line in read_text(root / "proc/cpuinfo").splitlines()
            if line.startswith("flags")
        ),
        "",
    )
    return "a virtual machine" if "hypervisor" in flags.split() else None


def _login_shell(context: ObserverContext) -> Readings:
    """Return what a new login shell sets differently from the spec, or harmfully."""
    reported = _environment_of_shell(context)
    if reported is None:
        return {"login.differs": None}
    secret, declared = frozenset(context.expected.secrets), context.expected.env
    other = {
        name: reported[name]
        for name, value in declared.items()
        if name not in secret and name in reported and reported[name] != value
    }
    harmful = {
        name
        for name in HARMFUL_VARIABLES
        if harmful_part(name, reported.get(name, ""), context.root)
        and name not in declared
        and not context.environ.get(name)
    }
    return {"login.differs": sorted({*other, *harmful}), "_login.values": other}


def _environment_of_shell(context: ObserverContext) -> dict[str, str] | None:
    try:
        import pwd

        user = pwd.getpwuid(os.getuid())
    except (ImportError, KeyError):
        return None
    shell = user.pw_shell
    if os.path.basename(shell) not in ("sh", "bash", "dash", "zsh", "ksh"):
        shell = "/bin/sh"
    # No variable of this process is inherited: a shell that a person opens starts without them too.
    clean = {
        "HOME": context.environ.get("HOME") or user.pw_dir,
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        "SHELL": shell,
        "TERM": "dumb",
        "PATH": os.defpath,
    }
    command = [shell, "-lc", f'printf "%s" {_MARK}; exec "$0" -I -S -c "$1"', sys.executable, _ASK]
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SHELL_PATIENCE_S,
            env=clean,
            check=False,
            cwd="/",
        )
        variables: dict[str, str] = json.loads(answer.stdout.rpartition(_MARK)[2])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return variables


def _offline(context: ObserverContext) -> Readings:
    return {
        "hub.offline_by": [
            name for name in OFFLINE_VARIABLES if context.environ.get(name, "").lower() in _TRUE
        ]
    }


def _hub(context: ObserverContext) -> Readings:
    # Imported by the deep tier alone: the HTTP client costs more than all other imports here.
    from .network import observe_hub

    return observe_hub(context)


OBSERVERS = {
    "H03": _kernel,
    "H09": _clock,
    "H11": _place,
    "W02": _login_shell,
    "E03": _offline,
    "X01": _hub,
    # Judged from the readings of X01.
    "X02": lambda _: {},
}
