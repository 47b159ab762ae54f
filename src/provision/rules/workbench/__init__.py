"""Rules for Workbench targets."""
