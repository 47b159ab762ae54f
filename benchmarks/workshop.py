"""A temporary folder to measure in: copies of a spec and its lock, variables that leave the
caller's own files alone, and the command lines.
"""

from __future__ import annotations

import compileall
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import provision
from benchmarks.replay import Replay
from benchmarks.timing import Call, cost

ROOT = Path(__file__).parent.parent
_SHORTENED = Path(__file__).with_name("shortened.py")
# The first two would leave one side without bytecode, which costs more than anything measured here;
# the rest are not ours.
_DROPPED = (
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "UV_OFFLINE",
)


class Workshop:
    """The folder with all that is made in it. Costly things are made when first asked for, and
    once.
    """

    def __init__(
        self,
        folder: Path,
        spec: Path = ROOT / "specs" / "quickstart.yaml",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self._original = spec
        caller = os.environ if variables is None else variables
        kept = {name: value for name, value in caller.items() if name not in _DROPPED}
        caches = {
            "UV_CACHE_DIR": str(folder / "uv"),
            "PIP_CACHE_DIR": str(folder / "pip"),
            "HF_HOME": str(folder / "hf"),
        }
        self.environment = {
            **caches,
            **kept,
            "NO_COLOR": "1",
            "XDG_DATA_HOME": str(folder / "share"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        compileall.compile_dir(Path(provision.__file__).parent, quiet=2)

    def project(self, name: str, *, locked: bool = True) -> Path:
        """Copy spec (and lock) into a folder of that name, afresh, and return the path of the spec."""  # noqa: E501
        place = self.folder / name
        self.clear(place)
        place.mkdir()
        shutil.copy(self._original, place / "spec.yaml")
        if locked:
            shutil.copy(self._original.with_suffix(".lock"), place / "spec.lock")
        return place / "spec.yaml"

    def clear(self, path: Path) -> None:
        """Remove a folder made here; nothing happens when there is none."""
        if not path.is_relative_to(self.folder):
            raise ValueError(f"{path} is not in {self.folder}")
        shutil.rmtree(path, ignore_errors=True)

    def script(self, name: str, *words: str) -> Call:
        """A console script of this environment: `provision`, `check-jsonschema`."""
        return Call(
            (str(Path(sysconfig.get_path("scripts")) / name), *words), self.environment, self.folder
        )

    def python(self, *words: str) -> Call:
        """This interpreter."""
        return Call((sys.executable, *words), self.environment, self.folder)

    def shortened(self, *words: str, record: Path | None = None) -> Call:
        """`provision WORDS` up to the verification, its calls of uv recorded when asked for (see
        benchmarks.shortened).
        """
        return self.python("-P", str(_SHORTENED), str(record or "-"), *words)

    def recorded(self, name: str, *words: str, environment_of: Path | None = None) -> Replay:
        """Run `provision WORDS` up to the verification and return its calls of uv; `environment_of`
        is the spec whose environment they make.
        """
        notes = self.folder / f"{name}-calls"
        notes.mkdir()
        cost(self.shortened(*words, record=notes))
        made = environment_path(environment_of) if environment_of else None
        return Replay(notes, self.folder / f"{name}-by-hand", made)

    @cached_property
    def lock_by_hand(self) -> Replay:
        """The calls of uv that make the lock."""
        return self.recorded("lock", "lock", str(self.project("lock-recorded", locked=False)))

    @cached_property
    def apply_by_hand(self) -> Replay:
        """The calls of uv that make the environment from a lock."""
        spec = self.project("apply-recorded")
        return self.recorded("apply", "apply", str(spec), "--yes", "--locked", environment_of=spec)

    @cached_property
    def applied(self) -> Path:
        """The path of a spec whose environment was made and verified; that run has left bytecode
        behind.
        """
        spec = self.project("applied")
        cost(self.script("provision", "apply", str(spec), "--yes", "--locked"))
        return spec


def environment_path(spec: Path) -> Path:
    """Return the environment that was made for a spec with one target: the folder that its stable
    link points at, or will.
    """
    envs = spec.resolve().parent / ".provision" / "envs"
    return next(path for path in envs.iterdir() if path.is_dir() and not path.is_symlink())
