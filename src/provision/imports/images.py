"""Reads the names of container images: the Python, CUDA or PyTorch that they bring."""

from __future__ import annotations

import re

from packaging.version import InvalidVersion, Version

from provision.diagnostics import Span
from provision.imports.model import ImportedPackage
from provision.imports.quoting import quote_text
from provision.imports.tool_content import ToolContent

_PYTHON_IMAGE = re.compile(r"(?:.*/)?python")
_PYTHON_TAG = re.compile(r"(?:\d+-)?v?(3\.\d+)(?:\.\d+)?(?:[-a-z].*)?")
_CUDA_IMAGE = re.compile(r"(?:.*/)?nvidia/(?:cuda|cudagl)")
_CUDA_TAG = re.compile(r"(\d+\.\d+)(?:\.\d+)?(?:-.*)?")
_TORCH_TAG = re.compile(r"(\d+\.\d+(?:\.\d+)?)-cuda(\d+\.\d+)-.*")
_FRAMEWORK_TAG = re.compile(r"(\d+\.\d+\.\d+)(?:-.*)?")
_UV_TAG = re.compile(r"(?:.*-)?python(3\.\d+)(?:[-.].*)?")
_PLAIN_IMAGES = re.compile(
    r"(?:.*/)?(?:ubuntu|debian|scratch|alpine|miniconda3?|anaconda3|mambaforge|miniforge3"
    r"|micromamba|base(?::.*)?)"
)
"""Images of an operating system or of conda, which decide nothing that a spec contains."""


def split_image(image: str) -> tuple[str, str]:
    """Return the name and the tag of an image, without docker.io/library and digest."""
    name = image.partition("@")[0].removeprefix("docker:").removeprefix("docker.io/")
    name = name.removeprefix("library/")
    before, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        return name, ""
    return before, tag


def add_image(image: str, span: Span, content: ToolContent) -> None:
    """Add the Python, CUDA and PyTorch that the name of an image states."""
    name, tag = split_image(image)
    python = _find_python(name, tag)
    if python is not None:
        content.set(("python",), python, span)
    elif _CUDA_IMAGE.fullmatch(name) and (match := _CUDA_TAG.fullmatch(tag)):
        content.set(("cuda",), match[1], span)
    elif name == "pytorch/pytorch" and (match := _TORCH_TAG.fullmatch(tag)):
        _add_package("torch", match[1], span, content)
        content.set(("cuda",), match[2], span)
    elif name == "tensorflow/tensorflow" and (match := _FRAMEWORK_TAG.fullmatch(tag)):
        _add_package("tensorflow", match[1], span, content)
    elif not _PLAIN_IMAGES.fullmatch(name):
        content.leave(
            span,
            f"the image {quote_text(image)} was left out",
            "its name does not show which versions of Python, CUDA and packages it contains",
            "add the packages that the program uses from the image; `pip freeze` in a container "
            "from this image lists them",
        )


def _find_python(name: str, tag: str) -> str | None:
    """Return the Python of an image of Python or of uv."""
    match = None
    if _PYTHON_IMAGE.fullmatch(name):
        match = _PYTHON_TAG.fullmatch(tag)
    elif name.endswith("astral-sh/uv"):
        match = _UV_TAG.fullmatch(tag)
    return match[1] if match else None


def _add_package(name: str, version: str, span: Span, content: ToolContent) -> None:
    try:
        Version(version)
    except InvalidVersion:
        return
    content.packages.append(ImportedPackage(name, f"{name}=={version}", span))
