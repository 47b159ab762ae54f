"""Tests in another process whether a new kernel would start, before one is restarted."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.process import TIMED_OUT, run_process
from .host_detection import Host

_COLAB = "import google.colab, google.colab._kernel, colab_kernel_launcher"
_PLAIN = "import ipykernel, IPython; from ipykernel.kernelapp import IPKernelApp"
_TIMEOUT_S = 120.0


def find_kernel_start_error(place: Host, python: str, environ: Mapping[str, str]) -> str:
    """Return why a new kernel would not come up, in the words of Python; "" when it would."""
    code = _COLAB if place.is_colab else _PLAIN
    answer = run_process([python, "-c", code], _TIMEOUT_S, environ)
    if answer.code == TIMED_OUT:
        return f"its imports did not end within {_TIMEOUT_S:.0f} s"
    if answer.code == 0:
        return ""
    return (answer.output_tail.splitlines() or [f"exit code {answer.code}"])[-1][:300]
