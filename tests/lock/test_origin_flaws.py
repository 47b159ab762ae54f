"""Sources of packages in a lock that somebody has edited: each flaw is named."""

from __future__ import annotations

import pytest

from provision.lock.origins import LockedCode, LockedOrigin, find_code_flaws, find_origin_flaws

DIGEST = "sha256:" + 64 * "0"
COMMIT = 40 * "a"
URL = "https://git.example.org/ours.git"
FOLDER = {"metadata": DIGEST, "path": "packages/ours"}
REPOSITORY = {"metadata": DIGEST, "git": URL, "commit": COMMIT}
BUILD = (("setuptools==80.9.0", (64 * "1",)),)


@pytest.mark.parametrize(
    "fields",
    [
        FOLDER,
        {**FOLDER, "path": ".", "build": BUILD},
        {**FOLDER, "path": "dist/ours-1.0..2-py3-none-any.whl"},
        REPOSITORY,
        {**REPOSITORY, "subdirectory": "python/ours"},
        {**REPOSITORY, "git": "ssh://git@git.example.org/ours.git"},
    ],
)
def test_what_lock_writes_has_none(fields: dict[str, str]) -> None:
    assert list(find_origin_flaws(LockedOrigin(**fields))) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({**FOLDER, "metadata": "sha256:0"}, "the digest of its metadata is not"),
        ({**FOLDER, "git": URL, "commit": COMMIT}, "names a path and a repository, or neither"),
        ({"metadata": DIGEST}, "names a path and a repository, or neither"),
        ({**FOLDER, "path": "/etc"}, "'/etc' leaves the project"),
        ({**FOLDER, "path": "../other"}, "'../other' leaves the project"),
        ({**FOLDER, "path": "packages/../../other"}, "leaves the project"),
        ({**REPOSITORY, "subdirectory": "../other"}, "leaves the repository"),
        ({**REPOSITORY, "subdirectory": "/etc"}, "leaves the repository"),
        ({**REPOSITORY, "git": "http://git.example.org/ours.git"}, "is not https or ssh"),
        ({**REPOSITORY, "git": "https://me:secret@git.example.org/x"}, "or has a password"),
        ({**REPOSITORY, "git": "ssh://me:secret@git.example.org/x"}, "or has a password"),
        ({**REPOSITORY, "git": f"{URL}?token=secret"}, "is not https or ssh"),
        ({**REPOSITORY, "commit": "main"}, "'main' is not a full commit"),
        ({**FOLDER, "build": (("setuptools>=80", (64 * "1",)),)}, "is not NAME==VERSION"),
        ({**FOLDER, "build": (("setuptools==80.9.0", ("1",)),)}, "is not NAME==VERSION"),
    ],
)
def test_one_flaw_is_named(fields: dict[str, str], words: str) -> None:
    (flaw,) = find_origin_flaws(LockedOrigin(**fields))  # type: ignore[arg-type]
    assert words in flaw


def test_code_has_the_same_rules() -> None:
    assert list(find_code_flaws(LockedCode(URL, COMMIT))) == []
    assert len(list(find_code_flaws(LockedCode("file:///srv/x", "v1.0")))) == 2
