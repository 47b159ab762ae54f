"""Holds installed packages against what others require of them, as in CASE. Exit 1 while a requirement is not met, 0 when all are."""

import importlib.metadata
import operator
import re
import sys

CASE = {"CASE": "HERE"}
OPERATORS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "==": operator.eq, "!=": operator.ne, "~=": operator.ge}


def installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def numbers(version, places=4):
    parts = [int(part) for part in re.findall(r"\d+", re.match(r"[\d.]*", version)[0])][:places]
    return parts + [0] * (places - len(parts))


def meets(version, sign, bound):
    places = bound.count(".") if bound.endswith(".*") or sign == "~=" else 4
    prefix = numbers(version, places) == numbers(bound, places)
    return prefix == (sign == "==") if bound.endswith(".*") else OPERATORS[sign](numbers(version), numbers(bound)) and (sign != "~=" or prefix)


wrong = 0
for package, reported in CASE["requirements"]:
    if installed(package) is None:
        sys.exit(f"{package} is not installed in {sys.prefix}: run this with the Python of the environment")
    name, wanted = re.match(r"([\w.-]+)(.*)", reported).groups()
    lines = [line.split(";")[0].replace(" ", "") for line in importlib.metadata.requires(package) or []]
    still = any(line.startswith(name) and sorted(line[len(name) :].strip("()").split(",")) == sorted(wanted.split(",")) for line in lines)
    met = installed(name) is not None and all(meets(installed(name), *pair) for pair in re.findall(r"(>=|<=|==|!=|~=|>|<)([\w.*+]+)", wanted))
    print(f"{package} {'needs' if still else 'no longer needs'} {reported}, installed is {installed(name)}{': not met' * (still and not met)}")
    wrong += still and not met
sys.exit(wrong > 0)
