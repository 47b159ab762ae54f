"""Missing modules: the package of each, and its version in the known environments."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from packaging.utils import canonicalize_name

from provision.facts import Facts
from provision.verification.error_lookup.known_environment import (
    FROM_ANOTHER_ENVIRONMENT,
    KnownEnvironment,
)

NAMESPACE_PACKAGES = frozenset({"azure", "backports", "google", "jaraco", "nvidia", "ruamel"})
"""Names before a dot that many packages share: no package is named like one of them alone."""
_PACKAGE_OF_MODULE: Mapping[str, str] = {
    "google.protobuf": "protobuf",
    "google.rpc": "googleapis-common-protos",
    "google.api": "googleapis-common-protos",
}
"""Modules below a shared name whose package has another name."""
_OTHER_PACKAGES: Mapping[str, str] = {
    name.replace("-", "_"): name
    for name in [
        "albumentations",
        "allennlp",
        "bertopic",
        "blackjax",
        "botorch",
        "brax",
        "captum",
        "chex",
        "cleanrl",
        "clip-interrogator",
        "colbert-ai",
        "compressed-tensors",
        "coremltools",
        "decord",
        "distrax",
        "dm-control",
        "dspy",
        "equinox",
        "fastai",
        "flagembedding",
        "flair",
        "flashinfer",
        "gensim",
        "gguf",
        "gpytorch",
        "haiku",
        "hdbscan",
        "imagededup",
        "imageio",
        "imgaug",
        "intel-extension-for-pytorch",
        "jaxopt",
        "jiwer",
        "keybert",
        "langchain-community",
        "langchain-core",
        "llama-index",
        "llguidance",
        "lm-eval",
        "lm-format-enforcer",
        "lmdeploy",
        "mistral-common",
        "mlx",
        "mlx-lm",
        "moviepy",
        "mujoco-py",
        "neural-compressor",
        "nncf",
        "numpyro",
        "onnxconverter-common",
        "onnxsim",
        "openvino",
        "outlines",
        "pettingzoo",
        "pycocotools",
        "pyctcdecode",
        "pyro-ppl",
        "ragas",
        "ragatouille",
        "rembg",
        "sacrebleu",
        "skorch",
        "stanza",
        "super-gradients",
        "tf2onnx",
        "tianshou",
        "torchdata",
        "torchdiffeq",
        "torchtext",
        "trafilatura",
        "ultralytics",
        "umap-learn",
        "xgrammar",
        "yolox",
        "apex",
        "auto-gptq",
        "autoawq",
        "basicsr",
        "chromadb",
        "controlnet-aux",
        "ctranslate2",
        "detectron2",
        "dgl",
        "espnet",
        "exllamav2",
        "facexlib",
        "fairseq",
        "fvcore",
        "gfpgan",
        "gptqmodel",
        "insightface",
        "iopath",
        "k-diffusion",
        "keras-applications",
        "keras-preprocessing",
        "llama-cpp",
        "llamafactory",
        "megatron-core",
        "ml-dtypes",
        "mmdet",
        "mmengine",
        "mmpose",
        "mmpretrain",
        "mmrotate",
        "mmsegmentation",
        "modelscope",
        "monai",
        "natten",
        "nemo-toolkit",
        "nvdiffrast",
        "open3d",
        "paddle",
        "paddleocr",
        "pyannote-audio",
        "pytorch3d",
        "pytorch-wavelets",
        "realesrgan",
        "sam2",
        "scanpy",
        "segment-anything",
        "simpletransformers",
        "spconv",
        "taming",
        "tensorflow-addons",
        "tensorflow-hub",
        "tensorflow-probability",
        "tensorflow-text",
        "tensorrt",
        "tensorrt-llm",
        "thinc",
        "tinycudann",
        "torch-cluster",
        "torch-geometric",
        "torch-scatter",
        "torch-sparse",
        "torch-spline-conv",
        "torchao",
        "torchcodec",
        "torchrec",
        "torchsde",
        "torchtune",
        "trankit",
        "transformer-engine",
        "unsloth-zoo",
        "whisperx",
    ]
} | {
    "awq": "autoawq",
    "grpc": "grpcio",
    "llama_cpp": "llama-cpp-python",
    "megatron": "megatron-core",
    "mmcv": "mmcv",
    "mmseg": "mmsegmentation",
    "nemo": "nemo-toolkit",
    "paddle": "paddlepaddle",
    "pkg_resources": "setuptools",
    "pyannote": "pyannote-audio",
    "taming": "taming-transformers",
}
"""Modules of packages that are not in the facts."""


def find_owner(module: str, facts: Facts) -> str:
    """Return the package of a module that exists, or "" if it may be the user's own."""
    top = module.partition(".")[0]
    if top in NAMESPACE_PACKAGES:
        return find_missing_package(module, facts)
    package = _package_of(top, facts)
    return package if is_known_package(package, facts) else _OTHER_PACKAGES.get(top, "")


