"""Compares the versions of installed packages with those in CASE (None: not installed). Exit 1 while one differs, 0 when all are the same."""

import importlib.metadata
import sys

CASE = {"CASE": "HERE"}


def installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


wrong = 0
for name, wanted in CASE["packages"].items():
    found = installed(name)
    print(f"{name}: {found or 'not installed'}, wanted is {wanted or 'that it is not installed'}")
    wrong += found != wanted
sys.exit(wrong > 0)
