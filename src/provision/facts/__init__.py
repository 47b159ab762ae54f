"""Facts about torch, CUDA, cards, machines and packages: sourced, dated tables and lookups."""

from provision.facts.evidence import Evidence
from provision.facts.facts import COMPILED_TABLES, Facts, cuda_of, flavour_of, load_facts
from provision.facts.schema_packages import ReplacedPackage, TransformersReleases, VersionFloor
from provision.facts.schema_torch import Card, TorchBuild, TorchRelease

__all__ = [
    "COMPILED_TABLES",
    "Card",
    "Evidence",
    "Facts",
    "ReplacedPackage",
    "TorchBuild",
    "TorchRelease",
    "TransformersReleases",
    "VersionFloor",
    "cuda_of",
    "flavour_of",
    "load_facts",
]
