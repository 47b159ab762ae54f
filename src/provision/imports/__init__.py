"""Reads files of other tools (requirements, notebooks, locks ...) as the content of a spec."""
