"""Addresses of repositories: which are accepted in a spec."""

from __future__ import annotations

import pytest
from pydantic_core import PydanticCustomError

from provision.package_origins import check_git_url

ADDRESS = "write an address such as"


@pytest.mark.parametrize(
    "url", ["https://github.com/huggingface/trl", "ssh://git@github.com/huggingface/trl.git"]
)
def test_accepted(url: str) -> None:
    assert check_git_url(url) == url


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https:///huggingface/trl", ADDRESS),
        ("http://github.com/huggingface/trl", ADDRESS),
        ("file:///srv/trl.git", ADDRESS),
        ("https://github.com/hugging face/trl", ADDRESS),
        ("https://[github.com/trl", ADDRESS),
        ("git@github.com:huggingface/trl.git", "ssh:// before it"),
        ("https://me@github.com/huggingface/trl", "credential"),
        ("ssh://git:secret@github.com/huggingface/trl", "credential"),
    ],
)
def test_refused(url: str, words: str) -> None:
    with pytest.raises(PydanticCustomError, match=words):
        check_git_url(url)
