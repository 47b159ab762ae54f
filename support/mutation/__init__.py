"""Mutants of src/provision and the tests that kill them, for support/mutation_sample.py."""
