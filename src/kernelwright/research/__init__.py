"""What reproduces the papers: rival methods (``baselines``) and the experiments themselves."""

from kernelwright.research import baselines

__all__ = ["baselines"]
