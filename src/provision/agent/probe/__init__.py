"""The island: measures the environment it runs in, judges it against expectations, writes a report;
stdlib only, imports nothing of ours.
"""
