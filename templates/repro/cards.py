"""Asks NVIDIA's library whether a card has memory errors, slows itself down, or is used by others: CASE says which. Exit 1 while one does, 0 when none does."""

import ctypes
import sys

CASE = {"CASE": "HERE"}
SLOWED = 0x08 | 0x20 | 0x40 | 0x80  # nvmlClocksEventReasons: hardware slowdown, thermal (software, hardware), power brake


def of_card(library, handle, what):
    number = ctypes.c_ulonglong()
    if what == "errors":
        code = library.nvmlDeviceGetTotalEccErrors(handle, 1, 0, ctypes.byref(number))
        rows = [ctypes.c_uint() for _ in range(4)]  # remapped: by corrected errors, by uncorrected ones, pending, failed
        none = not hasattr(library, "nvmlDeviceGetRemappedRows") or library.nvmlDeviceGetRemappedRows(handle, *map(ctypes.byref, rows))
        return (0 if code else number.value) + (0 if none else rows[2].value + rows[3].value)
    if what == "slowed":
        old, new = "nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetCurrentClocksEventReasons"
        getattr(library, new if hasattr(library, new) else old)(handle, ctypes.byref(number))
        return number.value & SLOWED
    total_free_used = (ctypes.c_ulonglong * 3)()
    library.nvmlDeviceGetMemoryInfo(handle, total_free_used)
    return total_free_used[2] if total_free_used[2] > CASE["most"] * total_free_used[0] else 0


try:
    library = ctypes.CDLL("libnvidia-ml.so.1")
except OSError:
    print("there is no NVIDIA driver: libnvidia-ml.so.1 cannot be found")
    sys.exit(2)
library.nvmlInit_v2()
count = ctypes.c_uint()
library.nvmlDeviceGetCount_v2(ctypes.byref(count))
found = []
for index in range(count.value):
    handle = ctypes.c_void_p()
    library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle))
    found.append(of_card(library, handle, CASE["what"]))
print(f"{CASE['what']}, card by card: {found} (0: none)")
sys.exit(any(found))
