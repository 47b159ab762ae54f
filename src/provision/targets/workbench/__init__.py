"""A Vertex AI Workbench instance: made from a lock by the program that it runs at each start, and judged by the report that comes back."""

from provision.targets.workbench.kind import PART, Have, Workbench, run_of

__all__ = ["PART", "Have", "Workbench", "run_of"]
