"""The scikit-learn face."""

from kernelwright.estimators.classifier import EmbeddingClassifier
from kernelwright.estimators.hyper_ridge import HyperKernelRidge
from kernelwright.estimators.hyper_svr import HyperKernelSVR
from kernelwright.estimators.krein import KreinSVC
from kernelwright.estimators.mean_embedding import ConditionalMeanEmbedding
from kernelwright.estimators.network import EmbeddingNetworkClassifier
from kernelwright.estimators.prediction_intervals import PredictionIntervals
from kernelwright.estimators.prediction_sets import PredictionSets
from kernelwright.estimators.regressor import EmbeddingRegressor
from kernelwright.estimators.two_stage import LearnedKernelClassifier

__all__ = [
    "ConditionalMeanEmbedding",
    "EmbeddingClassifier",
    "EmbeddingNetworkClassifier",
    "EmbeddingRegressor",
    "HyperKernelRidge",
    "HyperKernelSVR",
    "KreinSVC",
    "LearnedKernelClassifier",
    "PredictionIntervals",
    "PredictionSets",
]
