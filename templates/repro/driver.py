"""Compares the version of the NVIDIA driver and the number of GPUs with CASE.

Exits 1 if they differ, 0 if they match, 2 if there is no driver to compare.
"""

import ctypes
import operator
import re
import sys

CASE = {"CASE": "HERE"}
OPERATORS = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


def release(version):
    numbers = [int(part) for part in version.split(".")[:3]]
    return numbers + [0] * (3 - len(numbers))


try:
    library = ctypes.CDLL("libnvidia-ml.so.1")
except OSError:
    print("no NVIDIA driver found: libnvidia-ml.so.1 is missing")
    # A missing driver is the fault itself, unless a version is compared.
    sys.exit(2 if CASE["driver"] else 1)
code = library.nvmlInit_v2()
if code != 0:
    sys.exit(f"the driver does not work: nvmlInit_v2 returned {code} (nvmlReturn_t in nvml.h)")
text, count = ctypes.create_string_buffer(96), ctypes.c_uint()
library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(96))
library.nvmlDeviceGetCount_v2(ctypes.byref(count))
handle, lost = ctypes.c_void_p(), 0
for card in range(count.value):
    lost += library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(card), ctypes.byref(handle)) != 0
version = text.value.decode("ascii", "replace")
bounds = re.findall(r"(>=|<=|==|!=|>|<)\s*([\d.]+)", CASE["driver"] or "")
fits = all(OPERATORS[sign](release(version), release(bound)) for sign, bound in bounds)
print(f"driver {version}, expected {CASE['driver'] or 'any'}")
print(f"{count.value} GPUs, expected {CASE['count'] or 'any number'}; {lost} lost")
sys.exit(not fits or lost > 0 or CASE["count"] not in (None, count.value))
