"""The scikit-learn face."""

from kernelwright.estimators.classifier import EmbeddingClassifier
from kernelwright.estimators.mean_embedding import ConditionalMeanEmbedding
from kernelwright.estimators.network import EmbeddingNetworkClassifier

__all__ = ["ConditionalMeanEmbedding", "EmbeddingClassifier", "EmbeddingNetworkClassifier"]
