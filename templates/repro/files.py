"""Compares the files of every installed package with its RECORD. Exit 1 while one is missing or has another size or sha256, 0 when all are as listed."""

import base64
import hashlib
import importlib.metadata
import os
import sys

CASE = {"CASE": "HERE"}


def flaw_of(place, file):
    if not os.path.isfile(place):
        return "missing"
    if file.size is not None and os.path.getsize(place) != file.size:
        return "of another size"
    with open(place, "rb") as content:
        digest = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, content.read()).digest()).decode()
    return "" if digest.rstrip("=") == file.hash.value.rstrip("=") else "changed"


wrong = []
for distribution in importlib.metadata.distributions(path=[path for path in sys.path if path.startswith(sys.prefix)]):
    found = ((file, flaw_of(str(distribution.locate_file(file)), file)) for file in distribution.files or () if file.hash is not None)
    wrong += [f"{distribution.metadata['Name']}: {file} is {flaw}" for file, flaw in found if flaw]
print("\n".join(wrong[:20]) or f"every file is as its RECORD lists it; looked for: {', '.join(CASE['files'])}")
sys.exit(bool(wrong))
