"""Gaussian processes of GPyTorch, as in its documentation: two classifiers, and exact regression."""

import contextlib
import copy
import math

import gpytorch
import numpy as np
import torch
import torch._dynamo  # loaded lazily otherwise, and half loaded if the first fit is cut short
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import DirichletClassificationLikelihood, GaussianLikelihood, SoftmaxLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood, VariationalELBO
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    IndependentMultitaskVariationalStrategy,
    VariationalStrategy,
)
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from benchmarks.forecasts import NormalForecast

SAMPLES = 256  # of a posterior, for class probabilities
ROWS_AT_ONCE = 1000
LEARNED_FROM = 1000  # rows, for the length scales of exact regression: 1500 take 42 seconds on one thread


class _Process:
    """Standardised rows in single precision; probabilities from samples of each row's posterior."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "_Process":
        torch.manual_seed(0)
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.scaler = StandardScaler().fit(X)
        self.learn(self._rows(X), torch.from_numpy(labels))
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        torch.manual_seed(0)
        with torch.no_grad():
            return torch.cat([self.probabilities(part) for part in self._rows(X).split(ROWS_AT_ONCE)]).double().numpy()

    def _rows(self, X: np.ndarray) -> Tensor:
        return torch.from_numpy(self.scaler.transform(X).astype(np.float32))

    def learn(self, X: Tensor, labels: Tensor) -> None:
        raise NotImplementedError

    def probabilities(self, X: Tensor) -> Tensor:
        raise NotImplementedError


class _ExactModel(gpytorch.models.ExactGP):
    def __init__(self, X: Tensor, targets: Tensor, likelihood: gpytorch.likelihoods.Likelihood, classes: int) -> None:
        super().__init__(X, targets, likelihood)
        shape = torch.Size([classes])
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
        self.covar_module = ScaleKernel(RBFKernel(batch_shape=shape), batch_shape=shape)
        # Distances of standardised rows grow like the root of their number of columns.
        self.covar_module.base_kernel.lengthscale = math.sqrt(X.shape[1])

    def forward(self, X: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(X), self.covar_module(X))


class DirichletProcess(_Process):
    """Exact regression on labels that are transformed into logarithms of Dirichlet parameters, with their noise."""

    def learn(self, X: Tensor, labels: Tensor) -> None:
        likelihood = DirichletClassificationLikelihood(labels, learn_additional_noise=True)
        model = _ExactModel(X, likelihood.transformed_targets, likelihood, likelihood.num_classes)
        objective = ExactMarginalLogLikelihood(likelihood, model)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
        model.train()
        # Above 800 rows GPyTorch switches from factors to conjugate gradients: twice as fast here, too (yeast).
        for _ in range(50):
            optimiser.zero_grad()
            loss = -objective(model(X), likelihood.transformed_targets).sum()
            loss.backward()
            optimiser.step()
        self.model = model.eval()

    def probabilities(self, X: Tensor) -> Tensor:
        found = self.model(X)
        mean, deviation = found.mean.T, found.variance.clamp_min(0.0).sqrt().T
        draws = mean + deviation * torch.randn(SAMPLES, *mean.shape)
        return draws.softmax(-1).mean(0)


class _DeepModel(gpytorch.models.ApproximateGP):
    """A process for each class on the features of a network."""

    def __init__(self, network: nn.Module, inducing: Tensor, classes: int) -> None:
        shape = torch.Size([classes])
        with torch.no_grad():
            points = network(inducing).expand(classes, -1, -1).clone()
        distribution = CholeskyVariationalDistribution(points.shape[1], batch_shape=shape)
        strategy = VariationalStrategy(self, points, distribution, learn_inducing_locations=True)
        super().__init__(IndependentMultitaskVariationalStrategy(strategy, num_tasks=classes))
        self.network = network
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
        self.covar_module = ScaleKernel(RBFKernel(batch_shape=shape), batch_shape=shape)

    def forward(self, Z: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(Z), self.covar_module(Z))

    def __call__(self, X: Tensor) -> MultivariateNormal:
        return super().__call__(self.network(X))


class DeepKernelProcess(_Process):
    """A variational process with 128 inducing points on eight features of a network with two hidden layers.

    Mini-batches of 256, Adam at 0.01; at least ten epochs and 400 steps. A tenth of the rows decides on the epoch.
    """

    def learn(self, X: Tensor, labels: Tensor) -> None:
        classes = int(labels.max()) + 1
        parts = train_test_split(X.numpy(), labels.numpy(), test_size=0.1, random_state=0)
        X, X_check, labels, labels_check = map(torch.from_numpy, parts)
        network = nn.Sequential(
            *(nn.Linear(X.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()),
            *(nn.Linear(64, 8), nn.BatchNorm1d(8)),  # features on the scale of the kernel
        )
        self.likelihood = SoftmaxLikelihood(num_classes=classes, mixing_weights=False)
        self.model = _DeepModel(network, X[torch.randperm(len(X))[:128]], classes)
        objective = VariationalELBO(self.likelihood, self.model, num_data=len(X))
        optimiser = torch.optim.Adam(self.model.parameters(), lr=0.01)
        batches = math.ceil(len(X) / 256)
        best, best_loss = None, math.inf
        for _ in range(max(10, math.ceil(400 / batches))):
            self.model.train()
            # Almost equal parts: batch norm fails on a single row.
            for rows in torch.randperm(len(X)).tensor_split(batches):
                optimiser.zero_grad()
                loss = -objective(self.model(X[rows]), labels[rows])
                loss.backward()
                optimiser.step()
            with torch.no_grad():
                p = torch.cat([self.probabilities(part) for part in X_check.split(ROWS_AT_ONCE)])
            loss_check = -p[torch.arange(len(p)), labels_check].clamp_min(1e-9).log().mean().item()
            if loss_check < best_loss:
                best, best_loss = copy.deepcopy(self.model.state_dict()), loss_check
        if best is not None:
            self.model.load_state_dict(best)

    def probabilities(self, X: Tensor) -> Tensor:
        self.model.eval()
        found = self.model(X)
        deviation = found.variance.clamp_min(0.0).sqrt()
        draws = found.mean + deviation * torch.randn(SAMPLES, *found.mean.shape)
        return draws.softmax(-1).mean(0)


class _RegressionModel(gpytorch.models.ExactGP):
    def __init__(self, X: Tensor, y: Tensor, likelihood: gpytorch.likelihoods.Likelihood) -> None:
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=X.shape[1]))
        self.covar_module.base_kernel.lengthscale = math.sqrt(X.shape[1])

    def forward(self, X: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(X), self.covar_module(X))


class ExactRegression:
    """Exact regression in double precision on standardised rows and targets, with a length scale for each column.

    The length scales and the noise are learned from at most 1000 rows; the posterior is that of all rows.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> "ExactRegression":
        self.scaler = StandardScaler().fit(X)
        self.centre, self.unit = float(y.mean()), float(y.std()) or 1.0
        all_rows, all_targets = self._rows(X), torch.from_numpy((y - self.centre) / self.unit)
        sample = np.random.default_rng(0).permutation(len(y))[:LEARNED_FROM]
        rows, targets = all_rows[sample], all_targets[sample]
        self.likelihood = GaussianLikelihood().double()
        self.model = _RegressionModel(rows, targets, self.likelihood).double().train()
        objective = ExactMarginalLogLikelihood(self.likelihood, self.model)
        optimiser = torch.optim.Adam(self.model.parameters(), lr=0.1)
        with self._factors():
            for _ in range(100):
                optimiser.zero_grad()
                (-objective(self.model(rows), targets)).backward()
                optimiser.step()
        self.model.set_train_data(all_rows, all_targets, strict=False)
        self.model.eval()
        return self

    def forecast(self, X: np.ndarray) -> NormalForecast:
        with torch.no_grad(), self._factors():
            parts = [self.likelihood(self.model(part)) for part in self._rows(X).split(ROWS_AT_ONCE)]
            mean = torch.cat([part.mean for part in parts]).numpy()
            deviation = torch.cat([part.variance.sqrt() for part in parts]).numpy()
        return NormalForecast(self.centre + self.unit * mean, self.unit * deviation)

    @staticmethod
    def _factors() -> contextlib.AbstractContextManager[object]:
        # Conjugate gradients, its default above 800 rows, leave an error that is visible on targets of little noise.
        return gpytorch.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)

    def _rows(self, X: np.ndarray) -> Tensor:
        return torch.from_numpy(self.scaler.transform(X))
