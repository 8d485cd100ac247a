"""Numerical building blocks: factorisations, products, distances, threads, memory."""
