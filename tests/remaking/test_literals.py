"""The texts of which every match of an expression contains one."""

from __future__ import annotations

import pytest

from remaking.literals import required_texts


@pytest.mark.parametrize(
    ("regex", "texts"),
    [
        ("out of memory", ("out of memory",)),
        (r"CUDA error: (\d+) at line", ("CUDA error: ",)),
        ("no kernel|old driver", ("no kernel", "old driver")),
        ("(?:no kernel|no driver) found here", (" found here",)),
        (r"\w+ (?:failed|aborted)", ("aborted", "failed")),
        ("(?:maybe )?found(?: once)*", ("found",)),
        ("(?:found )+", ("found ",)),
        ("(?:found )*", ()),
        ("found|", ()),
        ("found|a", ()),
        ("a.b.c", ()),
        ("(?i)found", ()),
        ("(?i:found) nothing", (" nothing",)),
        (r"(?<=before )x{4,}", ()),
        ("(?!never)always", ("always",)),
        ("(?>always) or", ("always",)),
        ("|".join(f"{chr(0x4E00 + number)}text" for number in range(70)), ()),
    ],
)
def test_texts_of_an_expression(regex: str, texts: tuple[str, ...]) -> None:
    assert required_texts(regex) == texts
