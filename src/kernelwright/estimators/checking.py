"""Turn a user's settings and data into a plan and checked rows."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
import torch
from torch import nn

from kernelwright.estimators.arrows import FitPlan, given_rows
from kernelwright.estimators.chunk_checks import check_chunks, check_chunks_of_numbers, refuse_groups_of_chunks
from kernelwright.estimators.progress import with_lines
from kernelwright.features import FeatureMap
from kernelwright.features.nystroem import Nystroem
from kernelwright.inputs.arrays import seed_of
from kernelwright.inputs.blocks import Block, Chunks, SlicedRows
from kernelwright.inputs.dask_rows import is_dask
from kernelwright.inputs.dataset import ClassInfo, Dataset, check_classes, check_rows, counted_groups
from kernelwright.inputs.frames.given import is_frame, pandas_frame
from kernelwright.inputs.frames.given_rows import GivenRows
from kernelwright.inputs.layout import TableLayout
from kernelwright.inputs.numbers import NumberInfo, check_numbers, warn_of_numbers, weights_of_numbers, without_gaps
from kernelwright.inputs.source_rows import SourceRows
from kernelwright.inputs.sparse_tables import check_sparse, is_sparse
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Angular, FeatureKernel, Kernel, Precomputed, Tabular
from kernelwright.kernels.sparse import refuse_unless_sparse
from kernelwright.kernels.vector import HasLengthScales
from kernelwright.learning import LearningMethod, learning_method
from kernelwright.solvers import Auto, Exact, Fourier, Landmarks, Solver, solver_of

__all__ = ["asked_for", "check", "check_number_rows", "plan_of", "restarted", "settings_of", "start_of"]

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
    if is_dask(X) or isinstance(X, SourceRows):
        refuse_groups_of_chunks(groups)
        return check_chunks(model, plan, X, y, sample_weight, shares=shares)
    kernel, rows_given = plan.kernel, given_rows(model, plan, X, y)
    X, y = checked(model, plan, rows_given, y)
    info, labels, weights, kept = check_classes(y, sample_weight, model.class_weight, model)
    names = counted_groups(groups, kept)
    if not kernel.takes_vectors:
        points = kernel.encode_training(X)[torch.from_numpy(kept)]
        return Dataset(None, points, labels, weights, names), info, kept
    rows = Dataset(X if kept.all() else X[kept], None, labels, weights, names, layout=layout_of(plan, rows_given, X))
    if is_sparse(X):
        return rows, info, kept
    chunks = SlicedRows(Block(rows.X, labels, weights))
    many = sums_suffice and groups is None and rows.layout is None and len(chunks) > chunks.n_gathered
    return chunks if many else rows, info, kept


def checked(model: Any, plan: FitPlan, rows: GivenRows, y: Any, **options: Any) -> tuple[Any, np.ndarray]:
    """Return checked rows and targets; a matrix of kernel values reports missing values itself."""
    given = isinstance(plan.kernel, Precomputed)
    if is_sparse(rows.X) and not given:
        X, y = check_sparse(model, rows.X, y, **options)
    else:
        finite = False if given else rows.finite
        X, y = check_rows(model, rows.X, y, vectors=plan.kernel.takes_vectors or given, finite=finite, **options)
    rows.settle(model)
    return X, y


def layout_of(plan: FitPlan, rows: GivenRows, X: Any) -> TableLayout | None:
    """Return what the columns of checked rows stand for, if they are codes."""
    return None if is_sparse(X) or isinstance(plan.kernel, Precomputed) else rows.layout(X)


def check_number_rows(
    model: Any, plan: FitPlan, X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[Dataset | Chunks, NumberInfo, np.ndarray]:
    """Check rows with numbers as targets; return those that count, what is known about them, and their mask.

    Rows without a target are left out with a warning. Large data stay in chunks if sums over the rows are enough.
    """
    shares = plan.method.kernel_share is not None or plan.method.holdout_share is not None
    sums_suffice = plan.explicit and not shares
    if is_dask(X) or isinstance(X, SourceRows):
        refuse_groups_of_chunks(groups)
        return check_chunks_of_numbers(model, plan, X, y, sample_weight, shares=shares)
    numbers, one_column = check_numbers(y)
    X = pandas_frame(X) if is_frame(X) and not hasattr(X, "iloc") else X
    X, numbers, sample_weight, groups, there = without_gaps(X, numbers, sample_weight, groups)
    kernel, rows_given = plan.kernel, given_rows(model, plan, X, numbers)
    X = rows_given.X
    if isinstance(kernel, Precomputed) and not there.all():
        X = np.asarray(X)[:, there]
    X, numbers = checked(model, plan, replace(rows_given, X=X), numbers, multi_output=True, y_numeric=True)
    weights, counted, unit = weights_of_numbers(len(numbers), sample_weight)
    names = counted_groups(groups, counted)
    kept = there.copy()
    kept[there] = counted
    warn_of_numbers(numbers[counted])
    info = NumberInfo(numbers.shape[1], one_column, bool(np.ptp(weights) > 0), unit)
    if not kernel.takes_vectors:
        points = kernel.encode_training(X)[torch.from_numpy(counted)]
        return Dataset(None, points, numbers[counted], weights, names), info, kept
    layout = layout_of(plan, rows_given, X)
    rows = Dataset(X if counted.all() else X[counted], None, numbers[counted], weights, names, layout=layout)
    if is_sparse(X):
        return rows, info, kept
    sliced = SlicedRows(Block(rows.X, rows.y, weights))
    many = sums_suffice and groups is None and layout is None and len(sliced) > sliced.n_gathered
    return sliced if many else rows, info, kept


def plan_of(model: Any, *, warm: bool = False, sparse: bool = False) -> FitPlan:
    """Return the plan of an estimator's settings, without targets: they are known once the rows are checked."""
    if sparse:
        return _plan_of_sparse(model, warm=warm)
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
        means=warm and getattr(model.scaler_, "means", False),
        callback=with_lines(model.callback, model.verbose),
    )


