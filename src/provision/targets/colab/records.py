"""Records of a Colab target: its notebook, and a session that keeps running."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from provision.state import Record
from provision.targets.colab.file_names import NOTEBOOK_SUFFIX


@dataclass(frozen=True, slots=True)
class NotebookRecord(Record):
    """A notebook with its cell.

    Attributes:
        via: `via` of the spec: "browser" or "colab-cli".
        files: The sha256 of each file without additions by people, by name.
        nonce: The nonce that its report answers.
        payload: The sha256 of the payload.
        inputs: A digest of what the payload was made from.
        report: Where the cell copies the report to; "" for nowhere.
        folder: The folder of payload and report in a bucket; "" for none.
    """

    part: ClassVar[str] = "notebook"

    title: str
    via: str
    paths: tuple[str, ...]
    files: Mapping[str, str]
    nonce: str
    digest: str
    lock: str
    payload: str
    kind: str = "colab"
    report: str = ""
    folder: str = ""
    inputs: str = ""

    @property
    def notebook(self) -> str:
        """The name of the notebook's file; "" if the record names none."""
        return next((name for name in self.files if name.endswith(NOTEBOOK_SUFFIX)), "")

    def matches(self, name: str, content: bytes) -> bool:
        """Return whether a file is as it was rendered, without additions by people."""
        return hashlib.sha256(content).hexdigest() == self.files.get(name)


@dataclass(frozen=True, slots=True)
class SessionRecord(Record):
    """A machine at Colab: in the journal while it is used, in the state if it is kept."""

    part: ClassVar[str] = "session"

    title: str
    session: str
