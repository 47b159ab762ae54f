"""Environment variables that connect Google's tools to a sandbox."""

from __future__ import annotations

from collections.abc import Mapping


def client_variables(endpoints: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of gcloud, of the storage client libraries and of provision.

    For gcloud they set the properties api_endpoint_overrides and auth. gRPC clients have no such
    variable: they get the address in code.
    """
    ours = {
        f"PROVISION_SANDBOX_{name.upper()}": address
        for name, address in endpoints.items()
        if address
    }
    return {
        **ours,
        "STORAGE_EMULATOR_HOST": endpoints["storage"],
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_NOTEBOOKS": f"{endpoints['notebooks_rest']}/",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{endpoints['compute']}/compute/v1/",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{endpoints['storage']}/storage/v1/",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": f"{endpoints['secrets']}/",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": f"{endpoints['aiplatform']}/",
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
    }