def _plan_of_sparse(model: Any, *, warm: bool) -> FitPlan:
    """Return the plan for sparse rows, which have a default kernel of their own."""
    if model.features is not None or isinstance(solver_of(model.solver, type(model).__name__), Fourier):
        raise ValueError(
            "Explicit features are dense: they are not available for sparse rows. Leave features=None and "
            "solver='auto', which takes landmarks if there are many rows, or pass X.toarray()."
        )
    if model.scale not in ("auto", None):
        raise ValueError(
            f"scale={model.scale!r} would make sparse rows dense. Use scale='auto' or None; "
            "sklearn.preprocessing.MaxAbsScaler scales the columns and leaves zeros as they are."
        )
    own = copy.copy(model)
    own.scale, own.kernel = None, Angular() if model.kernel is None else model.kernel
    if isinstance(own.kernel, Kernel):
        refuse_unless_sparse(own.kernel)
    return plan_of(own, warm=warm)


def settings_of(model: Any) -> str:
    """Return, as text, all settings that influence what an estimator learns from given rows."""
    aside = ("kernel", "features", "random_state", "callback", "verbose", "warm_start")
    settings = {name: value for name, value in model.get_params(deep=True).items() if name not in aside}
    return repr(sorted(settings.items(), key=str)) + asked_for(model.kernel, model.features)


def start_of(model: Any, X: Any) -> dict[str, bool]:
    """Return whether a fit starts from the last one, and whether its rows are sparse.

    It does so only if the kernel setting is unchanged and is learned, and the rows are of the same kind.
    """
    asked_before, fitted = model.__dict__.pop("_asked", None), "embedding_" in vars(model)
    learned = learning_method(model.learn, type(model).__name__).learns and fitted
    same = asked_before == asked_for(model.kernel, model.features)
    sparse = is_sparse(X) and model.kernel != "precomputed"
    alike = fitted and sparse == model.embedding_.sparse
    return {"warm": bool(model.warm_start and learned and same and alike), "sparse": sparse}


def restarted(plan: FitPlan, model: Any, scaler: Any) -> FitPlan:
    """Return the plan; without its warm start, if the set of varying columns has changed since the last fit."""
    before = _varying(model.scaler_) if plan.warm else None
    if before is None or np.array_equal(before, _varying(scaler)):
        return plan
    return replace(plan_of(model), targets=plan.targets)


def _varying(scaler: Any) -> Any:
    """Return the columns, or the length scales of coordinates, that a scaler makes; None if it makes no views."""
    return getattr(scaler, "groups_", getattr(scaler, "columns_", None))
