"""The NVIDIA driver's own library through ctypes; read only.

Names, structures and numbers are those of NVIDIA's nvml.h.
"""

from __future__ import annotations

from ctypes import (
    CDLL,
    Structure,
    byref,
    c_char,
    c_int,
    c_longlong,
    c_ubyte,
    c_uint,
    c_ulonglong,
    c_void_p,
    create_string_buffer,
)
from typing import Any

from ..model import Readings

LIBRARY = "libnvidia-ml.so.1"
NO_LIBRARY = -1
"""In place of NVML's error code if there is no library, or if it lacks a function."""
_SUCCESS = 0
_UNCORRECTED, _VOLATILE = 1, 0
_ON_DIE = 0
_LONG = 96
_RECOVERY_ACTION = 230
"""NVML_FI_DEV_GET_GPU_RECOVERY_ACTION."""
_FABRIC = {1: "not started", 2: "in progress", 3: "completed"}
"""NVML_GPU_FABRIC_STATE_*; 0 is "not supported"."""
_MOST_PROCESSES = 64


class _Memory(Structure):
    _fields_ = (
        ("total", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    )


class _Pci(Structure):
    _fields_ = (
        ("legacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("id", c_uint),
        ("subsystem", c_uint),
        ("text", c_char * 32),
    )


class _Process(Structure):
    _fields_ = (
        ("pid", c_uint),
        ("used", c_ulonglong),
        ("instance", c_uint),
        ("compute_instance", c_uint),
    )


class _Field(Structure):
    _fields_ = (
        ("id", c_uint),
        ("scope", c_uint),
        ("stamp", c_longlong),
        ("latency", c_longlong),
        ("kind", c_int),
        ("code", c_int),
        ("value", c_ulonglong),
    )


class _Fabric(Structure):
    _fields_ = (
        ("cluster", c_ubyte * 16),
        ("status", c_int),
        ("clique", c_uint),
        ("state", c_ubyte),
    )


class _Rates(Structure):
    _fields_ = (("gpu", c_uint), ("memory", c_uint))


class NvmlError(Exception):
    """An error of NVML, or the lack of its library."""

    def __init__(self, code: int) -> None:
        super().__init__(f"NVML error {code}")
        self.code = code


class Nvml:
    """The library, started; `cards` has one mapping for each card, None for unreported values."""

    def __init__(self) -> None:
        try:
            self._library = CDLL(LIBRARY)
        except OSError:
            raise NvmlError(NO_LIBRARY) from None
        self._require("nvmlInit_v2")

    def __enter__(self) -> Nvml:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the library."""
        self._call("nvmlShutdown")

    def driver(self) -> str:
        """Return the driver's version, such as "580.82.07"."""
        text = create_string_buffer(_LONG)
        self._require("nvmlSystemGetDriverVersion", text, c_uint(_LONG))
        return text.value.decode("ascii", "replace")

    def cuda(self) -> str | None:
        """Return the newest CUDA that the driver runs, such as "13.0"."""
        number = c_int()
        if self._call("nvmlSystemGetCudaDriverVersion_v2", byref(number)) != _SUCCESS:
            return None
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def cards(self) -> list[Readings]:
        """Return all readings of each card."""
        return [self._card(handle) for handle in self._handles()]

    def identities(self) -> list[Readings]:
        """Return the readings that distinguish the cards, and decide which of them CUDA shows."""
        return [self._identity(handle) for handle in self._handles()]

    def clock_reasons(self) -> list[int | None]:
        """Return for each card why its clocks are low at this moment, as bits."""
        return [self._reasons(handle) for handle in self._handles()]

    def live_values(self) -> list[Readings]:
        """Return the readings of each card that change while programs run on it."""
        return [self._activity(handle) for handle in self._handles()]

    def addresses(self) -> list[str | None]:
        """Return each card's place on the PCI bus as Linux writes it, such as "0000:3b:00.0"."""
        return [self._address(handle) for handle in self._handles()]

    def _handles(self) -> list[c_void_p]:
        count = c_uint()
        self._require("nvmlDeviceGetCount_v2", byref(count))
        handles = [c_void_p() for _ in range(count.value)]
        for index, handle in enumerate(handles):
            self._require("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle))
        return handles

    def _usage(self, handle: c_void_p) -> Readings:
        memory = self._fill(_Memory(), "nvmlDeviceGetMemoryInfo", handle)
        return {
            "name": self._text("nvmlDeviceGetName", handle),
            "total_bytes": memory and memory.total,
            "used_bytes": memory and memory.used,
        }

    def _activity(self, handle: c_void_p) -> Readings:
        rates = self._fill(_Rates(), "nvmlDeviceGetUtilizationRates", handle)
        return {
            **self._usage(handle),
            "busy_percent": rates and rates.gpu,
            "temperature_c": self._number("nvmlDeviceGetTemperature", handle, c_int(_ON_DIE)),
            "power_mw": self._number("nvmlDeviceGetPowerUsage", handle),
            "reasons": self._reasons(handle),
        }

    def _identity(self, handle: c_void_p) -> Readings:
        mig = self._numbers(2, "nvmlDeviceGetMigMode", handle)
        return {
            **self._usage(handle),
            "uuid": self._text("nvmlDeviceGetUUID", handle),
            "address": self._address(handle),
            "mig": mig and bool(mig[0]),
        }

    def _card(self, handle: c_void_p) -> Readings:
        ecc = self._numbers(2, "nvmlDeviceGetEccMode", handle)
        remapped = self._numbers(4, "nvmlDeviceGetRemappedRows", handle)
        capability = self._numbers(2, "nvmlDeviceGetCudaComputeCapability", handle, kind=c_int)
        return {
            **self._identity(handle),
            "pci": self._vendor_and_device(handle),
            "capability": capability and f"{capability[0]}.{capability[1]}",
            "holders": self._holders(handle),
            "ecc": ecc and bool(ecc[0]),
            "uncorrected": self._uncorrected(handle) if ecc and ecc[0] else None,
            "remap_pending": remapped and bool(remapped[2]),
            "remap_failed": remapped and bool(remapped[3]),
            "retired_pending": self._flag("nvmlDeviceGetRetiredPagesPendingStatus", handle),
            "recovery": self._recovery(handle),
            "fabric": self._fabric(handle),
            "reasons": self._reasons(handle),
            "compute_mode": self._number("nvmlDeviceGetComputeMode", handle),
            "persistence": self._flag("nvmlDeviceGetPersistenceMode", handle),
            "lanes": self._number("nvmlDeviceGetCurrPcieLinkWidth", handle),
            "lanes_most": self._number("nvmlDeviceGetMaxPcieLinkWidth", handle),
            "pcie_most": self._number("nvmlDeviceGetMaxPcieLinkGeneration", handle),
            "pcie_of_card": self._number("nvmlDeviceGetGpuMaxPcieLinkGeneration", handle),
            "power_limit_mw": self._number("nvmlDeviceGetPowerManagementLimit", handle),
            "power_default_mw": self._number("nvmlDeviceGetPowerManagementDefaultLimit", handle),
        }

    def _vendor_and_device(self, handle: c_void_p) -> str | None:
        """Return vendor and device as lspci writes them, such as "10de:27b8".

        The number has the device in its upper half.
        """
        pci = self._fill(_Pci(), "nvmlDeviceGetPciInfo_v3", handle)
        return pci and f"{pci.id & 0xFFFF:04x}:{pci.id >> 16:04x}"

    def _address(self, handle: c_void_p) -> str | None:
        pci = self._fill(_Pci(), "nvmlDeviceGetPciInfo_v3", handle)
        return pci and f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0"

    def _holders(self, handle: c_void_p) -> list[int]:
        """Return the processes that compute on the card; in a container, by the host's numbers."""
        count, processes = c_uint(_MOST_PROCESSES), (_Process * _MOST_PROCESSES)()
        code = self._call(
            "nvmlDeviceGetComputeRunningProcesses_v3", handle, byref(count), processes
        )
        if code != _SUCCESS:
            return []
        return sorted(process.pid for process in processes[: count.value])

    def _recovery(self, handle: c_void_p) -> int | None:
        field = self._fill(
            _Field(id=_RECOVERY_ACTION), "nvmlDeviceGetFieldValues", handle, c_int(1)
        )
        # The value is a C union; this field's member is an unsigned int.
        return int(field.value & 0xFFFFFFFF) if field and field.code == _SUCCESS else None

    def _fabric(self, handle: c_void_p) -> str | None:
        fabric = self._fill(_Fabric(), "nvmlDeviceGetGpuFabricInfo", handle)
        state = fabric and _FABRIC.get(int(fabric.state))
        if fabric and state == "completed" and fabric.status != _SUCCESS:
            return f"failed with code {fabric.status}"
        return state

    def _uncorrected(self, handle: c_void_p) -> int | None:
        scope = (c_int(_UNCORRECTED), c_int(_VOLATILE))
        return self._number("nvmlDeviceGetTotalEccErrors", handle, *scope, kind=c_ulonglong)

    def _reasons(self, handle: c_void_p) -> int | None:
        # The older name is deprecated, and not in the library of newer drivers.
        for name in ("EventReasons", "ThrottleReasons"):
            function = f"nvmlDeviceGetCurrentClocks{name}"
            reasons = self._number(function, handle, kind=c_ulonglong)
            if reasons is not None:
                return reasons
        return None

    def _text(self, function: str, handle: c_void_p) -> str | None:
        text = create_string_buffer(_LONG)
        code = self._call(function, handle, text, c_uint(_LONG))
        return text.value.decode("utf-8", "replace") if code == _SUCCESS else None

    def _flag(self, function: str, handle: c_void_p) -> bool | None:
        number = self._number(function, handle)
        return None if number is None else bool(number)

    def _number(self, function: str, *inputs: Any, kind: type[Any] = c_uint) -> int | None:
        filled = self._fill(kind(), function, *inputs)
        return None if filled is None else int(filled.value)

    def _numbers(
        self, count: int, function: str, handle: c_void_p, kind: type[Any] = c_uint
    ) -> list[int] | None:
        values = [kind() for _ in range(count)]
        code = self._call(function, handle, *map(byref, values))
        return [int(value.value) for value in values] if code == _SUCCESS else None

    def _fill(self, target: Any, function: str, *inputs: Any) -> Any:
        """Return the target, which the function takes last and fills; None if that failed."""
        code = self._call(function, *inputs, byref(target))
        return target if code == _SUCCESS else None

    def _require(self, function: str, *arguments: Any) -> None:
        code = self._call(function, *arguments)
        if code != _SUCCESS:
            raise NvmlError(code)

    def _call(self, function: str, *arguments: Any) -> int:
        called = getattr(self._library, function, None)
        return NO_LIBRARY if called is None else int(called(*arguments))
