"""The quotas of custom jobs, as Service Usage lists them."""

from __future__ import annotations

from typing import Any

from provision.adapters.google.job_quotas import read_job_quotas

CPUS = "aiplatform.googleapis.com/custom_model_training_cpus"


def metric(name: str, *buckets: dict[str, Any], unit: str = "1/{project}/{region}") -> Any:
    return {"metric": name, "consumerQuotaLimits": [{"unit": unit, "quotaBuckets": list(buckets)}]}


def test_limits_are_by_region_with_a_default() -> None:
    zone = {"region": "us-east1", "zone": "us-east1-b"}
    pages = [
        {"metrics": [metric("aiplatform.googleapis.com/online_prediction_requests")]},
        {
            "metrics": [
                metric(
                    CPUS,
                    {"effectiveLimit": "42", "defaultLimit": "20"},
                    {"effectiveLimit": "-1", "dimensions": {"region": "us-central1"}},
                    {"effectiveLimit": "7", "dimensions": zone},
                    {"defaultLimit": "8", "dimensions": {"region": "us-west1"}},
                )
            ]
        },
        {},
    ]
    assert read_job_quotas(pages) == {
        "custom_model_training_cpus": {"": 42, "us-central1": -1},
    }


def test_a_limit_of_the_whole_project_is_not_that_of_a_region() -> None:
    pages = [{"metrics": [metric(CPUS, {"effectiveLimit": "0"}, unit="1/{project}")]}]
    assert read_job_quotas(pages) == {"custom_model_training_cpus": {}}
