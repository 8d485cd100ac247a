"""Embedding networks: modules, heads, training and checkpoints.

:class:`MLP`, :class:`HeadOptions` and :class:`Training` are what
:class:`~kernelwright.EmbeddingNetworkClassifier` takes as ``module``, ``head`` and ``training``.
"""

from kernelwright.networks.options import MLP, HeadOptions, Training

__all__ = ["MLP", "HeadOptions", "Training"]
