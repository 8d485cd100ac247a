"""Reproduction of the papers: rival methods (``baselines``) and the experiments (``experiments``)."""

from kernelwright.research import baselines

__all__ = ["baselines"]
