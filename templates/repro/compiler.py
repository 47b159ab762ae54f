"""Compiles two lines of C with the first compiler that is here, as torch.compile does. Exit 1 while there is none, or Python.h is missing, 0 when it works."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

CASE = {"CASE": "HERE"}

words = [os.environ[name].split()[0] for name in CASE["variables"] if os.environ.get(name)] + CASE["compilers"]
found = next((word for word in words if shutil.which(word)), None)
if found is None:
    sys.exit(f"no compiler is here: looked for {', '.join(words)}")
with tempfile.TemporaryDirectory() as folder:
    source = os.path.join(folder, "try.c")
    with open(source, "w") as file:
        file.write("#include <Python.h>\nint main(void) { return 0; }\n")
    done = subprocess.run([found, "-I", sysconfig.get_path("include"), "-c", source, "-o", os.path.join(folder, "try.o")], check=False)
print(f"{found} {'compiles with' if done.returncode == 0 else 'fails with'} Python.h of {sysconfig.get_path('include')}")
sys.exit(done.returncode != 0)
