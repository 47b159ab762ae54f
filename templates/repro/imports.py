"""Imports what the packages of CASE hold. Exit 1, with the traceback, while one raises; 0 when all can be imported."""

import importlib
import importlib.metadata
import re
import sys
import traceback

CASE = {"CASE": "HERE"}


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


held = importlib.metadata.packages_distributions()
wrong = 0
for package in CASE["packages"]:
    modules = [module for module, names in held.items() if normal(package) in map(normal, names) and module.isidentifier() and not module.startswith("_")]
    for module in modules or [package.replace("-", "_")]:
        try:
            importlib.import_module(module)
            print(f"import {module} works")
        except BaseException:
            traceback.print_exc()
            wrong += 1
sys.exit(wrong > 0)
