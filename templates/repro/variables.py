"""Looks at variables of this process: those that CASE wants unset, and those that it wants set to a value. Exit 1 while one is otherwise, 0 when none is.

Start it the way the training is started: from the same shell, notebook or service.
"""

import os
import sys

CASE = {"CASE": "HERE"}

wrong = [f"{name} is set to {os.environ[name]!r}" for name in CASE["unset"] if os.environ.get(name)]
wrong += [f"{name} is {os.environ.get(name)!r}, wanted is {value!r}" for name, value in CASE["set"].items() if os.environ.get(name) != value]
print("\n".join(wrong) or "every variable is as it should be")
sys.exit(bool(wrong))
