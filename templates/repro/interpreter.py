"""Says which Python runs, and where its environment is. Exit 1 while it is another than CASE wants, 0 when it is that one."""

import os
import sys

CASE = {"CASE": "HERE"}

found, prefix = f"{sys.version_info.major}.{sys.version_info.minor}", os.path.expanduser(CASE["prefix"])
print(f"Python {found} under {sys.prefix}, wanted {CASE['python']} under {prefix}")
same_place = os.path.realpath(sys.prefix) == os.path.realpath(prefix)
sys.exit(found != ".".join(CASE["python"].split(".")[:2]) or not same_place)
