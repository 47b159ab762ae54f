"""Vertex AI Workbench: instances that set up and verify their own environment."""
