"""What a module uses of other packages, and what a wheel defines, read from small wheels."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.version import Version

from remaking.index import Source
from tests.remaking.serving import Folder, wheel
from windows.confirming import Confirmation
from windows.definitions import Definitions
from windows.packages import Package
from windows.reading import NeededName, Readings, release_of
from windows.source_tree import SourceTree, fetch_sources


def tree_of(folder: Path, members: Mapping[str, str | bytes]) -> SourceTree:
    """The modules of a wheel, fetched by ranges."""
    index = Folder(wheel("torch", "1.0", members=members))
    (file,) = index.wheels("torch")
    return SourceTree(fetch_sources(file, index, folder, "trl"))


def uses_of(folder: Path, source: str, **members: str) -> set[str]:
    """The names of pyarrow, transformers and torch that a module of trl needs."""
    own = {f"trl/{name}.py": text for name, text in members.items()}
    index = Folder(wheel("trl", "1.0", members={"trl/__init__.py": source, **own}))
    (file,) = index.wheels("trl")
    fetch_sources(file, index, folder, "trl")
    release = release_of("trl", file)
    package = Package("trl", "trl", ("Main",), ("Other",))
    needs = Readings(folder).needs(release, package)
    assert needs == Readings(folder).needs(release, package)  # as kept
    return {written(name) for name in needs.names}


def written(name: NeededName) -> str:
    """A needed name as a line: path, argument, severity, and "?" if it needs the package first."""
    argument = f"({name.argument})" if name.argument else ""
    return f"{name.path}{argument} {name.severity}{'?' if name.if_present else ''}"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import pyarrow.parquet as pq", {"pyarrow.parquet error"}),
        ("from pyarrow.lib import Table", {"pyarrow.lib.Table error"}),
        (
            "import pyarrow as pa\nclass A(pa.PyExtensionType): pass",
            {"pyarrow error", "pyarrow.PyExtensionType error"},
        ),
        (
            "from pyarrow import table\nx = table(a=1)",
            {"pyarrow.table error", "pyarrow.table(a) error"},
        ),
        ("import pyarrow as pa\npa = 1\npa.x", {"pyarrow error"}),
        ("def f():\n    from pyarrow import Table", set()),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pyarrow", set()),
        ("try:\n    import pyarrow\nexcept ImportError:\n    import torch", set()),
        ("try:\n    import pyarrow\nfinally:\n    pass", {"pyarrow error"}),
        ("import pyarrow\nif hasattr(pyarrow, 'x'):\n    pyarrow.x", {"pyarrow error"}),
        ("import pyarrow\nx = pyarrow.x if hasattr(pyarrow, 'x') else 1", {"pyarrow error"}),
        (
            "import pyarrow\nif parse(pyarrow.__version__) > 1:\n    pyarrow.x",
            {"pyarrow error", "pyarrow.__version__ error"},
        ),
        ("NEW = compare_version('pyarrow', '1')\nif NEW:\n    import pyarrow", set()),
        (
            "import pyarrow\nNEW = parse(version) > 1\nUSED = NEW and f()\nx = USED and pyarrow.x",
            {"pyarrow error"},
        ),
        ("if DEBUG:\n    import pyarrow as pa\nx = pa.x", set()),
        ("if is_pyarrow_available():\n    import pyarrow", {"pyarrow error?"}),
        ("if is_torch_available():\n    import pyarrow", {"pyarrow error"}),
        ("if is_pyarrow_available('>1'):\n    import pyarrow", set()),
        ("if is_sagemaker_available():\n    import pyarrow", set()),
        ("if DEBUG:\n    import pyarrow", set()),
        ("from contextlib import suppress\nwith suppress(Exception):\n    import pyarrow", set()),
        ("from .inner import x", {"torch.nn error"}),
        ("try:\n    from .inner import x\nexcept ImportError: pass", set()),
        ("def f():\n    from .inner import x", set()),
        (
            "if is_pyarrow_available():\n    from .both import x",
            {"pyarrow.x error?", "torch.y error"},
        ),
    ],
)
def test_uses_at_import(tmp_path: Path, source: str, names: set[str]) -> None:
    members = {
        "inner": "import torch.nn\nx = 1",
        "both": "from pyarrow import x\nfrom torch import y",
    }
    assert uses_of(tmp_path, source, **members) == names


@pytest.mark.parametrize(
    ("body", "is_used"),
    [
        ("    if version < 5:\n        raise ImportError\n    torch.x", False),
        ("    if version < 5:\n        print()\n    torch.x", True),
        ("    if self.new:\n        if version < 5: return\n        torch.x", False),
        ("    if self.new:\n        if version < 5: return\n    torch.x", True),
        ("    if not is_torch_available():\n        raise ImportError\n    torch.x", True),
        ("    if self.new:\n        return\n    torch.x", True),
    ],
)
def test_uses_after_a_check_of_a_version_that_leaves(
    tmp_path: Path, body: str, is_used: bool
) -> None:
    main = f"import torch\nclass Main: pass\ndef f(self):\n{body}"
    assert ("torch.x warning" in uses_of(tmp_path, LAZY, main=main)) is is_used


@pytest.mark.parametrize(
    ("calls", "is_used"),
    [
        ("    if version > 5: helper()", False),
        ("    helper()", True),
        ("    if version > 5: helper()\n    helper()", True),
        ("    pass", True),
    ],
)
def test_uses_in_a_function_that_is_called_for_some_versions_only(
    tmp_path: Path, calls: str, is_used: bool
) -> None:
    main = f"import torch\nclass Main: pass\ndef helper():\n    torch.x\ndef f():\n{calls}"
    assert ("torch.x warning" in uses_of(tmp_path, LAZY, main=main)) is is_used


LAZY = """
from typing import TYPE_CHECKING
_import_structure = {"main": ["Main"], "other": ["Other"], "unused": ["Unused"]}
if TYPE_CHECKING:
    from .main import Main
