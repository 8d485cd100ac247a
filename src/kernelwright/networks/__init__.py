"""Embedding networks: heads, modules, training and checkpoints."""
