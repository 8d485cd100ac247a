"""The scikit-learn estimator of embedding networks."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from kernelwright.estimators.bad_fit import warn_of_bad_fit
from kernelwright.estimators.base import by_chunks, part_of
from kernelwright.estimators.checking import asked_for
from kernelwright.estimators.embedded import COLUMN_CONSTRAINTS
from kernelwright.estimators.network_rows import INPUTS, check_network_rows
from kernelwright.estimators.probabilities import ProbabilityClassifier
from kernelwright.estimators.progress import progress, with_lines
from kernelwright.inputs.arrays import seed_of
from kernelwright.inputs.dataset import ClassInfo
from kernelwright.inputs.frames.columns import Column
from kernelwright.inputs.frames.given_rows import check_new_rows, described_columns
from kernelwright.inputs.options import TakesOptions
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Kernel
from kernelwright.learning import HeldOut, LearningMethod, Rademacher, Step
from kernelwright.learning.collapse import warn_of_collapsed_network
from kernelwright.networks import MLP, HeadOptions, Training
from kernelwright.networks.fitting import (
    NetworkPlan,
    SolvedNetwork,
    TrainedNetwork,
    calibrate,
    checkpoint_for,
    read_rows,
    solve,
    split,
    start,
    train,
)
from kernelwright.networks.goals import WORDS, network_method
from kernelwright.networks.modules import checked_widths
from kernelwright.networks.training import seeded
from kernelwright.numerics.threads import threads_for
from kernelwright.storage.saved import saved
from kernelwright.uncertainty.links import FittedLink
from kernelwright.uncertainty.risk import UNBOUNDED, WEIGHTED, RiskTerms

__all__ = ["EmbeddingNetworkClassifier"]


@saved(
    "embedding-network-classifier",
    fields="classes_ class_weight_ embedding_ link_ complexity_ objective_ history_ n_iter_ batch_size_ _risk _holdout "
    "reader_ centre_ _asked",
)
class EmbeddingNetworkClassifier(
    ClassNamePrefixFeaturesOutMixin, ProbabilityClassifier, TransformerMixin, TakesOptions
):
    """A network whose last layer is a conditional embedding, solved in closed form [Hsu2018]_.

    The network is trained through the solution: every mini-batch is embedded by ridge regression onto one-hot labels,
    and the gradient of its loss is backpropagated in closed form. Weights, biases and the ridge are learned together by
    ``mean loss + tau r``, ``r = alpha |W|`` (Eq. 12), where ``alpha^2 = sup k(x, x)``. The final embedding is solved on
    all training rows by a sum over batches.

    Parameters
    ----------
    module : torch.nn.Module, its class, networks.MLP or None, default=None
        Any network from inputs to features (it is copied, with its weights), its class, if this needs no argument or
        only the number of inputs (``X.shape[1]``), or a fully connected network described by
        :class:`~kernelwright.networks.MLP`. ``None`` is ``MLP(hidden)``.
    hidden : sequence of int, default=(96, 32)
        Widths of the fully connected network, if ``module`` is None; the last is the number of features.
    kernel : Kernel or None, default=None
        ``None`` is the linear kernel on the features, with matrices as large as their number (Algorithm 2). Any other
        kernel needs matrices as large as the number of rows, in every batch and at the end (Algorithm 1).
    learn : {"auto", "rademacher", "held-out"}, learning.Rademacher or learning.HeldOut, default="auto"
        The objective of a mini-batch. ``Rademacher(complexity_weight, epsilon=...)`` is Eq. (12), where n is the number
        of training rows. ``HeldOut(complexity_weight, epsilon=..., share=0.5)`` is Eq. (13), with that
        share of each batch held out and scored by the embedding of the rest. "auto" is Eq. (12) with the weight "4e/n"
        and the loss clipped at 0.1; or Eq. (13) with half of each batch held out, if a batch has fewer than twice as
        many rows as features and the embedding could fit it perfectly. Note that ``epsilon`` of the objects (and their
        short forms) is 1e-15 by default, the published clip: its steep gradients train much worse than a clip of 0.1.
    head : networks.HeadOptions or None, default=None
        The ridge, the intercept and alpha; ``None`` is ``HeadOptions()``.
    training : networks.Training or None, default=None
        Batches, epochs, learning rate, early stopping, checkpoint, device and precision; ``None`` is ``Training()``.
    probability : {"auto", "power", "softmax", "clip"} or estimator, default="auto"
        Map from raw outputs to probabilities, fitted to leave-one-out outputs ("auto" is "softmax"); or any
        scikit-learn calibrator, as in :class:`~kernelwright.EmbeddingClassifier`.
    scale : {"auto", "standard", "unit", None}, default="auto"
        Scaling of the inputs. "auto" standardises the inputs of the fully connected network and does not scale those of
        a given module.
    class_weight : dict, "balanced" or None, default=None
    categorical, keep, callback
        As in :class:`~kernelwright.EmbeddingClassifier`; there is a step of learning for each epoch.
    warm_start : bool, default=False
        Start from the network and the ridge of the last fit, unless ``module``, ``hidden`` or ``kernel`` has changed.
    random_state : int, RandomState or None, default=None
        For the initial weights, batches and dropout. No global random state is changed.
    verbose : int, default=0
        If positive, write a line to the log ``kernelwright`` every ``verbose`` epochs.

    Attributes
    ----------
    classes_ : ndarray
    embedding_ : FittedNetwork
        The trained network with its solved embedding; the attributes from ``module_`` to ``n_support_rows_`` are parts
        of it.
    module_ : torch.nn.Module
    kernel_ : Kernel or None
    scaler_, ridge_, points_, n_support_rows_ (the number of training rows behind the unit of :meth:`support`)
    coefficients_ : ndarray
        W, one row for each feature (the last for the intercept); with a kernel V, one row for each of ``points_``.
    jitter_ : float
    link_ : Link
        The map from raw outputs to probabilities: ``probability_map_``, ``class_prior_`` and ``trust_``.
    complexity_, objective_ : float
    history_ : list of Step
    n_iter_, batch_size_, n_features_in_, feature_names_in_, columns_

    Notes
    -----
    A given ``module`` gets inputs of any shape, as float32; the fully connected network, flattened ones. Ctrl-C ends
    training with a warning and keeps the best epoch.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernelwright import EmbeddingNetworkClassifier, networks
    >>> X, y = load_wine(return_X_y=True)
    >>> training = networks.Training(max_epochs=100)
    >>> model = EmbeddingNetworkClassifier(hidden=(32, 8), training=training, random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> model.transform(X).shape
    (178, 8)
    """

    _options: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "head": lambda given: given or HeadOptions(),
        "training": lambda given: given or Training(),
        "learn": lambda given: Rademacher() if given == "rademacher" else HeldOut() if given == "held-out" else given,
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "module": [nn.Module, MLP, type, None],
        "hidden": ["array-like"],
        "kernel": [Kernel, None],
        "learn": [LearningMethod, StrOptions(WORDS)],
        "head": [HeadOptions, None],
        "training": [Training, None],
        "probability": [StrOptions({"auto", "power", "softmax", "clip"}), HasMethods(["fit", "predict"])],
        "scale": [StrOptions({"auto", "standard", "unit"}), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **COLUMN_CONSTRAINTS,
        "warm_start": ["boolean"],
        "callback": [callable, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    module_, kernel_, scaler_ = (part_of("embedding_", name) for name in ("module", "kernel", "scaler"))
    ridge_, points_, jitter_ = (part_of("embedding_", name) for name in ("ridge", "points", "jitter"))
    coefficients_, n_support_rows_ = (part_of("embedding_", name) for name in ("coefficients", "n_support_rows"))
    _n_features_out = part_of("embedding_", "n_features")  # scikit-learn's name for the number of output features

    def __init__(
        self,
        module: nn.Module | type[nn.Module] | MLP | None = None,
        *,
        hidden: Sequence[int] = (96, 32),
        kernel: Kernel | None = None,
        learn: LearningMethod | str = "auto",
        head: HeadOptions | None = None,
        training: Training | None = None,
        probability: Any = "auto",
        scale: str | None = "auto",
        class_weight: dict[Any, float] | str | None = None,
        categorical: str | Sequence[Any] | None = "from_dtype",
        keep: Sequence[Any] = (),
        warm_start: bool = False,
        callback: Callable[[Step], Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.module = module
        self.hidden = hidden
        self.kernel = kernel
        self.learn = learn
        self.head = head
        self.training = training
        self.probability = probability
        self.scale = scale
        self.class_weight = class_weight
        self.categorical = categorical
        self.keep = keep
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> EmbeddingNetworkClassifier:
        """Train the network, solve the embedding on all rows and calibrate its probabilities.

        Parameters
        ----------
        X, y : array-like
            X may be a data frame with columns of any kind. Of Dask arrays or data frames, the network learns from at
            most 50,000 rows, and the embedding is summed up over all rows where they are.
        sample_weight : array-like of shape (n,), optional
        groups : array-like of shape (n,), optional
            Group labels of rows that belong together. They are held out and left out together.
        """
        self._validate_params()
        with progress(self.verbose):
            plan = self._plan()
            rows, info, chunks = check_network_rows(self, X, y, sample_weight, groups)
            targets = ClassTargets(len(info.classes))
            reader, data = read_rows(rows, plan, targets)
            checkpoint, seed = checkpoint_for(plan, data, seed_of(self.random_state))
            with seeded(seed), threads_for(len(data) if data.points.ndim == 2 else sys.maxsize):
                started = start(plan, data)
                parts = split(data, plan.training)
                trained = train(started, data, parts, plan, checkpoint)
                solved = solve(trained, data, parts, plan, reader, chunks)
            link = calibrate(solved, targets.prior(data.targets, data.weights), self.probability)
            self._keep(trained, solved, link, info)
        return self

    def _plan(self) -> NetworkPlan:
        """Return the settings, with short forms replaced by objects."""
        owner = type(self).__name__
        if self.module is None:
            checked_widths(self.hidden, owner)
        module: Any = MLP(self.hidden) if self.module is None else self.module
        module = MLP() if module is MLP else module
        if isinstance(module, type) and not issubclass(module, nn.Module):
            raise TypeError(f"The 'module' parameter of {owner} must be a torch module or its class. Got {module!r}.")
        given, asked = not isinstance(module, MLP), vars(self).get("_asked")
        warm = self.warm_start and asked == (asked_for(self.module, self.kernel), repr(self.hidden))
        return NetworkPlan(
            self.module_ if warm else module.checked() if isinstance(module, MLP) else module,
            self.kernel_ if warm else self.kernel,
            network_method(self.learn, owner),
            (self.head or HeadOptions()).checked(),
            (self.training or Training()).checked(),
            scale=(None if given else "standard") if self.scale == "auto" else self.scale,
            flat=not given,
            random_state=self.random_state,
            warm_ridge=self.ridge_ if warm else None,
            callback=with_lines(self.callback, self.verbose),
        )

    def _keep(self, trained: TrainedNetwork, solved: SolvedNetwork, found: FittedLink, info: ClassInfo) -> None:
        """Store what predictions and bounds need; warn if leave-one-out predictions contradict the fit."""
        goal, result, head, judged = trained.goal, trained.result, solved.head, solved.judged
        self.classes_, self.class_weight_ = info.classes, info.class_weight
        self.embedding_, self.link_ = solved.fitted, found.link
        self._asked = asked_for(self.module, self.kernel), repr(self.hidden)
        self.objective_, self.history_, self.n_iter_ = result.value, result.history, result.n_iter
        self.batch_size_ = trained.plan.batch_size
        self.complexity_ = math.sqrt((head.largest if goal.sup is None else goal.sup) * head.squared_norm)
        weighted = info.weighted or self.class_weight is not None
        unbounded = (self.head or HeadOptions()).sup in ("empirical", "published")
        self._risk = RiskTerms.of(
            (head.fitted, judged),
            (head.left_out, found.log_p, judged),
            epsilon=goal.epsilon,
            n_rows=solved.n_rows,
            faults=(WEIGHTED,) * weighted + (UNBOUNDED,) * unbounded,
        )
        self._holdout = None
        warn_of_bad_fit(head.fitted.argmax(1), judged, found.log_p, judged)
        warn_of_collapsed_network(head.left_out, self.complexity_, goal.tau_of_log_loss)

    # predictions -----------------------------------------------------------------------------------------

    @by_chunks
    def transform(self, X: Any) -> np.ndarray:
        """Return the features of the network, without the intercept."""
        checked = self._check_new(X)
        return self.embedding_.features(checked).numpy()

    @property
    def columns_(self) -> tuple[Column, ...]:
        """What was done to each column of the training table."""
        return described_columns(self)

    def _check_new(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return check_new_rows(self, X, **INPUTS)

    def _outputs_and_support(self, X: Any) -> tuple[Tensor, Tensor]:
        checked = self._check_new(X)
        return self.embedding_.outputs(checked)
