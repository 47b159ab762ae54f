"""The calls of uv that the command line made, made again by hand: same words, same variables, same
files, in a folder that stays.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import Call

_WORK = ("lock", "export", "venv", "pip")
"""The calls that do the work; looking for an interpreter is ours to do, a person names one."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Calls of uv written down in `recorded` (see benchmarks.shortened), to be made again in
    `folder`.

    `environment_path` is the environment that the recorded calls made, if they made one; by hand
    it is made as `folder`/env.
    """

    recorded: Path
    folder: Path
    environment_path: Path | None = None

    def prepare(self) -> tuple[Call, ...]:
        """Lay out the files as they lay before the first call, remove what an earlier replay made,
        and return the calls.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        return tuple(self._calls())

    def _calls(self) -> Iterator[Call]:
        moved: dict[str, Path] = (
            {}
            if self.environment_path is None
            else {str(self.environment_path): self.folder / "env"}
        )
        for number in range(len(list(self.recorded.glob("*.json")))):
            kept = json.loads((self.recorded / f"{number}.json").read_text())
            if kept["argv"][1] not in _WORK:
                continue
            here = self._laid_out(number, kept["cwd"], moved)
            argv = tuple(_moved(word, moved) for word in kept["argv"])
            yield Call(
                argv,
                {name: _moved(value, moved) for name, value in kept["environment"].items()},
                here,
            )

    def _laid_out(self, number: int, cwd: str | None, moved: dict[str, Path]) -> Path | None:
        if cwd is None:
            return None
        if cwd not in moved:
            moved[cwd] = self.folder / f"project{number}"
            shutil.copytree(self.recorded / str(number), moved[cwd], symlinks=True)
            project = moved[cwd] / "pyproject.toml"
            project.write_text(_moved(project.read_text(), moved))
        return moved[cwd]


def _moved(text: str, moved: dict[str, Path]) -> str:
    for old, new in moved.items():
        text = text.replace(old, str(new))
    return text
