"""What conda channels are asked and what they answer, and the effect that makes a prefix of it.
Each names everything it needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class CondaChannel(NamedTuple):
    """A channel by the name that a spec gives it, and its address; "" for the public channel of
    that name.
    """

    name: str
    url: str = ""


class CondaMatchSpec(NamedTuple):
    """A conda package that is asked for: version and build as conda writes them ("" for any), and
    the name of the one channel that it comes from.
    """

    name: str
    version: str = ""
    build: str = ""
    channel: str = ""

    def __str__(self) -> str:
        """Return it as people write it."""
        return " ".join(part for part in (self.name, self.version, self.build) if part)


class CondaRecord(NamedTuple):
    """One file of a channel as it was locked: what it is, where it lies, its sha256 and md5
    (hexadecimal), and what it needs (match specs).
    """

    name: str
    version: str
    build: str
    number: int
    noarch: str
    channel: str
    subdir: str
    file: str
    sha256: str
    md5: str
    depends: tuple[str, ...]
    constrains: tuple[str, ...]

    @property
    def stem(self) -> str:
        """Return name, version and build as conda joins them in the names of files."""
        return f"{self.name}-{self.version}-{self.build}"


class CondaSolveRequest(NamedTuple):
    """What is to be solved for one platform: wishes, bounds on what may come with them, and the
    virtual packages (name, version) of the target.

    `keep` are records to stay with where they still fit.
    """

    platform: str
    channels: tuple[CondaChannel, ...]
    match_specs: tuple[CondaMatchSpec, ...]
    virtual_packages: tuple[tuple[str, str], ...]
    constraints: tuple[CondaMatchSpec, ...] = ()
    exclude_newer: str | None = None
    keep: tuple[CondaRecord, ...] = ()


class CondaProgram(NamedTuple):
    """What makes conda environments on this machine: its name, its path (None: py-rattler, in our
    own process), and why it was taken.
    """

    name: str
    path: Path | None
    reason: str


class CreateCondaPrefix(NamedTuple):
    """Make a conda environment at `path` of exactly these records, every file checked against its
    hash; nothing is there before.
    """

    path: Path
    platform: str
    channels: tuple[CondaChannel, ...]
    records: tuple[CondaRecord, ...]
    match_specs: tuple[str, ...]
    """What was asked for by name (match specs), for conda's own list of it."""
    program: CondaProgram