else:
    sys.modules[__name__] = _LazyModule(__name__, _import_structure)
"""


def test_uses_in_the_modules_of_entry_points(tmp_path: Path) -> None:
    main = """
from transformers import Trainer
from accelerate import Accelerator
class Main(Trainer):
    def __init__(self, model, tokenizer):
        super().__init__(model=model, tokenizer=tokenizer)
        self.accelerator = Accelerator(dispatch_batches=True)
    def save(self):
        self.accelerator.unwrap_model(self.model, keep_torch_compile=False)
        if "x" in inspect.signature(Accelerator).parameters:
            Accelerator(x=1)
"""
    other = "import torch.nn\nclass Other: pass"
    unused = "import vllm\nclass Unused: pass"
    assert uses_of(tmp_path, LAZY, main=main, other=other, unused=unused) == {
        "transformers.Trainer error",
        "transformers.Trainer warning",
        "transformers.Trainer(model) warning",
        "transformers.Trainer.save(()!) warning",
        "transformers.Trainer(tokenizer) warning",
        "accelerate.Accelerator error",
        "accelerate.Accelerator warning",
        "accelerate.Accelerator(dispatch_batches) warning",
        "accelerate.Accelerator.unwrap_model warning",
        "accelerate.Accelerator.unwrap_model(keep_torch_compile) warning",
        "torch.nn warning",
    }


MODULES = {
    "torch/__init__.py": """
from .core import Base, helper as renamed
from .stars import *
import os
if os.environ: conditional = 1
_import_structure = 0
""",
    "torch/core.py": """
from dataclasses import dataclass
class Base:
    field = 1
    def __init__(self, a, *, b=1): self.made = a
    def method(self, x): "word"
class Child(Base):
    pass
class Anything(Base):
    def __init__(self, **kwargs): pass
class Foreign(Outside):
    pass
@dataclass
class Data:
    size: int = 0
@dataclass
class More(Data):
    depth: int = 0
def helper(a, b=1): pass
def open_helper(a, **more): pass
@wrapped
def changed(a): pass
@validate_hf_hub_args
def validated(a): pass
""",
    "torch/stars.py": """
from .hidden import *
from .core import Child
__all__ = ['shown']
shown = 1
not_shown = 1
""",
    "torch/hidden.py": "deep = 1\n_private = 1",
    "torch/binary/__init__.py": "from torch._C import *\nown = 1",
    "torch/_C.cpython-311-x86_64-linux-gnu.so": b"",
    "torch/listed.py": """
