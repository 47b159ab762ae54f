"""Looks at flags below torch.backends as they are right after the import. Exit 1 while one is otherwise than in CASE, 0 when none is."""

import functools
import sys

import torch

CASE = {"CASE": "HERE"}

wrong = 0
for name, usual in CASE["flags"].items():
    value = functools.reduce(lambda part, word: getattr(part, word, None), name.split("."), torch.backends)
    print(f"torch.backends.{name} is {value!r}, usual is {usual!r}")
    wrong += value is not None and value != usual
sys.exit(wrong > 0)
