"""Asks NVIDIA's library whether the driver wants a card reset, and whether the NVLink fabric is ready. Exit 1 while it does or is not, else 0."""

import ctypes
import sys

CASE = {"CASE": "HERE"}
ACTIONS = ("none", "reset the card", "restart the machine", "drain the cards, then reset them", "end all programs, then reset")  # nvml.h
STATES = ("no fabric", "not started", "in progress", "completed")


class Field(ctypes.Structure):
    _fields_ = (("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("times", ctypes.c_longlong * 2), ("codes", ctypes.c_int * 2), ("value", ctypes.c_ulonglong))


class Fabric(ctypes.Structure):
    _fields_ = (("cluster", ctypes.c_ubyte * 16), ("status", ctypes.c_int), ("clique", ctypes.c_uint), ("state", ctypes.c_ubyte))


print(CASE["about"])
try:
    library = ctypes.CDLL("libnvidia-ml.so.1")
except OSError:
    print("there is no NVIDIA driver: libnvidia-ml.so.1 cannot be found")
    sys.exit(2)
library.nvmlInit_v2()
count, wrong = ctypes.c_uint(), 0
library.nvmlDeviceGetCount_v2(ctypes.byref(count))
for index in range(count.value):
    handle, field, fabric = ctypes.c_void_p(), Field(id=230), Fabric()  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
    library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle))
    told = library.nvmlDeviceGetFieldValues(handle, 1, ctypes.byref(field)) == 0 and field.codes[1] == 0
    action = field.value & 0xFFFFFFFF if told else 0
    if library.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(fabric)) != 0:
        fabric = Fabric()
    print(f"{index}: recovery action: {(*ACTIONS, action)[min(action, 5)]}; fabric: {STATES[fabric.state & 3]}, status {fabric.status}")
    wrong += action != 0 or fabric.state in (1, 2) or (fabric.state == 3 and fabric.status != 0)
sys.exit(wrong > 0)
