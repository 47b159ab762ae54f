"""Methods that replace those of a class in another package, read from small wheels."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.remaking.test_window_names import tree_of, uses_of
from tests.remaking.test_windows import windows_of
from windows.definitions import Definitions
from windows.overrides import read_signature, written_signature

TRAINER = """
class Base:
    def step(self): self.loss(1, 2)
class Trainer(Base):
    def train(self):
        self.log({}, 1.0)
        self.loss(1, num_items=2)
        if version("x") > 1: self.guarded(1, 2)
        try:
            self.tried(1, 2)
        except TypeError:
            self.tried(1)
        run(self.passed)
        self.spread(*a, **b)
    def log(self, logs, start_time): pass
    def loss(self, model, num_items=None): self.log({}, 1, 2, 3)
    def guarded(self, a, b): pass
    def tried(self, a, b): pass
    def passed(self, a): pass
    def spread(self, a): pass
    def unused(self): pass
"""


@pytest.mark.parametrize(
    ("method", "signature", "state"),
    [
        ("log", "(logs, start_time=)!", "absent"),  # Trainer.loss passes four
        ("log", "(logs, start_time=)!loss", "present"),
        ("log", "(logs, *more)!", "present"),
        ("log", "(logs)!loss", "absent"),
        ("log", "(logs, start_time, needed)!loss", "absent"),
        ("loss", "(model)!", "absent"),
        ("loss", "(model, num_items=)!", "present"),
        ("loss", "(model, *, num_items=)!", "absent"),  # Base.step passes two
        ("loss", "(model, *, num_items=)!step", "present"),
        ("loss", "(model, *, num_items)!step", "present"),
        ("loss", "(model, *, other)!step", "absent"),
        ("loss", "(model, **more)!step", "present"),
        ("loss", "(model, num_items, other)!train", "absent"),
        ("guarded", "(a)!", "present"),
        ("tried", "(a)!", "present"),
        ("passed", "()!", "undecided"),
        ("spread", "(a, b)!", "present"),
        ("unused", "(a)!", "present"),
        ("missing", "(a)!", "undecided"),
    ],
)
def test_calls_that_a_signature_takes(
    tmp_path: Path, method: str, signature: str, state: str
) -> None:
    definitions = Definitions(tree_of(tmp_path, {"torch/__init__.py": TRAINER}))
    assert definitions.override(f"torch.Trainer.{method}", signature).state == state


def test_signatures_are_read_as_they_were_written() -> None:
    text = """
class Own:
    def plain(self, a, b=1, *, c, d=2, **e): super().plain(a)
    def long(self, a, /, *rest, c): pass
    def anything(self, *rest, **more): pass
    def __init__(self, a): pass
    @property
    def read(self): pass
"""
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.ClassDef)
    written = {method.name: signature for method, signature in written_signature(node)}
    replaced = "__init__,anything,long,read"
    assert written == {
        "plain": f"(a, b=, *, c, d=, **e)!{replaced}",
        "long": "(a, *rest, c)!__init__,anything,read",
    }
    signature, others = read_signature(written["plain"])
    assert signature == (("a",), ("b",), ("c", "d="), False, True)
    assert others == set(replaced.split(","))


def test_uses_through_the_base_of_a_class(tmp_path: Path) -> None:
    main = """
from transformers import Trainer
class Main(Trainer):
    own = 1
    def log(self, logs):
        super().log(logs, start_time=1)
        self.store(metric=1)
        self.own(x=1)
        self.log(x=1)
"""
    source = "_import_structure = {'main': ['Main']}\nsys.modules[__name__] = _LazyModule()"
    found = uses_of(tmp_path, source, main=main)
    assert found == {
        "transformers.Trainer error",
        "transformers.Trainer.log((logs)!) warning",
        "transformers.Trainer.log warning",
        "transformers.Trainer.log(start_time) warning",
        "transformers.Trainer.store warning",
        "transformers.Trainer.store(metric) warning",
    }


def test_a_window_of_a_replaced_method(tmp_path: Path) -> None:
    base = "class Base:\n    def run(self): self.log({})\n    def log(self, logs): pass"
    new = "class Base:\n    def run(self): self.log({}, 1)\n    def log(self, logs, at): pass"
    own = """
from pyarrow import Base
class PeftModel(Base):
    def log(self, logs): pass
"""
    found = windows_of(tmp_path, {"1.0": own}, has={"1.0": base, "1.1": base, "2.0": new})
    assert found == [
        (
            "1.0.. pyarrow<2.0 pyarrow.Base.log(logs) warning peft/__init__.py:4 | "
            "pyarrow/__init__.py:3 in 1.1, not in 2.0"
        )
    ]
