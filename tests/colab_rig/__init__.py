"""A stand-in for a Colab machine: a real interpreter with a runtime's packages, real kernels, and
what of Colab its notebooks can see.
"""
