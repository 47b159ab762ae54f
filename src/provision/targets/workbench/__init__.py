"""A Vertex AI Workbench instance: made from a lock by the program that it runs at each start, and
judged by the report that comes back.
"""

from provision.targets.workbench.driver import (
    INSTANCE_PART,
    WorkbenchDriver,
    WorkbenchObservation,
    get_run_location,
)
from provision.targets.workbench.former_instances import (
    build_resource_name,
    expand_zones,
    find_deleted_last,
    forget_former_instance,
    is_former_part,
    record_former_instance,
)
from provision.targets.workbench.planning import RESTART_NOTE
from provision.targets.workbench.resource_names import LINEAGE_LABEL

__all__ = [
    "INSTANCE_PART",
    "LINEAGE_LABEL",
    "RESTART_NOTE",
    "WorkbenchDriver",
    "WorkbenchObservation",
    "build_resource_name",
    "expand_zones",
    "find_deleted_last",
    "forget_former_instance",
    "get_run_location",
    "is_former_part",
    "record_former_instance",
]
