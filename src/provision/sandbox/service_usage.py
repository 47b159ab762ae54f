"""The emulated part of Service Usage: the quotas of custom jobs, read only."""

from __future__ import annotations

from typing import Any

from provision.facts import Facts
from provision.facts.job_machines import list_quota_metrics
from provision.sandbox.faults import Faults
from provision.sandbox.http_server import Request, Route

_SERVICE = "/v1beta1/projects/{project}/services/aiplatform.googleapis.com"
_PREFIX = "aiplatform.googleapis.com/"
_LIMIT = "1000000"


def service_usage_routes(facts: Facts, faults: Faults) -> list[Route]:
    """Return the route of the emulated method of serviceusage.v1beta1."""

    def list_metrics(_request: Request, project: str) -> Any:
        name = f"projects/{project}/services/aiplatform.googleapis.com/consumerQuotaMetrics"
        return {
            "metrics": [
                {
                    "name": f"{name}/{_PREFIX.replace('/', '%2F')}{metric}",
                    "metric": f"{_PREFIX}{metric}",
                    "consumerQuotaLimits": [
                        {
                            "metric": f"{_PREFIX}{metric}",
                            "unit": "1/{project}/{region}",
                            "quotaBuckets": buckets,
                        }
                    ],
                }
                for metric in _list_all_metrics(facts)
            ]
        }

    buckets: list[dict[str, Any]] = [{"effectiveLimit": _LIMIT, "defaultLimit": _LIMIT}]
    buckets += [
        {"effectiveLimit": "0", "defaultLimit": _LIMIT, "dimensions": {"region": region}}
        for region in sorted(faults.locations("no-training-quota"))
    ]
    return [("GET", _SERVICE + "/consumerQuotaMetrics", list_metrics)]


def _list_all_metrics(facts: Facts) -> list[str]:
    return sorted(
        {
            metric
            for card in (None, *facts.cards)
            for preemptible in (False, True)
            for metric in list_quota_metrics(card, facts, preemptible=preemptible)
        }
    )
