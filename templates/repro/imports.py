"""Imports the modules of the packages in CASE.

Exits 1, with the traceback, if an import fails; 0 if all work.
"""

import importlib
import importlib.metadata
import re
import sys
import traceback

CASE = {"CASE": "HERE"}


def normalize(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def modules_of(package):
    modules = [
        module
        for module, packages in importlib.metadata.packages_distributions().items()
        if module.isidentifier() and normalize(package) in map(normalize, packages)
    ]
    return [name for name in modules if name[0] != "_"] or [package.replace("-", "_")]


failures = 0
for package in CASE["packages"]:
    for module in modules_of(package):
        try:
            importlib.import_module(module)
            print(f"import {module} works")
        except BaseException:
            traceback.print_exc()
            failures += 1
sys.exit(failures > 0)
