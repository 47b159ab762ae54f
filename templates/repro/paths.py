"""Writes a small file into each folder of CASE and removes it again. Exit 1 while one cannot be written, 0 when all can."""

import os
import sys
import tempfile

CASE = {"CASE": "HERE"}

wrong = 0
for folder in [os.path.expandvars(os.path.expanduser(one)) for one in CASE["folders"]]:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".repro-") as file:
            file.write(b"a line\n")
            file.flush()
            os.fsync(file.fileno())
        print(f"{folder} can be written")
    except OSError as error:
        print(f"{folder}: {error.strerror}")
        wrong += 1
sys.exit(wrong > 0)
