"""The compute capability that each precision requires."""

from __future__ import annotations

from provision.spec import Precision

LOWEST_CAPABILITY = {Precision.BF16: "8.0", Precision.TF32: "8.0", Precision.FP8: "8.9"}
"""Lowest compute capability with tensor cores for the format (NVIDIA, CUDA C++ Programming Guide,
arithmetic throughput and feature tables).
"""
