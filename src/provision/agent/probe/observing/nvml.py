"""The NVIDIA driver's own library through ctypes; read only.

Names, structures and numbers are those of NVIDIA's nvml.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ..model import Readings

LIBRARY = "libnvidia-ml.so.1"
NO_LIBRARY = -1
"""Stands for an error code of NVML where there is no library to give one, or where it lacks a
function that is needed.
"""
_SUCCESS = 0
_UNCORRECTED, _VOLATILE = 1, 0
_ON_DIE = 0
_LONG = 96
_RECOVERY_ACTION = 230
"""NVML_FI_DEV_GET_GPU_RECOVERY_ACTION."""
_FABRIC = {1: "not started", 2: "in progress", 3: "completed"}
"""NVML_GPU_FABRIC_STATE_*; 0 is "not supported"."""
_MOST_PROCESSES = 64


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Pci(ctypes.Structure):
    _fields_ = (
        ("legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("id", ctypes.c_uint),
        ("subsystem", ctypes.c_uint),
        ("text", ctypes.c_char * 32),
    )


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _Field(ctypes.Structure):
    _fields_ = (
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("stamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("kind", ctypes.c_int),
        ("code", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    )


class _Fabric(ctypes.Structure):
    _fields_ = (
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_int),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
    )


class _Rates(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class NvmlError(Exception):
    """NVML, or the lack of it, answered with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"NVML error {code}")
        self.code = code


