"""The scikit-learn face."""

from kernelwright.estimators.classifier import EmbeddingClassifier

__all__ = ["EmbeddingClassifier"]
