"""Builds the kernels for the CPU and runs them: the same .cu files, under g++ and fibers."""