class Nvml:
    """The library, started; `cards` has one mapping for each card, None for unreported values."""

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

    def cards(self) -> list[Readings]:
        """Return what each card tells of itself."""
        return [self._card(handle) for handle in self._handles()]

    def identities(self) -> list[Readings]:
        """Return what tells the cards apart, and which of them CUDA shows."""
        return [self._identity(handle) for handle in self._handles()]

    def clock_reasons(self) -> list[int | None]:
        """Return for each card why its clocks are low at this moment, as bits."""
        return [self._reasons(handle) for handle in self._handles()]

    def _handles(self) -> list[ctypes.c_void_p]:
        count = ctypes.c_uint()
        self._must("nvmlDeviceGetCount_v2", ctypes.byref(count))
        handles = [ctypes.c_void_p() for _ in range(count.value)]
        for index, handle in enumerate(handles):
            self._must("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        return handles

    def live_values(self) -> list[Readings]:
        """Return what changes of each card while programs run on it."""
        return [self._at_work(handle) for handle in self._handles()]

    def addresses(self) -> list[str | None]:
        """Return each card's place on the PCI bus as Linux writes it, such as "0000:3b:00.0"."""
        return [self._address(handle) for handle in self._handles()]

    def _at_work(self, handle: ctypes.c_void_p) -> Readings:
        memory, rates = _Memory(), _Rates()
        reported = self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory)) == _SUCCESS
        busy = self._call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(rates)) == _SUCCESS
        heat = ctypes.c_uint()
        hot = (
            self._call(
                "nvmlDeviceGetTemperature", handle, ctypes.c_int(_ON_DIE), ctypes.byref(heat)
            )
            == _SUCCESS
        )
        return {
            "name": self._name(handle),
            "total_bytes": memory.total if reported else None,
            "used_bytes": memory.used if reported else None,
            "busy_percent": rates.gpu if busy else None,
            "temperature_c": heat.value if hot else None,
            "power_mw": self._one("nvmlDeviceGetPowerUsage", handle, ctypes.c_uint),
            "reasons": self._reasons(handle),
        }

    def _identity(self, handle: ctypes.c_void_p) -> Readings:
        memory = _Memory()
        reported = self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory)) == _SUCCESS
        mig = self._numbers("nvmlDeviceGetMigMode", handle, ctypes.c_uint, 2)
        return {
            "name": self._name(handle),
            "uuid": self._uuid(handle),
            "address": self._address(handle),
            "total_bytes": memory.total if reported else None,
            "used_bytes": memory.used if reported else None,
            "mig": bool(mig[0]) if mig else None,
        }

    def _card(self, handle: ctypes.c_void_p) -> Readings:
        ecc = self._numbers("nvmlDeviceGetEccMode", handle, ctypes.c_uint, 2)
        remapped = self._numbers("nvmlDeviceGetRemappedRows", handle, ctypes.c_uint, 4)
        retired = self._one("nvmlDeviceGetRetiredPagesPendingStatus", handle, ctypes.c_uint)
        capability = self._numbers("nvmlDeviceGetCudaComputeCapability", handle, ctypes.c_int, 2)
        return {
            **self._identity(handle),
            "pci": self._pci(handle),
            "capability": f"{capability[0]}.{capability[1]}" if capability else None,
            "holders": self._holders(handle),
            "ecc": bool(ecc[0]) if ecc else None,
            "uncorrected": self._uncorrected(handle) if ecc and ecc[0] else None,
            "remap_pending": bool(remapped[2]) if remapped else None,
            "remap_failed": bool(remapped[3]) if remapped else None,
            "retired_pending": bool(retired) if retired is not None else None,
            "recovery": self._recovery(handle),
            "fabric": self._fabric(handle),
            "reasons": self._reasons(handle),
            "compute_mode": self._one("nvmlDeviceGetComputeMode", handle, ctypes.c_uint),
            "persistence": bool(kept)
            if (kept := self._one("nvmlDeviceGetPersistenceMode", handle, ctypes.c_uint))
            is not None
            else None,
            "lanes": self._one("nvmlDeviceGetCurrPcieLinkWidth", handle, ctypes.c_uint),
            "lanes_most": self._one("nvmlDeviceGetMaxPcieLinkWidth", handle, ctypes.c_uint),
            "pcie_most": self._one("nvmlDeviceGetMaxPcieLinkGeneration", handle, ctypes.c_uint),
            "pcie_of_card": self._one(
                "nvmlDeviceGetGpuMaxPcieLinkGeneration", handle, ctypes.c_uint
            ),
            "power_limit_mw": self._one("nvmlDeviceGetPowerManagementLimit", handle, ctypes.c_uint),
            "power_default_mw": self._one(
                "nvmlDeviceGetPowerManagementDefaultLimit", handle, ctypes.c_uint
            ),
        }

    def _name(self, handle: ctypes.c_void_p) -> str | None:
        text = ctypes.create_string_buffer(_LONG)
        code = self._call("nvmlDeviceGetName", handle, text, ctypes.c_uint(_LONG))
        return text.value.decode("utf-8", "replace") if code == _SUCCESS else None

    def _uuid(self, handle: ctypes.c_void_p) -> str | None:
        text = ctypes.create_string_buffer(_LONG)
        code = self._call("nvmlDeviceGetUUID", handle, text, ctypes.c_uint(_LONG))
        return text.value.decode("ascii", "replace") if code == _SUCCESS else None

    def _pci(self, handle: ctypes.c_void_p) -> str | None:
        """Return vendor and device as lspci writes them, such as "10de:27b8".

        The number has the device in its upper half.
        """
        reported = _Pci()
        if self._call("nvmlDeviceGetPciInfo_v3", handle, ctypes.byref(reported)) != _SUCCESS:
            return None
        return f"{reported.id & 0xFFFF:04x}:{reported.id >> 16:04x}"

    def _address(self, handle: ctypes.c_void_p) -> str | None:
        reported = _Pci()
        if self._call("nvmlDeviceGetPciInfo_v3", handle, ctypes.byref(reported)) != _SUCCESS:
            return None
        return f"{reported.domain:04x}:{reported.bus:02x}:{reported.device:02x}.0"

    def _holders(self, handle: ctypes.c_void_p) -> list[int]:
        """Return the processes that compute on the card; in a container, by the host's numbers."""
        count, reported = ctypes.c_uint(_MOST_PROCESSES), (_Process * _MOST_PROCESSES)()
        code = self._call(
            "nvmlDeviceGetComputeRunningProcesses_v3", handle, ctypes.byref(count), reported
        )
        return sorted(one.pid for one in reported[: count.value]) if code == _SUCCESS else []

    def _recovery(self, handle: ctypes.c_void_p) -> int | None:
        reported = _Field(id=_RECOVERY_ACTION)
        code = self._call(
            "nvmlDeviceGetFieldValues", handle, ctypes.c_int(1), ctypes.byref(reported)
        )
        # The value is a C union; what is asked for here is an unsigned int.
        return int(reported.value & 0xFFFFFFFF) if code == reported.code == _SUCCESS else None

    def _fabric(self, handle: ctypes.c_void_p) -> str | None:
        reported = _Fabric()
        if self._call("nvmlDeviceGetGpuFabricInfo", handle, ctypes.byref(reported)) != _SUCCESS:
            return None
        state = _FABRIC.get(int(reported.state))
        return (
            f"failed with code {reported.status}"
            if state == "completed" and reported.status != _SUCCESS
            else state
        )

    def _uncorrected(self, handle: ctypes.c_void_p) -> int | None:
        count = ctypes.c_ulonglong()
        code = self._call(
            "nvmlDeviceGetTotalEccErrors",
            handle,
            ctypes.c_int(_UNCORRECTED),
            ctypes.c_int(_VOLATILE),
            ctypes.byref(count),
        )
        return count.value if code == _SUCCESS else None

    def _reasons(self, handle: ctypes.c_void_p) -> int | None:
        # The older name is deprecated, and not in the library of newer drivers.
        newer = self._one("nvmlDeviceGetCurrentClocksEventReasons", handle, ctypes.c_ulonglong)
        return (
            newer
            if newer is not None
            else self._one("nvmlDeviceGetCurrentClocksThrottleReasons", handle, ctypes.c_ulonglong)
        )

    def _one(self, function: str, handle: ctypes.c_void_p, kind: type[Any]) -> int | None:
        reported = self._numbers(function, handle, kind, 1)
        return reported[0] if reported else None

    def _numbers(
        self, function: str, handle: ctypes.c_void_p, kind: type[Any], count: int
    ) -> list[int] | None:
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
