"""Classification by GPyTorch as in its documentation: exact Gaussian processes on Dirichlet targets."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.likelihoods import DirichletClassificationLikelihood

__all__ = ["DirichletGaussianProcess"]


class _Process(gpytorch.models.ExactGP):
    def __init__(self, X: torch.Tensor, targets: torch.Tensor, likelihood: Any, n_classes: int) -> None:
        super().__init__(X, targets, likelihood)
        batch = torch.Size([n_classes])
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=batch)
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel(batch_shape=batch), batch_shape=batch
        )

    def forward(self, X: torch.Tensor) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


class DirichletGaussianProcess:
    """``fit`` and ``predict_proba`` around the model of GPyTorch's tutorial; labels are passed on unchecked."""

    def fit(self, X: Any, y: Any) -> DirichletGaussianProcess:
        torch.manual_seed(0)
        X = torch.as_tensor(X, dtype=torch.float64)
        self.likelihood = DirichletClassificationLikelihood(
            torch.as_tensor(y), learn_additional_noise=True, dtype=torch.float64
        )
        self.classes_ = np.arange(self.likelihood.num_classes)
        targets = self.likelihood.transformed_targets.double()
        self.model = _Process(X, targets, self.likelihood, self.likelihood.num_classes).double()
        self.model.train(), self.likelihood.train()
        optimiser = torch.optim.Adam(self.model.parameters(), lr=0.1)
        evidence = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self.model)
        for _ in range(50):
            optimiser.zero_grad()
            loss = -evidence(self.model(X), targets).sum()
            loss.backward()
            optimiser.step()
        self.model.eval(), self.likelihood.eval()
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        with torch.no_grad():
            samples = self.model(torch.as_tensor(X, dtype=torch.float64)).sample(torch.Size((256,))).exp()
        return (samples / samples.sum(-2, keepdim=True)).mean(0).T.numpy()

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(1)]
