"""Compiles two lines of C with the first compiler on the PATH, as torch.compile does.

Exits 1 if there is no compiler or Python.h is missing, 0 if it works.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

CASE = {"CASE": "HERE"}
SOURCE = "#include <Python.h>\nint main(void) { return 0; }\n"

declared = [os.environ[name].split()[0] for name in CASE["variables"] if os.environ.get(name)]
candidates = declared + CASE["compilers"]
compiler = next((name for name in candidates if shutil.which(name)), None)
if compiler is None:
    sys.exit(f"no compiler on the PATH: looked for {', '.join(candidates)}")
headers = sysconfig.get_path("include")
with tempfile.TemporaryDirectory() as folder:
    source, compiled = os.path.join(folder, "try.c"), os.path.join(folder, "try.o")
    with open(source, "w") as file:
        file.write(SOURCE)
    argv = [compiler, "-I", headers, "-c", source, "-o", compiled]
    works = subprocess.run(argv, check=False).returncode == 0
print(f"{compiler} {'compiles' if works else 'cannot compile'} with Python.h from {headers}")
sys.exit(not works)
