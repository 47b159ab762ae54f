"""Emulator of the Google Cloud services that provisioning needs, on loopback."""
