"""Rules for machines that are folders."""
