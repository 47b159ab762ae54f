"""Every speed promise, measured beside its peer on this machine: `python -m benchmarks [NAME ...]`."""  # noqa: E501
