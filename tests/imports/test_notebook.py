"""A notebook as a value: cells with their lines, installs, imports and refusals."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from provision.errors import SourceError
from provision.imports.notebook import MAX_NOTEBOOK_BYTES, NotebookFile, read_notebook
from provision.imports.notebook_expressions import find_colab_condition
from provision.imports.notebook_magics import parse_python, replace_magics

CASES = Path(__file__).parent / "cases"
COLAB = {"accelerator": "GPU", "colab": {"gpuType": "T4"}}


def to_json(*sources: str, metadata: dict[str, Any] | None = None, indent: int | None = 1) -> str:
    cells = [{"cell_type": "code", "source": source.splitlines(True)} for source in sources]
    document = {"cells": cells, "metadata": metadata or {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=indent)


def read(*sources: str, metadata: dict[str, Any] | None = None) -> NotebookFile:
    return read_notebook(Path("n.ipynb"), to_json(*sources, metadata=metadata))


def test_cells_have_names_lines_and_the_strings_they_are_made_of() -> None:
    text = to_json('import os\nprint("é")', "x = 1\n\ny = 2\n")
    notebook = read_notebook(Path("n.ipynb"), text.encode())
    assert [cell.name for cell in notebook.cells] == ["n.ipynb:cell 1", "n.ipynb:cell 2"]
    lines = text.splitlines()
    for cell in notebook.cells:
        sources = cell.source.splitlines()
        for source, number in zip(sources, cell.text.file_lines, strict=False):
            assert json.loads(lines[number - 1].strip().rstrip(",")).rstrip("\n") == source
        for string in cell.strings:
            part = json.loads(text[string.start : string.end])
            assert cell.source[string.offset : string.offset + len(part)] == part


def test_all_lines_of_a_source_in_one_string_are_at_its_line() -> None:
    text = json.dumps({"cells": [{"cell_type": "code", "source": "a\nb\nc"}]}, indent=2)
    (cell,) = read_notebook(Path("n.ipynb"), text).cells
    assert set(cell.text.file_lines) == {text[: text.index('"a')].count("\n") + 1}
    assert len(cell.text.file_lines) == 3


def test_installs_are_in_order_with_packages_options_and_spans() -> None:
    notebook = read(
        "import torch\n!pip install -U --quiet peft==0.12.0 einops",
        "if True:\n    %conda install numpy=1.26",
    )
    first, second = notebook.installs
    assert (first.cell, first.tool, first.options) == (1, "pip", ("-U", "--quiet"))
    assert [package.requirement for package in first.packages] == ["peft==0.12.0", "einops"]
    assert (first.span.file, first.span.start.line, first.span.start.column) == (
        "n.ipynb:cell 1",
        2,
        2,
    )
    assert not first.is_conditional
    assert (second.cell, second.tool, second.is_conditional) == (2, "conda", True)
    (module,) = notebook.imports
    assert (module.module, module.cell, module.span.start.line) == ("torch", 1, 1)


def test_imports_have_full_names_and_conditions() -> None:
    notebook = read("import a.b as c, d\nfrom e.f import g\nfrom . import h\nif x:\n    import i")
    assert [(part.module, part.is_conditional) for part in notebook.imports] == [
        ("a.b", False),
        ("d", False),
        ("e.f", False),
        ("i", True),
    ]


def test_the_branch_of_the_other_place_is_not_taken() -> None:
    source = "if 'google.colab' in sys.modules:\n    !pip install a\nelse:\n    !pip install b\n"
    for metadata, taken in ((COLAB, "a"), ({}, "b")):
        notebook = read(source, metadata=metadata)
        assert [package.name for package in notebook.content.packages] == [taken]
        assert [install.is_taken for install in notebook.installs] == [taken == "a", taken == "b"]


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("'COLAB_' in ''.join(os.environ)", True),
        ("'COLAB_' not in ''.join(os.environ)", False),
        ("'google.colab' in str(get_ipython())", True),
        ("not IN_COLAB", False),
        ("IN_COLAB == False", False),
        ("os.environ.get('COLAB_GPU') is None", False),
        ("os.environ.get('COLAB_GPU') is not None", True),
        ("os.environ.get('COLAB_GPU')", True),
        ("not (IN_COLAB is False)", True),
        ("IN_COLAB and x", True),
        ("IN_COLAB or x", None),
        ("not (IN_COLAB or x)", False),
        ("not (not IN_COLAB and x)", None),
        ("torch.cuda.is_available()", None),
    ],
)
def test_conditions_about_colab_are_understood(test: str, expected: bool | None) -> None:
    module = parse_python(test)
    assert module is not None
    (statement,) = module.body
    assert find_colab_condition(statement.value) is expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("source", "magics"),
    [
        ("!ls\n%time x\nout = !pwd\ny = %who\nobj?\n??z", 6),
        ("x = (1\n  % 2)\ns = '''\n!ls\n'''\na = b \\\n  % c\n# !ls", 0),
        ("if x:\n    !pip install a \\\n      b\nelse:\n    pass", 1),
        ("pip install a", 1),
        ("pip = 1\npip\nconda in x", 0),
    ],
)
def test_lines_of_ipython_are_replaced_by_calls(source: str, magics: int) -> None:
    python, found = replace_magics(source)
    assert len(found) == magics
    assert parse_python(python) is not None
    assert python.count("\n") == source.count("\n")
    assert all(source[magic.start : magic.end] == magic.text for magic in found)


def test_a_cell_that_does_not_parse_is_read_by_lines() -> None:
    notebook = read("print 'x'\nimport numpy\n!pip install a\n", "import b")
    assert notebook.unparsed == (1,)
    assert [install.cell for install in notebook.installs] == [1]
    assert [part.module for part in notebook.imports] == ["numpy", "b"]


def test_commands_that_install_nothing_are_listed_too() -> None:
    notebook = read("!cd data && ls\n!export X=1\n")
    assert [part.command.text for part in notebook.commands] == ["cd data", "ls", "export X=1"]
    assert notebook.installs == ()


@pytest.mark.parametrize(
    "source",
    [
        "__magic__(0)\n__magic__(99)\n__magic__()\n__magic__(x)",
        "os.system(" + "'a' + " * 900 + "'b')",
        "x" + ".y" * 900 + "(1)",
        "if a: pass\n" + "elif b: pass\n" * 900,
        "(" * 5000,
        "x = '\0'",
        "!",
        "%",
        "%%",
        "import os; os.system()",
        "import subprocess; subprocess.run([])",
    ],
)
def test_code_that_nobody_writes_is_read_without_an_error(source: str) -> None:
    notebook = read(source + "\n!pip install a", "!pip install b")
    assert "b" in [package.name for package in notebook.content.packages]


def test_offsets_count_characters_and_lines_of_python() -> None:
    notebook = read("x = 'é\u2028\x0c'; import os\nos.system('pip install a')\ny = 'é'; import b")
    assert [part.span.start[:2] for part in notebook.imports] == [(1, 12), (3, 10)]
    (install,) = notebook.installs
    assert install.span.start[:2] == (2, 12)


def test_metadata_name_the_card() -> None:
    assert read("x", metadata=COLAB).gpu == "T4"
    assert read("x", metadata=COLAB).is_for_colab
    assert read("x").gpu is None
    assert not read("x").is_for_colab
    assert read("x", metadata={"accelerator": "TPU", "colab": {"gpuType": "V2-8"}}).gpu is None


def test_a_very_long_cell_is_noted_and_not_read() -> None:
    notebook = read(f"!pip install a\nx = '{'A' * (1 << 20)}'")
    assert notebook.installs == ()
    (leftover,) = notebook.content.leftovers
    assert "was not read" in leftover.message


REFUSED: Sequence[tuple[bytes, str]] = [
    (b" " * (MAX_NOTEBOOK_BYTES + 1), "n.ipynb is larger than 64 MiB"),
    (b'{"cells": [\xff]}', "n.ipynb:1: byte 0xff is not valid UTF-8"),
    (b'{"cells": ' + b"[" * 200_000, "n.ipynb has too many levels of nesting"),
    (b'{"cells": [' + b"1" * 5000 + b"]}", "n.ipynb: the notebook is not valid JSON"),
    (b"", "n.ipynb:1:1: the notebook is not valid JSON"),
    (b"[]", "n.ipynb is not a notebook"),
    (b'{"cells": {}}', "n.ipynb is not a notebook"),
]


@pytest.mark.parametrize(("raw", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_other_files_are_refused(raw: bytes, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_notebook(Path("n.ipynb"), raw)
    assert caught.value.what == message
    assert caught.value.why or caught.value.hint


def test_a_byte_order_mark_is_ignored() -> None:
    notebook = read_notebook(Path("n.ipynb"), b"\xef\xbb\xbf" + to_json("!pip install a").encode())
    assert [package.name for package in notebook.content.packages] == ["a"]


@pytest.mark.parametrize(
    "sources",
    [
        ("from subprocess import run as go", "x = 1\ngo(['pip', 'install', 'a'])"),
        ("from subprocess import check_call\ny = 2\ncheck_call('pip install a', shell=True)",),
        ("import subprocess as sp", "if x:\n    for y in z:\n        sp.run('pip install a')"),
        ("from os import system", "system('pip install a')"),
        ("from IPython import get_ipython", "get_ipython().system('pip install a')"),
        ("import IPython\nIPython.get_ipython().system('pip install a')",),
        ("def f(x):\n    '''text\n    text'''\n    !pip install a\n",),
        ("x = [\n  1]; import os; os.system('pip install a')",),
    ],
)
@pytest.mark.parametrize("with_imports", [True, False])
def test_commands_are_found_by_the_names_that_cells_give(
    sources: tuple[str, ...], *, with_imports: bool
) -> None:
    text = to_json(*sources)
    notebook = read_notebook(Path("n.ipynb"), text, with_imports=with_imports)
    assert [package.name for package in notebook.content.packages] == ["a"]
    assert bool(notebook.imports) == (with_imports and any("import" in part for part in sources))


def test_cells_without_a_word_that_is_looked_for_are_not_parsed() -> None:
    notebook = read("def broken(:\n    y = 1", "def broken(:\n    import b")
    assert notebook.unparsed == (2,)


def test_without_imports_the_rest_is_equal() -> None:
    compared = 0
    for path in sorted(CASES.rglob("*.ipynb")):
        with contextlib.suppress(SourceError):
            whole = read_notebook(path, path.read_bytes())
            part = read_notebook(path, path.read_bytes(), with_imports=False)
            assert whole._replace(imports=(), unparsed=()) == part._replace(unparsed=())
            compared += 1
    assert compared > 10


def test_a_large_notebook_of_code_is_read_in_linear_time() -> None:
    """0.5 s of CPU for 5 MB of code on a machine of 2026, where parsing alone takes 0.7 s."""
    source = (
        'class A:\n    """Text."""\n    def f(self, x):\n        return x ** 2 % 3 != [1]\n' * 10
    )
    text = to_json("!pip install a", *[source] * 6000)
    assert len(text) > 5_000_000
    begin = time.process_time()
    notebook = read_notebook(Path("n.ipynb"), text, with_imports=False)
    assert time.process_time() - begin < 5  # generous: a loaded machine
    assert [package.name for package in notebook.content.packages] == ["a"]


@pytest.mark.parametrize(
    ("source", "packages"),
    [
        (
            "%%bash\ncat > requirements.txt <<EOF\na==1\nEOF\npip install -r requirements.txt b",
            ["a", "b"],
        ),
        ("%%sh\ncat <<'END' >> /tmp/requirements-x.txt\n# text\na\nEND\necho b", ["a"]),
        ("%%bash\ncat > requirements.txt <<EOF\na", ["a"]),
        ("%%bash\ncat > notes.txt <<EOF\na\nEOF", []),
        ("cat = '''\ncat > requirements.txt <<EOF\na\nEOF\n'''", []),
    ],
)
def test_here_documents_that_write_requirements_are_read(source: str, packages: list[str]) -> None:
    content = read(source).content
    assert [package.name for package in content.packages] == packages
    assert not any("not read" in leftover.message for leftover in content.leftovers)
