"""Vertex AI Workbench: instances that make their environment and verify it by themselves."""