def __getattr__(name):
    if name == "moved": return 1
    raise AttributeError(name)
""",
    "torch/anything.py": "def __getattr__(name): return getattr(other, name)",
    "torch/made.py": "for name in 'ab': globals()[name] = 1",
    "torch/lazy/__init__.py": LAZY,
    "torch/lazy/main.py": "class Main:\n    def __init__(self, x): pass",
    "torch/attached/__init__.py": """
_SUBMOD_ATTRS = {"core": ["Attached"]}
__getattr__, __dir__, __all__ = _attach(__name__, [], _SUBMOD_ATTRS)
""",
    "torch/deprecating.py": """
_deprecations = {"gone": ("message", None), "still": ("message", value)}
from x import deprecation_getattr
__getattr__ = deprecation_getattr(__name__, _deprecations)
""",
    "torch/expired.py": "__expired_attributes__ = {'float_': 'Use float64'}",
    "torch/expiring.py": """
from .expired import __expired_attributes__
from torch._C import *
def __getattr__(attr):
    if attr in __expired_attributes__: raise AttributeError(attr)
""",
    "torch/typed.py": "if TYPE_CHECKING:\n    from .core import Base",
    "torch/structured/__init__.py": """
_import_structure = {}
_import_structure |= define_import_structure(folder, prefix="models")
sys.modules[__name__] = _LazyModule(__name__, _import_structure)
""",
    "torch/structured/models/__init__.py": "",
    "torch/structured/models/one.py": """
