"""Content of files of other tools as values: packages, settings of a spec, and what is left over.

Every value has the span of the text that it comes from, so that findings about an imported spec
can point at the original lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from provision.diagnostics import Route, Span

if TYPE_CHECKING:
    from provision.effects.system import Reader

Manager = Literal["pip", "conda"]


class SourceText(NamedTuple):
    """A text that findings point at: a whole file, or one cell of a notebook.

    Args:
        name: Name in `Span.file` and in output, such as "requirements.txt" or
            "train.ipynb:cell 3" (cells count from 1 and include text cells, as in Jupyter).
        content: The decoded text; of a cell its source.
        file: Name of the file on disk, such as "train.ipynb".
        file_lines: For each line of `content`, its 1-based line in the file; () if they are equal.
    """

    name: str
    content: str
    file: str
    file_lines: tuple[int, ...] = ()


class ImportedPackage(NamedTuple):
    """A package with the line it comes from.

    Args:
        name: Canonical name (PEP 503).
        requirement: What `packages` of a spec takes: PEP 508 with extras, specifier and marker,
            without a local version, URL, path or hash. Packages of conda have the name and the
            specifier in PEP 440 if it can be translated, else the text of conda.
        span: The requirement in its file.
        manager: Which tool installs it. Packages of conda that exist on the package index under
            another name keep the name of conda; `merge` translates them.
        index: Name of its index in `ImportedFile.indexes`; None for the default index. Of a
            package of conda, the channel that it names.
        is_constraint: True for a line of a constraints file: it only limits a version.
        is_exact: True for an exact version of a resolved set (pip freeze, a lock, conda export),
            which also lists packages that nobody chose.
        environment: Name of the group or extra it belongs to, such as "dev"; "" for the main one.
        source: The fields of a package from a path or a repository, such as git and rev, with
            their values; () for one of an index.
    """

    name: str
    requirement: str
    span: Span
    manager: Manager = "pip"
    index: str | None = None  # type: ignore[assignment]
    is_constraint: bool = False
    is_exact: bool = False
    environment: str = ""
    source: tuple[tuple[str, Any], ...] = ()


class Setting(NamedTuple):
    """A value of a spec other than a package: its route, such as ("python",), and its origin.

    The value of ("python",) is a minor version such as "3.11", or a range such as ">=3.10".
    """

    route: Route
    value: Any
    span: Span


LeftoverKind = Literal["no-field", "refused", "unread"]
"""Why a spec does not contain something: it has no field for it, the tool that the file belongs to
refuses it too, or it is in another file that was not read.
"""


class Leftover(NamedTuple):
    """Something in a file that a spec cannot contain: what, why, and what to do instead.

    `missing_file` is a file that is named and was not read, relative to an unknown folder.
    """

    span: Span
    message: str
    why: str = ""
    help: str = ""
    kind: LeftoverKind = "no-field"
    missing_file: str = ""


class ImportedFile(NamedTuple):
    """The content of a file and of all files that it includes.

    Args:
        format: Name of the format in messages, such as "requirements file".
        texts: The texts that spans point at, by `SourceText.name`.
        indexes: URLs of package indexes without credentials, by the name they get in a spec.
        is_resolved: True if the file lists a complete resolved set.
    """

    format: str
    texts: Mapping[str, SourceText]
    packages: tuple[ImportedPackage, ...] = ()
    settings: tuple[Setting, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    indexes: Mapping[str, str] = {}
    is_resolved: bool = False


class Conflict(NamedTuple):
    """Two values of which a spec can have only one; the first is taken.

    Args:
        message: Both values.
        where: The value that is taken.
        other: The value that is not.
    """

    message: str
    where: Span
    other: Span


class ImportedProject(NamedTuple):
    """The content of several files as that of one spec.

    Args:
        packages: One package per name and marker.
        settings: One value per route, except that ("python",) may be a range such as ">=3.10".
        conda_packages: Packages that only channels of conda have, in conda's syntax.
        indexes: URLs of the indexes that packages name.
        leftovers: What the spec does not contain, in the order of the files.
        conflicts: Values that contradict one another.
        texts: The texts that spans point at.
        needs_cuda: True if the files contain packages of a CUDA build.
    """

    packages: tuple[ImportedPackage, ...]
    settings: tuple[Setting, ...] = ()
    conda_packages: tuple[ImportedPackage, ...] = ()
    indexes: Mapping[str, str] = {}
    leftovers: tuple[Leftover, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    texts: Mapping[str, SourceText] = {}
    needs_cuda: bool = False


class ImportContext(NamedTuple):
    """What readers of formats get besides the text.

    Args:
        root: Folder that `-r`, `-c` and other references must not leave, with links resolved.
        reader: Reads further files that the first one names.
    """

    root: Path
    reader: Reader


class FormatReader(Protocol):
    """Reads one format. May read further files; never executes, imports or downloads anything."""

    def __call__(self, path: Path, text: str, context: ImportContext) -> ImportedFile:
        """Return the content of a file.

        Args:
            path: The file as it was named; its text form is the name in spans.
            text: The decoded text.
            context: The root and the reader of further files.

        Raises:
            SourceError: the text is not of this format (broken JSON, TOML or YAML).
        """
        ...
