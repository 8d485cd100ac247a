"""Atomic file writes, and the registry of classes that a model file may hold."""