__all__ = [
    "One",
]
class One: pass
@requires(backends=("x",))
class Two: pass
class Three: pass
""",
    "torch/folder/inner.py": "x = 1",
    "torch/starred.py": "from torch.never_written import *\nfrom torch.core import *",
    "torch/compiled_star.py": "from torch._C._inner import *",
    "torch/foreign_star.py": "from numpy import *",
}


@pytest.mark.parametrize(
    ("path", "state"),
    [
        ("torch", "present"),
        ("torch.Base", "present"),
        ("torch.renamed", "present"),
        ("torch.helper", "absent"),
        ("torch.conditional", "present"),
        ("torch.shown", "present"),
        ("torch.not_shown", "absent"),
        ("torch.hidden.deep", "present"),
        ("torch.stars.deep", "present"),
        ("torch.stars._private", "absent"),
        ("torch.core", "present"),
        ("torch.nothing", "absent"),
        ("torch.nothing.inner", "absent"),
        ("torch.core.Base.field", "present"),
        ("torch.core.Base.made", "present"),
        ("torch.core.Child.method", "present"),
        ("torch.core.Base.word", "absent"),
        ("torch.core.Child.word", "absent"),
        ("torch.core.Foreign.word", "undecided"),
        ("torch.binary.own", "present"),
        ("torch.binary.other", "undecided"),
        ("torch._C.other", "undecided"),
        ("torch.listed.moved", "present"),
        ("torch.listed.other", "absent"),
        ("torch.anything.other", "undecided"),
        ("torch.made.other", "undecided"),
        ("torch.lazy.Main", "present"),
        ("torch.lazy.main", "present"),
        ("torch.lazy.Missing", "absent"),
        ("torch.attached.Attached", "present"),
        ("torch.attached.Missing", "absent"),
        ("torch.deprecating.gone", "removed"),
        ("torch.deprecating.still", "present"),
        ("torch.expiring.float_", "removed"),
        ("torch.expiring.other", "undecided"),
        ("torch.typed.Base", "absent"),
        ("torch.structured.One", "present"),
        ("torch.structured.Two", "present"),
        ("torch.structured.Three", "absent"),
        ("torch.folder.inner", "present"),
        ("torch.folder.outer", "absent"),
        ("torch.starred.Base", "present"),
        ("torch.starred.other", "absent"),
        ("torch.compiled_star.other", "undecided"),
        ("torch.foreign_star.other", "undecided"),
    ],
)
def test_defined_names(tmp_path: Path, path: str, state: str) -> None:
    assert Definitions(tree_of(tmp_path, MODULES)).find(path).state == state


@pytest.mark.parametrize(
    ("path", "argument", "state"),
    [
        ("torch.core.helper", "b", "present"),
        ("torch.core.helper", "c", "absent"),
        ("torch.core.open_helper", "c", "undecided"),
        ("torch.core.validated", "use_auth_token", "undecided"),
        ("torch.core.validated", "c", "absent"),
        ("torch.core.changed", "a", "present"),
        ("torch.core.changed", "c", "undecided"),
        ("torch.core.Base", "b", "present"),
        ("torch.core.Base", "c", "absent"),
        ("torch.core.Child", "b", "present"),
        ("torch.core.Child", "c", "absent"),
        ("torch.core.Child.method", "x", "present"),
        ("torch.core.Child.method", "y", "absent"),
        ("torch.core.Anything", "c", "undecided"),
        ("torch.core.Foreign", "c", "undecided"),
        ("torch.core.More", "size", "present"),
        ("torch.core.More", "depth", "present"),
        ("torch.core.More", "c", "absent"),
        ("torch.lazy.Main", "x", "present"),
        ("torch.lazy.Main", "y", "absent"),
        ("torch.shown", "x", "undecided"),
    ],
)
def test_arguments_of_calls(tmp_path: Path, path: str, argument: str, state: str) -> None:
    definitions = Definitions(tree_of(tmp_path, MODULES))
    assert definitions.argument(definitions.find(path), argument).state == state


def test_only_sources_are_fetched(tmp_path: Path) -> None:
    members = {"torch/big.so": os.urandom(3 << 20), "torch/__init__.py": "x = 1"}
    index = Folder(wheel("torch", "1.0", members=members))
    (file,) = index.wheels("torch")
    kept = fetch_sources(file, index, tmp_path, "torch")
    tree = SourceTree(kept)
    assert kept.stat().st_blocks * 512 < 1 << 20 < 3 << 20 < kept.stat().st_size
    assert tree.text("torch") == "x = 1"
    assert "Name: torch" in tree.metadata()
    assert SourceTree(fetch_sources(file, index, tmp_path, "torch")).has_module("torch.big")
    assert index.opened == 1


def test_a_source_distribution_is_packed_with_its_requirements(tmp_path: Path) -> None:
    required = 'torch>=2\n\n[:python_version < "3.9"]\nnumpy\n\n[all]\nvllm\n'
    texts = {
        "PKG-INFO": "Name: flash-attn",
        "flash_attn.egg-info/requires.txt": required,
        "flash_attn/__init__.py": "x = 1",
        "flash_attn/tests/a.py": "",
        "csrc/flash_attn/b.py": "",
        "setup.py": "",
    }
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in texts.items():
            member = tarfile.TarInfo(f"flash_attn-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    file = Source("flash_attn-1.0.tar.gz", "url", Version("1.0"), uploaded="2024-01-01")
    index = Folder({}, {"url": data.getvalue()})
    tree = SourceTree(fetch_sources(file, index, tmp_path, "flash_attn"))
    assert tree.paths == {"flash_attn": "flash_attn/__init__.py"}
    assert tree.metadata().splitlines() == [
        "Requires-Dist: torch>=2",
        'Requires-Dist: numpy; python_version < "3.9"',
        "Name: flash-attn",
    ]


def test_a_module_hidden_by_another_object_is_not_missing(tmp_path: Path) -> None:
    members = {
        "torch/__init__.py": "from torch.saved import saved",
        "torch/saved/__init__.py": "",
        "torch/saved/saved.py": "",
        "torch/saved/inner.py": "name = 1",
    }
    index = Folder(wheel("torch", "1.0", members=members))
    (file,) = index.wheels("torch")
    tree = SourceTree(fetch_sources(file, index, tmp_path, "torch"))
    assert Definitions(tree).find("torch.saved.inner.name").state == "absent"
    confirmation, release = Confirmation(tmp_path), release_of("torch", file)
    assert not confirmation.is_missing(release, "torch.saved.inner.name")
    assert confirmation.is_missing(release, "torch.saved.inner.other")
