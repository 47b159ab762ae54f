"""What comes before the environment: the driver of a declared card, and packages of the system."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..core.gpu_names import is_declared_gpu
from .document import Document
from .instance import Instance, PhaseFailed

_PAUSE_S = 5.0
_APT_S = 900.0


def wait_for_driver(
    document: Document, machine: Instance, sleep: Callable[[float], None] = time.sleep
) -> str:
    """Wait until the driver answers for every declared card; the image installs it at first start,
    which takes minutes. Returns what it says.

    Raises PhaseFailed when it does not within `driver_timeout_s`, or when the card is another one.
    """
    if document.gpu is None:
        return ""
    kind, count = document.gpu
    deadline = time.monotonic() + document.driver_timeout_s
    while True:
        answer = machine.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            60,
            root=True,
        )
        cards = (
            [line.strip() for line in answer.stdout.splitlines() if line.strip()]
            if answer.code == 0
            else []
        )
        if len(cards) >= count:
            break
        if time.monotonic() + _PAUSE_S > deadline:
            told = (
                f"nvidia-smi tells {len(cards)} card(s), {count} declared"
                if cards
                else f"nvidia-smi does not answer: {answer.output.strip()[-300:]}"
            )
            raise PhaseFailed(
                f"no driver for {count} x {kind} after {document.driver_timeout_s} s\n{told}"
            )
        sleep(_PAUSE_S)
    strange = [card for card in cards if not is_declared_gpu(card, kind)]
    if strange:
        raise PhaseFailed(f"the card is {strange[0]}, {kind} was declared")
    return cards[0]


def install_system_packages(document: Document, machine: Instance) -> list[str]:
    """Install what is missing with apt-get, once more after it has read its lists anew; return what
    was installed.
    """
    missing = [name for name in document.system_packages if not _installed(name, machine)]
    if not missing:
        return []
    apt = [
        "apt-get",
        "--quiet",
        "--quiet",
        "--yes",
        "--no-install-recommends",
        "-o",
        "DPkg::Lock::Timeout=300",
        "-o",
        "Dpkg::Use-Pty=0",
    ]
    variables = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "l"}
    install = [*apt, "install", "--", *missing]
    if machine.run(install, _APT_S, root=True, variables=variables).code:
        machine.run([*apt[:2], "update"], _APT_S, root=True, variables=variables)
        machine.run_checked(
            f"cannot install the system packages {', '.join(missing)}",
            install,
            _APT_S,
            root=True,
            variables=variables,
        )
    return missing


def _installed(name: str, machine: Instance) -> bool:
    answer = machine.run(
        ["dpkg-query", "--show", "--showformat=${db:Status-Status}", name], 60, root=True
    )
    return answer.code == 0 and answer.stdout == "installed"
