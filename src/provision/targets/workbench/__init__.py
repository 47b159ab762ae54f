"""A Vertex AI Workbench instance: made from a lock by the program that it runs at each start, and judged by the report that comes back."""

from provision.targets.workbench.former import full_name, go_last, is_former, places_of, with_former, without_former
from provision.targets.workbench.kind import PART, Have, Workbench, run_of
from provision.targets.workbench.naming import LINEAGE
from provision.targets.workbench.planning import RESTARTED

__all__ = [
    "LINEAGE",
    "PART",
    "RESTARTED",
    "Have",
    "Workbench",
    "full_name",
    "go_last",
    "is_former",
    "places_of",
    "run_of",
    "with_former",
    "without_former",
]
