"""Opens a login shell as a new terminal does, and looks at variables (None: to be unset). Exit 1 while one is otherwise than in CASE, 0 when none is."""

import json
import os
import pwd
import subprocess
import sys

CASE = {"CASE": "HERE"}
MARK = "here the variables begin:"

user = pwd.getpwuid(os.getuid())
shell = user.pw_shell if os.path.basename(user.pw_shell) in ("sh", "bash", "dash", "zsh", "ksh") else "/bin/sh"
clean = {"HOME": os.environ.get("HOME", user.pw_dir), "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": shell, "TERM": "dumb", "PATH": os.defpath}
words = [shell, "-lc", f'printf "%s" "{MARK}"; exec "$0" -c "$1"', sys.executable, "import json, os; print(json.dumps(dict(os.environ)))"]
try:
    told = subprocess.run(words, env=clean, cwd="/", capture_output=True, text=True, check=False, timeout=20).stdout
    found = json.loads(told.rpartition(MARK)[2])
except (subprocess.TimeoutExpired, ValueError):
    print(f"a login shell ({shell}) does not answer")
    sys.exit(2)
wrong = []
for name, value in CASE["set"].items():
    wanted = os.path.expandvars(value) if value else None
    if (value is None and found.get(name)) or (value is not None and found.get(name, wanted) != wanted):
        wrong.append(f"a login shell sets {name} to {found[name]!r}, wanted is {wanted!r}")
print("\n".join(wrong) or "a login shell sets nothing against what is wanted")
sys.exit(bool(wrong))
