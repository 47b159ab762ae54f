"""Looks at variables of this process: what CASE wants unset, without a part, off, given or set to a value. Exit 1 while one is otherwise, 0 when none is.

Start it the way the training is started: from the same shell, notebook or service.
"""

import os
import sys

CASE = {"CASE": "HERE"}


def told(value):
    return (value, os.path.expandvars(os.path.expanduser(value)))


wrong = [f"{name} is set to {os.environ[name]!r}" for name in CASE["unset"] if os.environ.get(name)]
wrong += [f"{name} holds {one}" for name, parts in CASE["without"].items() for one in parts if one in os.environ.get(name, "").split(":")]
wrong += [f"{name} is switched on" for name in CASE["off"] if os.environ.get(name, "").lower() in ("1", "true", "yes", "on")]
wrong += [f"{name} is not set" for name in CASE["given"] if not os.environ.get(name)]
wrong += [f"{name} is {os.environ.get(name)!r}, wanted is {value!r}" for name, value in CASE["set"].items() if os.environ.get(name) not in told(value)]
print("\n".join(wrong) or "every variable is as it should be")
sys.exit(bool(wrong))
