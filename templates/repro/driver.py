"""Asks NVIDIA's library for the driver's version and the number of cards that CASE wants. Exit 1 while they are others, 0 when they fit."""

import ctypes
import operator
import re
import sys

CASE = {"CASE": "HERE"}
OPERATORS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "==": operator.eq, "!=": operator.ne}


def numbers(version, places=3):
    parts = [int(part) for part in version.split(".")[:places]]
    return parts + [0] * (places - len(parts))


try:
    library = ctypes.CDLL("libnvidia-ml.so.1")
except OSError:
    print("there is no NVIDIA driver: libnvidia-ml.so.1 cannot be found")
    sys.exit(2 if CASE["driver"] else 1)  # a version of which nothing is known, or the driver that is missing
code = library.nvmlInit_v2()
if code != 0:
    sys.exit(f"the driver does not answer: nvmlInit_v2 gives error {code} (nvmlReturn_t in nvml.h)")
text, count = ctypes.create_string_buffer(96), ctypes.c_uint()
library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(96))
library.nvmlDeviceGetCount_v2(ctypes.byref(count))
handle, lost = ctypes.c_void_p(), 0
for card in range(count.value):
    lost += library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(card), ctypes.byref(handle)) != 0
version = text.value.decode("ascii", "replace")
asked = re.findall(r"(>=|<=|==|!=|>|<)\s*([\d.]+)", CASE["driver"] or "")
fits = all(OPERATORS[sign](numbers(version), numbers(bound)) for sign, bound in asked)
print(f"driver {version}, wanted {CASE['driver'] or 'any'}; {count.value} cards, wanted {CASE['count'] or 'any number'}; {lost} lost")
sys.exit(not fits or lost > 0 or CASE["count"] not in (None, count.value))
