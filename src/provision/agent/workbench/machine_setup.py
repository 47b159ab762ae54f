"""Steps before the environment: the driver of the declared GPU, and system packages."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..core.gpu_names import is_declared_gpu
from ..core.nvidia_smi import parse_rows, query_arguments
from ..core.system_packages import APT_VARIABLES, find_missing_packages, install_packages
from .document import WorkbenchDocument
from .instance import PhaseFailed, WorkbenchInstance

_POLL_S = 5.0
_APT_S = 900.0
_CARD_FIELDS = ("name", "driver_version")


def wait_for_driver(
    document: WorkbenchDocument,
    instance: WorkbenchInstance,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Wait until the driver reports every declared GPU; return the first one.

    The image installs the driver at its first start, which takes minutes.

    Raises:
        PhaseFailed: no GPU within `driver_timeout_s`, or another GPU than declared.
    """
    if document.gpu is None:
        return ""
    kind, count = document.gpu
    deadline = time.monotonic() + document.driver_timeout_s
    query = ["nvidia-smi", *query_arguments(_CARD_FIELDS)]
    while True:
        answer = instance.run(query, 60, root=True)
        cards = parse_rows(answer.stdout, _CARD_FIELDS) if answer.code == 0 else []
        if len(cards) >= count:
            break
        if time.monotonic() + _POLL_S > deadline:
            reason = f"nvidia-smi failed: {answer.output_tail.strip()[-300:]}"
            if cards:
                reason = f"nvidia-smi reports only {len(cards)} of {count} GPUs"
            raise PhaseFailed(
                f"there is no working driver for {count} x {kind} after "
                f"{document.driver_timeout_s} s\n"
                f"{reason}"
            )
        sleep(_POLL_S)
    titles = [f"{card['name']}, {card['driver_version']}" for card in cards]
    for title, card in zip(titles, cards, strict=True):
        if not is_declared_gpu(card["name"], kind):
            raise PhaseFailed(f"the GPU is {title}, expected {kind}")
    return titles[0]


def install_system_packages(document: WorkbenchDocument, instance: WorkbenchInstance) -> list[str]:
    """Install the system packages that are missing; return their names. Raises PhaseFailed."""
    missing = find_missing_packages(
        document.system_packages, lambda argv: instance.run(argv, 60, root=True)
    )
    if not missing:
        return []
    answer = install_packages(
        missing,
        lambda argv: instance.run(argv, _APT_S, root=True, variables=APT_VARIABLES),
    )
    if answer.code:
        names = ", ".join(missing)
        raise PhaseFailed(
            f"cannot install the system packages {names}: exit code {answer.code}\n"
            f"{answer.output_tail}"
        )
    return missing
