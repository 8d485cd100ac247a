"""The scikit-learn face."""

from kernelwright.estimators.classifier import EmbeddingClassifier
from kernelwright.estimators.mean_embedding import ConditionalMeanEmbedding

__all__ = ["ConditionalMeanEmbedding", "EmbeddingClassifier"]
