"""Reads the quotas of custom jobs from the metrics of Service Usage (v1beta1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

SERVICE = "aiplatform.googleapis.com"
_PREFIX = f"{SERVICE}/custom_model_training_"


def read_job_quotas(pages: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the limits by metric and region; "" is that of all other regions, -1 means unlimited.

    Source: discovery document of serviceusage v1beta1, ConsumerQuotaMetric, ConsumerQuotaLimit
    and QuotaBucket: a bucket without dimensions is the default.
    """
    limits: dict[str, dict[str, int]] = {}
    for metric in (metric for page in pages for metric in page.get("metrics", ())):
        name = str(metric.get("metric", ""))
        if not name.startswith(_PREFIX):
            continue
        own = limits.setdefault(name.removeprefix(f"{SERVICE}/"), {})
        for limit in metric.get("consumerQuotaLimits", ()):
            if "{region}" not in str(limit.get("unit", "")):
                continue
            for bucket in limit.get("quotaBuckets", ()):
                dimensions = bucket.get("dimensions") or {}
                if set(dimensions) <= {"region"} and "effectiveLimit" in bucket:
                    own[str(dimensions.get("region", ""))] = int(bucket["effectiveLimit"])
    return limits
