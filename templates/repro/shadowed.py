"""Says from which file each module of CASE would be imported. Exit 1 while one lies outside the environment, 0 when all lie in it."""

import importlib.util
import os
import sys

CASE = {"CASE": "HERE"}

wrong = 0
for name in CASE["modules"]:
    spec = importlib.util.find_spec(name)
    file = os.path.realpath((spec.origin or "") if spec else "")
    inside = file.startswith(os.path.realpath(sys.prefix) + os.sep)
    print(f"{name} comes from {file or 'nowhere'}{'' if inside else ', which is not in ' + sys.prefix}")
    wrong += not inside
sys.exit(wrong > 0)
