"""Row types of the fact tables about custom jobs of Vertex AI."""

from typing import NamedTuple

from provision.facts.evidence import Evidence


class TrainingRegion(NamedTuple):
    """A region in which jobs can have GPUs; `cards` are their names, between spaces."""

    region: str
    cards: str
    evidence: Evidence


class JobMachineSeries(NamedTuple):
    """A series and shape of machine types that a worker pool may have ("n1-standard").

    `least_vcpus` and `most_vcpus` limit the types of the series; 0 for no limit.
    """

    name: str
    evidence: Evidence
    least_vcpus: int = 0
    most_vcpus: int = 0


class TrainingQuota(NamedTuple):
    """The quota metric of a GPU in jobs, without the name of the API."""

    card: str
    metric: str
    evidence: Evidence


class JobProperty(NamedTuple):
    """A property of all jobs: their price, or the GPUs of a way to get capacity."""

    name: str
    value: str
    what: str
    evidence: Evidence
