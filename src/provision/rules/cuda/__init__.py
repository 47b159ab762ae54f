"""Rules for CUDA: builds of torch, drivers and the toolkit."""
