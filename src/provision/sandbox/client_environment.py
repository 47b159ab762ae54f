"""How Google's own tools are told to speak to a sandbox: environment variables."""

from __future__ import annotations

from collections.abc import Mapping


def client_variables(endpoints: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for gcloud (its properties api_endpoint_overrides and auth) and for the
    storage client libraries, and ours.

    gRPC clients know no such variable: they are given the address in code.
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
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
    }