def find_missing_package(module: str, facts: Facts) -> str:
    """Return the package that a missing module belongs to, or "" if the facts know none.

    Python looks for the part before a dot first: missing the whole of "torch._six" means that
    torch is installed, except below a name that packages share.
    """
    top, *below = module.split(".")
    if top not in NAMESPACE_PACKAGES:
        package = _package_of(top, facts)
        return package if not below and is_known_package(package, facts) else ""
    for length in range(len(below), 0, -1):
        prefix = ".".join((top, *below[:length]))
        package = _PACKAGE_OF_MODULE.get(prefix) or str(canonicalize_name(prefix))
        if package != "google-colab" and is_known_package(package, facts):
            return package
    return ""


def is_known_package(name: str, facts: Facts) -> bool:
    """Return whether the facts know a package by its name."""
    return name in facts.popular or name in facts.seen or name in facts.runs


def explain_missing_module(
    module: str, facts: Facts, environments: Sequence[KnownEnvironment]
) -> Iterator[str]:
    """Yield the package of a missing module, and the release of it in each environment."""
    package, top = find_missing_package(module, facts), module.partition(".")[0]
    if not package:
        yield from _explain_unknown_module(module, environments)
        return
    renamed = package != canonicalize_name(top)
    lead = f"the module {module} is missing"
    if renamed:
        lead = f"the module {module} is part of the package {package}"
    for environment in environments:
        version = environment.packages.get(package)
        if version is not None:
            installed = f"{environment.source} has {package} {version}"
            yield f"{lead}, but {installed}: {FROM_ANOTHER_ENVIRONMENT}"
        elif environment.is_complete:
            yield f"{lead}, but {environment.source} does not have it"
    if renamed and not environments:
        yield lead


def explain_removed_module(
    module: str, facts: Facts, environments: Sequence[KnownEnvironment]
) -> Iterator[str]:
    """Yield the releases, in each environment, of the package that lacks a module."""
    top = module.partition(".")[0]
    package = _package_of(top, facts)
    releases = [
        f"{environment.source} has {package} {environment.packages[package]}"
        for environment in environments
        if environment.packages.get(package)
    ]
    if releases or is_known_package(package, facts) or top in sys.stdlib_module_names:
        yield "; ".join([f"Python found {top}, but it has no {module}", *releases])
    else:
        yield (
            f"{top} is not a known package: if it is your own code, another {top} may come first "
            "on sys.path"
        )


def _package_of(top: str, facts: Facts) -> str:
    replaced = facts.replaced.get(top.lower())
    return str(canonicalize_name(replaced.instead if replaced is not None else top))


def _explain_unknown_module(module: str, environments: Sequence[KnownEnvironment]) -> Iterator[str]:
    top = module.partition(".")[0]
    if top in NAMESPACE_PACKAGES:
        yield f"{top} is a namespace of many packages: the missing one cannot be determined"
        return
    if top in sys.stdlib_module_names:
        yield (
            f"{top} is part of Python but missing from this build: use a different build, or "
            "install the system package that contains it (python3-tk for tkinter)"
        )
        return
    name, installed = canonicalize_name(top), False
    for environment in environments:
        if version := environment.packages.get(name):
            installed = True
            known = f"{environment.source} has {top} {version}"
            yield f"the module {module} is missing, but {known}: {FROM_ANOTHER_ENVIRONMENT}"
    if not installed:
        yield (
            f"{module} is not a known package: if it is your own code, start Python in its folder, "
            "or add that folder to PYTHONPATH; a spec brings the folder to its targets with `code` "
            "(`code: src`)"
        )
