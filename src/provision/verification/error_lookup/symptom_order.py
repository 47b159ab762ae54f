"""The order of the symptoms in a text: specific causes, general ones, consequences."""

from __future__ import annotations

from provision.facts.schema_packages import Symptom

_GENERIC = (
    "half-imported",
    "module-missing",
    "names-do-not-fit",
    "name-gone",
    "attribute-gone",
    "model-attribute",
    "transformers-import",
    "extension-undefined",
    "library-missing",
    "libcudart",
    "relative-path",
    "permission-denied",
    "no-network",
    "torch-not-found",
    "worker-exited",
    "pip-resolver",
    "pip-left-conflict",
    "vllm-core-failed",
    "tf-metadata-config",
    "tf-registered-twice",
    "device-assert",
    "nccl-timeout",
    "torchrun-failed",
    "tokenizers-fork",
    "cuda-not-available",
    "no-matching-distribution",
    "pip-certificate",
    "tf-cuinit-driver",
    "vllm-architecture",
    "pipeline-model",
    "tokens-too-long",
    "uv-hardlink",
    "unsloth-config",
    "windows-extension",
    "compile-error",
    "triton-ptx-internal",
    "distributed-store",
    "deepspeed-internal",
    "keras-mixed",
    "tensorrt-warning",
    "rust-build",
    "windows-program-missing",
    "vllm-config",
    "pydantic-user-error",
    "hf-name",
    "no-gpu-general",
    "nccl-warning",
    "operators-not-loaded",
    "flash-wheel",
    "tensorflow-native",
    "xla-error",
    "dtype-not-implemented",
    "library-version",
    "library-not-loadable",
    "unsloth-general",
    "mps-general",
    "package-import-failed",
    "transformers-internal",
    "trainer-internal",
    "model-argument",
    "install-hint",
    "version-asked",
    "driver-old-general",
    "gpu-unsupported-general",
    "cuda-version-general",
    "python-version-general",
    "cublas-old-build",
    "triton-cuda-error",
    "model-name-unknown",
    "pickle-other-release",
    "uv-fetch",
    "triton-not-available",
    "compute-capability-minimum",
    "package-argument",
    "package-attribute",
    "package-name",
    "model-own-code",
    "known-class-argument",
    "known-class-attribute",
    "cuda-symbol",
    "macos-library",
    "windows-extension-mismatch",
    "cuda-init-failed",
    "cuda-error",
    "cudnn-status",
    "cuda-library-status",
    "triton-kernel",
    "torch-compile-failed",
    "torch-too-old",
    "sklearn-other-release",
    "pydantic-schema",
    "audio-format",
    "rendezvous-failed",
    "gloo-closed",
    "infiniband",
    "process-aborted",
    "weights-part-missing",
    "file-empty",
    "state-dict-keys",
    "model-key",
    "wandb-init",
    "tensorboard-missing",
    "optional-package-version",
    "torchao-extensions",
    "build-command-failed",
    "pip-requirement",
    "pip-invalid-distribution",
    "download-interrupted",
    "tensorflow-addons-range",
    "jax-cuda-init",
)
"""Sorted after more specific symptoms: they follow from one of those, or are not errors."""
_CONSEQUENCES = frozenset(
    {
        "dataset-generation",
        "gradio-localhost",
        "uv-no-solution",
        "wheel-not-built",
        "symbol-undefined",
    }
)
"""Sorted after all others: the last lines of a failure that was printed before them."""
_GENERAL_NAMES = frozenset(
    {
        "name-gone",
        "attribute-gone",
        "model-attribute",
        "package-argument",
        "package-attribute",
        "package-name",
        "model-own-code",
        "known-class-argument",
        "known-class-attribute",
        "package-import-failed",
        "transformers-internal",
        "trainer-internal",
        "model-argument",
        "install-hint",
        "version-asked",
        "driver-old-general",
        "gpu-unsupported-general",
        "cuda-version-general",
        "python-version-general",
        "hf-name",
        "keras-mixed",
        "deepspeed-internal",
        "pydantic-user-error",
        "no-gpu-general",
        "nccl-warning",
        "operators-not-loaded",
        "library-version",
        "library-not-loadable",
        "unsloth-general",
        "mps-general",
        "dtype-not-implemented",
        "compile-error",
        "distributed-store",
        "symbol-undefined",
        "cuda-symbol",
    }
)
"""Left out where another symptom explains the same line."""
_HARMLESS = frozenset(
    {
        "tokenizers-fork",
        "tf-registered-twice",
        "tf-cuinit-driver",
        "cuda-not-available",
        "kernel-55",
        "pip-resolver",
        "tokens-too-long",
        "uv-hardlink",
        "pip-invalid-distribution",
    }
)
"""Symptoms that do not end a program."""


def generality(symptom: Symptom) -> int:
    """Return the rank of a symptom: specific causes come before general ones and consequences."""
    return 2 if symptom.id in _CONSEQUENCES else int(symptom.id in _GENERIC)


def is_general(symptom: Symptom) -> bool:
    """Return whether a symptom is left out if another one explains the same line."""
    return symptom.id in _GENERAL_NAMES


def is_harmless(symptom: Symptom) -> bool:
    """Return whether a symptom does not end a program."""
    return symptom.id in _HARMLESS
