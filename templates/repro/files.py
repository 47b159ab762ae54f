"""Compares the files of every installed package with the sizes in its RECORD. Exit 1 while one is missing or of another size, 0 when all are as installed."""

import importlib.metadata
import os
import sys

CASE = {"CASE": "HERE"}

wrong = []
for distribution in importlib.metadata.distributions(path=[path for path in sys.path if path.startswith(sys.prefix)]):
    for file in distribution.files or ():
        place = str(distribution.locate_file(file))
        if file.size is not None and (not os.path.isfile(place) or os.path.getsize(place) != file.size):
            wrong.append(f"{distribution.metadata['Name']}: {file} is {'of another size' if os.path.isfile(place) else 'missing'}")
print("\n".join(wrong[:20]) or f"every file has the size that its RECORD lists; looked for: {', '.join(CASE['files'])}")
sys.exit(bool(wrong))
