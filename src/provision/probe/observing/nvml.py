"""NVML through ctypes: what the driver's own library says of itself and of its cards. Nothing is ever changed.

Names, structures and numbers are those of NVIDIA's nvml.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
NO_LIBRARY = -1
"""Stands for an error code of NVML where there is no library to give one."""
_SUCCESS = 0
_UNCORRECTED, _VOLATILE = 1, 0
_ON_DIE = 0
_LONG = 96


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Rates(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class NvmlError(Exception):
    """NVML, or the lack of it, answered with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"NVML error {code}")
        self.code = code


class Nvml:
    """The library, started; `cards` gives one mapping a card, None for what a card or driver does not tell."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError:
            raise NvmlError(NO_LIBRARY) from None
        self._must("nvmlInit_v2")

    def __enter__(self) -> Nvml:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the library."""
        self._call("nvmlShutdown")

    def driver(self) -> str:
        """Return the driver's version, such as "580.82.07"."""
        text = ctypes.create_string_buffer(_LONG)
        self._must("nvmlSystemGetDriverVersion", text, ctypes.c_uint(_LONG))
        return text.value.decode("ascii", "replace")

    def cuda(self) -> str | None:
        """Return the newest CUDA that the driver runs, such as "13.0"."""
        number = ctypes.c_int()
        if self._call("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(number)) != _SUCCESS:
            return None
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def cards(self) -> list[dict[str, Any]]:
        """Return what each card tells of itself."""
        count = ctypes.c_uint()
        self._must("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return [self._card(index) for index in range(count.value)]

    def at_work(self) -> list[dict[str, Any]]:
        """Return what changes of each card while programs run on it."""
        count = ctypes.c_uint()
        self._must("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return [self._at_work(index) for index in range(count.value)]

    def _at_work(self, index: int) -> dict[str, Any]:
        handle = ctypes.c_void_p()
        self._must("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        memory, rates = _Memory(), _Rates()
        told = self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory)) == _SUCCESS
        busy = self._call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(rates)) == _SUCCESS
        heat = ctypes.c_uint()
        hot = self._call("nvmlDeviceGetTemperature", handle, ctypes.c_int(_ON_DIE), ctypes.byref(heat)) == _SUCCESS
        return {
            "name": self._name(handle),
            "total_bytes": memory.total if told else None,
            "used_bytes": memory.used if told else None,
            "busy_percent": rates.gpu if busy else None,
            "temperature_c": heat.value if hot else None,
            "power_mw": self._one("nvmlDeviceGetPowerUsage", handle, ctypes.c_uint),
            "reasons": self._reasons(handle),
        }

    def _card(self, index: int) -> dict[str, Any]:
        handle = ctypes.c_void_p()
        self._must("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        memory = _Memory()
        told = self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory)) == _SUCCESS
        ecc = self._numbers("nvmlDeviceGetEccMode", handle, ctypes.c_uint, 2)
        remapped = self._numbers("nvmlDeviceGetRemappedRows", handle, ctypes.c_uint, 4)
        mig = self._numbers("nvmlDeviceGetMigMode", handle, ctypes.c_uint, 2)
        return {
            "name": self._name(handle),
            "total_bytes": memory.total if told else None,
            "used_bytes": memory.used if told else None,
            "ecc": bool(ecc[0]) if ecc else None,
            "uncorrected": self._uncorrected(handle) if ecc and ecc[0] else None,
            "remap_pending": bool(remapped[2]) if remapped else None,
            "remap_failed": bool(remapped[3]) if remapped else None,
            "reasons": self._reasons(handle),
            "mig": bool(mig[0]) if mig else None,
            "compute_mode": self._one("nvmlDeviceGetComputeMode", handle, ctypes.c_uint),
            "power_limit_mw": self._one("nvmlDeviceGetPowerManagementLimit", handle, ctypes.c_uint),
            "power_default_mw": self._one("nvmlDeviceGetPowerManagementDefaultLimit", handle, ctypes.c_uint),
        }

    def _name(self, handle: ctypes.c_void_p) -> str | None:
        text = ctypes.create_string_buffer(_LONG)
        code = self._call("nvmlDeviceGetName", handle, text, ctypes.c_uint(_LONG))
        return text.value.decode("utf-8", "replace") if code == _SUCCESS else None

    def _uncorrected(self, handle: ctypes.c_void_p) -> int | None:
        count = ctypes.c_ulonglong()
        code = self._call("nvmlDeviceGetTotalEccErrors", handle, ctypes.c_int(_UNCORRECTED), ctypes.c_int(_VOLATILE), ctypes.byref(count))
        return count.value if code == _SUCCESS else None

    def _reasons(self, handle: ctypes.c_void_p) -> int | None:
        # The older name is deprecated, and not in the library of newer drivers.
        newer = self._one("nvmlDeviceGetCurrentClocksEventReasons", handle, ctypes.c_ulonglong)
        return newer if newer is not None else self._one("nvmlDeviceGetCurrentClocksThrottleReasons", handle, ctypes.c_ulonglong)

    def _one(self, function: str, handle: ctypes.c_void_p, kind: type[Any]) -> int | None:
        told = self._numbers(function, handle, kind, 1)
        return told[0] if told else None

    def _numbers(self, function: str, handle: ctypes.c_void_p, kind: type[Any], count: int) -> list[int] | None:
        values = [kind() for _ in range(count)]
        code = self._call(function, handle, *(ctypes.byref(value) for value in values))
        return [int(value.value) for value in values] if code == _SUCCESS else None

    def _must(self, function: str, *arguments: Any) -> None:
        code = self._call(function, *arguments)
        if code != _SUCCESS:
            raise NvmlError(code)

    def _call(self, function: str, *arguments: Any) -> int:
        called: Callable[..., int] | None = getattr(self._library, function, None)
        return int(called(*arguments)) if called is not None else NO_LIBRARY
