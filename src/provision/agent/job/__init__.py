"""The program of a replica of a custom job of Vertex AI: environment, meeting, probe, reports.

It sets its machine up with the parts of the program for Workbench instances.
"""
