"""Locks of six training projects: torch and its companions as PyTorch's indexes have them, from the
rig, and everything else from the package index. Only metadata is read of CUDA packages.
"""

from __future__ import annotations

import re

import pytest

from provision.lock import loads
from remaking.index import PipIndex
from tests.pytorch_rig import PyTorch
from tests.rig import Bench
from tests.support import require

BUILT = """[axolotl-contribs-lgpl, axolotl-contribs-mit, langdetect, rouge-score, sqlitedict, \
word2number, antlr4-python3-runtime]"""
"""What axolotl and lm-eval, which it brings, need that has no wheels."""
PROJECTS = {
    "vllm": ("torch==2.10.0, vllm==0.19.1", "cu128"),
    "unsloth": ("torch==2.10.0, unsloth, torchao<0.17", "cu128"),
    "axolotl": (f"torch==2.10.0, {{name: axolotl, build: {BUILT}}}", "cu130"),
    "llamafactory": ("torch==2.13.0, llamafactory", "cu126"),
    "lightning": ("torch==2.13.0, lightning", "cu126"),
    "diffusers": ("torch==2.13.0, diffusers, transformers, accelerate", "cu126"),
}
"""Packages of a spec for an L4, and the build of torch that fits their compiled code.

vllm 0.19.1, and xformers, which unsloth brings, are compiled for CUDA 12; torchao 0.17, which
axolotl pins, for CUDA 13.
"""
KNOWN = {
    "axolotl": (
        "trl 1.5.1 needs liger-kernel>=0.8.0",
        "xformers 0.0.35 is compiled for CUDA 12",
    ),
    "llamafactory": ("gradio 5.1.0 needs pydantic<2.11",),
}
"""Warnings that stand: axolotl pins all of these packages, and no build of torch fits both torchao
and xformers. The web page of llamafactory does not start with a newer pydantic: only a part.
"""


def lock_project(bench: Bench, pytorch: PyTorch, packages: str, more: str = "") -> str:
    """Lock a spec and return its findings and the reason of the flavour."""
    bench.spec(f'gpu: L4\npython: "3.12"\n{more}packages: [{packages}]\n')
    done = bench.run(
        "lock",
        "spec.yaml",
        timeout=600,
        **{**pytorch.variables(), "PROVISION_INDEX_PYPI": PipIndex().url},
    )
    require("index", "could not be reached" not in done.stderr, done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.long(minutes=True)
@pytest.mark.parametrize("name", PROJECTS)
def test_the_rules_accept_the_locked_set(bench: Bench, pytorch: PyTorch, name: str) -> None:
    packages, flavour = PROJECTS[name]
    more = 'cuda: "13.0"\n' if flavour == "cu130" else ""
    told = lock_project(bench, pytorch, packages, more)
    assert "error[" not in told
    warnings = re.findall(r"^warning\[\w+\] [\w-]+: (.*)", told, re.MULTILINE)
    assert [line for line in warnings if not line.startswith(KNOWN.get(name, ()))] == []
    lock = loads((bench.folder / "spec.lock").read_text(), "spec.lock")
    versions = {package.name: package.version for package in lock.packages}
    assert versions["torch"].endswith(f"+{flavour}")
    assert name in versions
    major = "-cu13" if flavour == "cu130" else "-cu12"
    assert any(package.endswith(major) for package in versions)
    assert bench.run("lock", "spec.yaml", "--check").returncode == 0


@pytest.mark.long(minutes=True)
def test_compiled_code_for_another_cuda_is_reported(bench: Bench, pytorch: PyTorch) -> None:
    told = lock_project(bench, pytorch, "torch==2.10.0, unsloth")
    assert "torchao 0.18.0 is compiled for CUDA 13" in told
