"""provision why: what the source line that a traceback quotes adds to the error below it."""

from __future__ import annotations

import pytest

from provision.verification.error_lookup.called_names import find_called_name
from provision.verification.error_lookup.log_text import blank_quoted_source

UNEXPECTED = "TypeError: {}() got an unexpected keyword argument 'dim'"
FRAME = '  File "/home/me/x.py", line 2, in <module>\n'


@pytest.mark.parametrize(
    ("function", "source", "name"),
    [
        ("nll_loss", "loss = F.nll_loss(out, y, dim=1)", "torch.nn.functional.nll_loss"),
        ("reduce_sum", "tf.reduce_sum(tf.square(x), dim=1)", "tensorflow.reduce_sum"),
        ("__init__", "self.norm = nn.LayerNorm(8, dim=1)", "torch.nn.LayerNorm"),
        ("LayerNorm.__init__", "nn.LayerNorm(8, dim=1)", "torch.nn.LayerNorm"),
        ("__new__", "torch.optim.lr_scheduler.StepLR(o)", "torch.optim.lr_scheduler.StepLR"),
        ("other", "F.nll_loss(out, y, dim=1)", ""),
        ("run", "run(dim=1)", ""),
        ("__init__", "self.build(dim=1)", ""),
        ("run", "", ""),
    ],
)
def test_the_called_name_is_the_full_one(function: str, source: str, name: str) -> None:
    assert find_called_name(UNEXPECTED.format(function), source) == name


@pytest.mark.parametrize(
    "error", ["ValueError: nll_loss() failed", "TypeError: 'int' object is not callable"]
)
def test_other_errors_name_no_call(error: str) -> None:
    assert find_called_name(error, "F.nll_loss(out)") == ""


def test_a_refused_call_is_named_once_below_its_error() -> None:
    error = UNEXPECTED.format("nll_loss")
    text = f"Traceback (most recent call last):\n{FRAME}    F.nll_loss(x, dim=1)\n{error}\n{error}"
    lines = blank_quoted_source(text).splitlines()
    assert lines[3:] == [error, "(in the call of torch.nn.functional.nll_loss)", error]
    assert lines[2] == ""


def test_the_marked_line_of_a_notebook_is_the_source() -> None:
    error = UNEXPECTED.format("one_hot")
    text = f"<ipython-input-3-0a> in f(x)\n      1 y = x\n----> 2 F.one_hot(y, dim=1)\n\n{error}"
    assert blank_quoted_source(text).endswith("(in the call of torch.nn.functional.one_hot)")


@pytest.mark.parametrize(
    "error",
    [
        "AttributeError: 'NoneType' object has no attribute 'add_'",
        "AttributeError: can't set attribute",
        "AttributeError: property 'x' of 'Y' object has no setter",
        "KeyError: 139737672243200",
    ],
)
def test_an_error_without_words_shows_its_source(error: str) -> None:
    lines = blank_quoted_source(f"{FRAME}    d.grad.add_(g)\n{error}\nlater").splitlines()
    assert lines[2:] == [error, "(in the line d.grad.add_(g))", "later"]


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("raise RuntimeError('CUDA out of memory')", "KeyError: 7"),
        ("d.grad.add_(g)", "KeyError: 'weight'"),
        ("d.grad.add_(g)", "RuntimeError: CUDA error: out of memory"),
    ],
)
def test_a_source_with_words_or_below_a_full_message_is_not_shown(source: str, error: str) -> None:
    assert blank_quoted_source(f"{FRAME}    {source}\n{error}").splitlines()[1:] == ["", error]


def test_a_long_source_is_cut() -> None:
    text = blank_quoted_source(f"{FRAME}    {'x' * 500}\nKeyError: 7")
    assert len(text.splitlines()[-1]) < 300
