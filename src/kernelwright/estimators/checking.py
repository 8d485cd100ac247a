"""Turn a user's settings and data into a plan and checked rows."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
import torch
from torch import nn

from kernelwright.estimators.arrows import FitPlan
from kernelwright.estimators.progress import with_lines
from kernelwright.features import FeatureMap
from kernelwright.features.nystroem import Nystroem
from kernelwright.inputs.arrays import seed_of, validate_data
from kernelwright.inputs.blocks import Block, Chunks, SlicedRows
from kernelwright.inputs.dask_rows import DaskRows, example_row, is_dask
from kernelwright.inputs.dataset import ClassInfo, Dataset, check_classes, check_rows, counted_groups
from kernelwright.inputs.numbers import NumberInfo, check_numbers, weights_of_numbers, without_gaps
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import FeatureKernel, Kernel, Precomputed, Tabular
from kernelwright.kernels.vector import HasLengthScales
from kernelwright.learning import LearningMethod, learning_method
from kernelwright.solvers import Auto, Exact, Landmarks, Solver, solver_of

__all__ = ["asked_for", "check", "check_number_rows", "plan_of", "restarted", "settings_of", "starts_warm"]

FLIPPED_LANDMARKS = 1000  # default for a kernel that may be indefinite


def first_kernel(kernel: Any, features: FeatureMap | None, solver: Solver, random_state: Any) -> Kernel:
    """Return a copy of the user's kernel, to be learned; features have their own kernel.

    A kernel that may be indefinite is used through features at landmarks, with negative eigenvalues flipped.
    """
    if features is not None:
        if kernel is not None:
            raise ValueError("Pass either a kernel or features, not both: features have their own kernel.")
        if not isinstance(solver, Auto):
            raise ValueError(
                f"An embedding of features needs no other solver: leave solver='auto'. Got {solver.word!r} instead."
            )
        return FeatureKernel(copy.deepcopy(features))
    if kernel is None:
        return Tabular()
    if isinstance(kernel, str):
        return Precomputed()
    if kernel.definite:
        return copy.deepcopy(kernel)
    if not isinstance(solver, (Auto, Landmarks)):
        raise ValueError(
            f"A kernel that may be indefinite needs landmarks: solver='nystroem' or 'auto'. "
            f"Got {solver.word!r} instead."
        )
    size = solver.n if isinstance(solver, Landmarks) else None
    return FeatureKernel(Nystroem(copy.deepcopy(kernel), size or FLIPPED_LANDMARKS, seed=seed_of(random_state)))


def scale_for(scale: str | None, *, default_kernel: bool) -> str | None:
    """Return how the inputs are scaled; the default kernel makes its own views of a table."""
    if default_kernel and scale != "auto":
        raise ValueError(
            f"The default kernel makes its own views of a table and needs scale='auto'. Got {scale!r}; "
            "pass a kernel to use another scale."
        )
    return ("views" if default_kernel else None) if scale == "auto" else scale


def asked_for(kernel: Any, features: Any) -> str:
    """Return a fingerprint of the given kernel and features, with all their parameters."""
    parts = (kernel, features)
    numbers = [part.state_dict() for part in parts if isinstance(part, nn.Module)]
    return repr(parts) + joblib.hash([[value.numpy() for value in state.values()] for state in numbers])


def kernel_as_given(kernel: Any, method: LearningMethod) -> bool:
    """Return whether the kernel does not depend on the rows, except for their scale."""
    if method.word != "given" or not isinstance(kernel, Kernel):
        return False
    parts = (part for part in kernel.modules() if isinstance(part, HasLengthScales))
    return kernel.definite and not any(part.median for part in parts)


def check(
    model: Any, plan: FitPlan, X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[Dataset | Chunks, ClassInfo, np.ndarray]:
    """Check the rows; return those of positive weight, their class information and a mask of which rows these are.

    Large data stay in chunks if sums over the rows are enough.
    """
    shares = plan.method.kernel_share is not None or plan.method.holdout_share is not None
    sums_suffice = plan.explicit and not shares
    if is_dask(X):
        if groups is not None:
            raise ValueError("'groups' is not supported for Dask collections: a group would have to be in one place.")
        return _check_chunks(model, X, y, sample_weight, sums_suffice=sums_suffice)
    kernel = plan.kernel
    given = isinstance(kernel, Precomputed)  # it reports missing values itself
    X, y = check_rows(model, X, y, vectors=kernel.takes_vectors or given, finite=not given)
    info, labels, weights, kept = check_classes(y, sample_weight, model.class_weight, model)
    names = counted_groups(groups, kept)
    if not kernel.takes_vectors:
        points = kernel.encode_training(X)[torch.from_numpy(kept)]
        return Dataset(None, points, labels, weights, names), info, kept
    rows = Dataset(X if kept.all() else X[kept], None, labels, weights, names)
    chunks = SlicedRows(Block(rows.X, labels, weights))
    many = sums_suffice and groups is None and len(chunks) > chunks.n_gathered
    return chunks if many else rows, info, kept


def check_number_rows(
    model: Any, plan: FitPlan, X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[Dataset | Chunks, NumberInfo, np.ndarray]:
    """Check rows with numbers as targets; return those that count, what is known about them, and their mask.

    Rows without a target are left out with a warning. Large data stay in chunks if sums over the rows are enough.
    """
    shares = plan.method.kernel_share is not None or plan.method.holdout_share is not None
    sums_suffice = plan.explicit and not shares
    if is_dask(X):
        if groups is not None:
            raise ValueError("'groups' is not supported for Dask collections: a group would have to be in one place.")
        refuse_kernel_on_dask(sums_suffice=sums_suffice)
        validate_data(model, example_row(X), skip_check_array=True)  # names and number of columns
        chunks, weighted = DaskRows.read_numbers(X, y, sample_weight)
        unit = float(chunks.factors[0])
        info, kept = NumberInfo(1, True, weighted, unit), np.ones(len(chunks), dtype=bool)
        few = len(chunks) <= chunks.n_gathered
        return Dataset.of(chunks.take(np.arange(len(chunks)))) if few else chunks, info, kept
    numbers, one_column = check_numbers(y)
    X, numbers, sample_weight, groups, there = without_gaps(X, numbers, sample_weight, groups)
    kernel = plan.kernel
    given = isinstance(kernel, Precomputed)  # it reports missing values itself
    if given and not there.all():
        X = np.asarray(X)[:, there]
    options = {"multi_output": True, "y_numeric": True}
    X, numbers = check_rows(model, X, numbers, vectors=kernel.takes_vectors or given, finite=not given, **options)
    weights, counted, unit = weights_of_numbers(len(numbers), sample_weight)
    names = counted_groups(groups, counted)
    kept = there.copy()
    kept[there] = counted
    info = NumberInfo(numbers.shape[1], one_column, bool(np.ptp(weights) > 0), unit)
    if not kernel.takes_vectors:
        points = kernel.encode_training(X)[torch.from_numpy(counted)]
        return Dataset(None, points, numbers[counted], weights, names), info, kept
    rows = Dataset(X if counted.all() else X[counted], None, numbers[counted], weights, names)
    sliced = SlicedRows(Block(rows.X, rows.y, weights))
    many = sums_suffice and groups is None and len(sliced) > sliced.n_gathered
    return sliced if many else rows, info, kept


def refuse_kernel_on_dask(*, sums_suffice: bool) -> None:
    """Raise an error unless sums over the rows are enough."""
    if not sums_suffice:
        raise ValueError(
            "Rows in a Dask collection are summed up where they are. This needs explicit features, such as "
            "features=RandomFourier(1000), without kernel_share and holdout_share. For an embedding by a kernel "
            "load the rows into memory: fit(X.compute(), y.compute())."
        )


def _check_chunks(
    model: Any, X: Any, y: Any, sample_weight: Any, *, sums_suffice: bool
) -> tuple[Dataset | Chunks, ClassInfo, np.ndarray]:
    refuse_kernel_on_dask(sums_suffice=sums_suffice)
    validate_data(model, example_row(X), skip_check_array=True)  # names and number of columns
    chunks, classes, weighted = DaskRows.read(X, y, sample_weight, model.class_weight, model)
    info, kept = ClassInfo(classes, chunks.factors, weighted), np.ones(len(chunks), dtype=bool)
    few = len(chunks) <= chunks.n_gathered
    return Dataset.of(chunks.take(np.arange(len(chunks)))) if few else chunks, info, kept


def plan_of(model: Any, *, warm: bool = False) -> FitPlan:
    """Return the plan of an estimator's settings, without targets: they are known once the rows are checked."""
    owner = type(model).__name__
    method, solver = learning_method(model.learn, owner), solver_of(model.solver, owner)
    default = model.kernel is None and model.features is None
    kernel = first_kernel(model.kernel, model.features, solver, model.random_state)
    if model.kernel == "precomputed" and isinstance(solver, Auto):
        solver = Exact(solver.precision)
    return FitPlan(
        copy.deepcopy(model.kernel_) if warm else kernel,
        method,
        solver,
        ridge=model.ridge_ if warm else model.ridge,
        scale=scale_for(model.scale, default_kernel=default),
        targets=ClassTargets(0),
        random_state=model.random_state,
        default_kernel=default,
        as_given=kernel_as_given(model.kernel, method),
        warm=warm,
        callback=with_lines(model.callback, model.verbose),
    )


def settings_of(model: Any) -> str:
    """Return, as text, all settings that influence what an estimator learns from given rows."""
    aside = ("kernel", "features", "random_state", "callback", "verbose", "warm_start")
    settings = {name: value for name, value in model.get_params(deep=True).items() if name not in aside}
    return repr(sorted(settings.items(), key=str)) + asked_for(model.kernel, model.features)


def starts_warm(model: Any, asked_before: str | None) -> bool:
    """Return whether to start from the last fit: only if the kernel setting is unchanged and is learned."""
    learned = learning_method(model.learn, type(model).__name__).learns and "embedding_" in vars(model)
    return bool(model.warm_start and learned and asked_before == asked_for(model.kernel, model.features))


def restarted(plan: FitPlan, model: Any, scaler: Any) -> FitPlan:
    """Return the plan; without its warm start, if the set of varying columns has changed since the last fit."""
    before = getattr(model.scaler_, "columns_", None) if plan.warm else None
    if before is None or np.array_equal(before, scaler.columns_):
        return plan
    return replace(plan_of(model), targets=plan.targets)
