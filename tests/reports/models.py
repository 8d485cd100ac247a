"""Small models for the tests of reports, with names that a page must show literally."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from kernelwright import EmbeddingRegressor
from kernelwright.evaluation import Evaluation
from kernelwright.tables import (
    ExampleRows,
    KernelModel,
    Notation,
    TabularModel,
    TrainingNumbers,
    TrainingTable,
    as_table,
    describe_columns,
    held_out_error,
)

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
LONG = "a_name_without_any_blank_" * 12
NASTY = (
    SCRIPT,
    IMAGE,
    "$x_1$",
    "100%",
    "größe 中文 \N{GREEK SMALL LETTER ALPHA}",
    "{{ 7 * 191 }}",
    "\\frac{1}{$",
    "_hidden",
)


def table(
    n: int = 60, *, classes: tuple[str, ...] = ("no", "yes"), names: tuple[str, ...] = ("a", "b")
) -> pd.DataFrame:
    """Return numbers in columns of these names, and a target that depends on the first two."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(n, len(names))), columns=list(names))
    score = frame.iloc[:, 0] + 0.5 * frame.iloc[:, -1] + 0.3 * random.normal(size=n)
    frame["target"] = np.array(classes, dtype=object)[(score.rank(method="first") - 1).astype(int) * len(classes) // n]
    return frame


def tabular_model(frame: pd.DataFrame, target: str = "target", *, evaluated: bool = True) -> TabularModel:
    """Return a model with an in-sample evaluation, which is fast and good enough for plots."""
    data = TrainingTable.of(as_table(frame), target)
    model = TabularModel.fit(data)
    if not evaluated:
        return model
    p = 0.8 * model.pipeline.predict_proba(data.frame) + 0.2 / len(data.classes)
    found = Evaluation.of(p, data.labels, classes=data.classes, protocol="looking at the training rows", seconds=1.0)
    prior = np.bincount(data.labels) / len(data.labels)
    found.rivals["majority class"] = found.compare(np.tile(prior, (len(p), 1)), 0.1)
    found.rivals["logistic regression"] = found.compare(0.99 * np.eye(len(prior))[data.labels] + 0.01 / len(prior), 0.1)
    found.rivals["random forest"] = found.compare(p[:, :], 0.1)
    return TabularModel(
        model.pipeline,
        model.columns,
        model.target,
        model.classes,
        model.class_counts,
        found,
        notes=("A note with <b>tags</b>.",),
        settings={**model.settings, "table": SCRIPT},
        versions=model.versions,
        examples=model.examples,
    )


def nasty_model() -> TabularModel:
    """Return a model whose columns, classes, categories and target have names from NASTY."""
    frame = table(90, classes=(SCRIPT, "$y_2$", IMAGE), names=(*NASTY, LONG))
    frame["kind of " + SCRIPT] = np.resize(np.array([SCRIPT, IMAGE, "$z$", "_", LONG], dtype=object), len(frame))
    frame["blank\nline"] = np.arange(len(frame)) % 7 * 1.5
    return tabular_model(frame.rename(columns={"target": IMAGE + SCRIPT}), IMAGE + SCRIPT)


def number_table(n: int = 80, names: tuple[str, ...] = ("a", "b"), noise: float = 0.3) -> pd.DataFrame:
    """Return numbers in columns of these names, and a number that depends on the first and the last."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(n, len(names))), columns=list(names))
    return frame.assign(target=np.sin(2 * frame.iloc[:, 0]) + 0.5 * frame.iloc[:, -1] + noise * random.normal(size=n))


def number_model(frame: pd.DataFrame, target: str = "target", **settings) -> TabularModel:
    """Return a model of numbers, without a cross-validation."""
    table = as_table(frame.drop(columns=target))
    columns = describe_columns(table)
    encoder = make_column_transformer(
        ("passthrough", make_column_selector(dtype_include="number")),
        (OneHotEncoder(sparse_output=False), make_column_selector(dtype_exclude="number")),
        verbose_feature_names_out=False,
    )
    pipeline = Pipeline([("encode", encoder), ("regress", EmbeddingRegressor(random_state=0, **settings))])
    used, y = frame[[column.name for column in columns if column.used]], frame[target].to_numpy()
    pipeline.fit(used, y)
    return TabularModel(
        pipeline,
        columns,
        target,
        (),
        (),
        notes=("A note with <b>tags</b>.",),
        settings={"table": SCRIPT, "rows": len(frame)},
        versions={"kernelwright": "0"},
        numbers=TrainingNumbers.of(y, Notation()),
        examples=ExampleRows.of(used, y, np.arange(1, len(y) + 1)),
    )


def nasty_number_model() -> TabularModel:
    """Return a model of numbers whose columns, categories and target have names from NASTY."""
    frame = number_table(90, (*NASTY, LONG))
    frame["kind of " + SCRIPT] = np.resize(np.array([SCRIPT, IMAGE, "$z$", "_", LONG], dtype=object), len(frame))
    return number_model(frame.rename(columns={"target": IMAGE + SCRIPT}), IMAGE + SCRIPT)


def kernel_model(n: int = 40, *, evaluated: bool = True) -> KernelModel:
    """Return a kernel model learned from minus the distance, which is indefinite."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 2)), columns=[SCRIPT, "$weight$"])
    similarities = -np.linalg.norm(frame.to_numpy()[:, None] - frame.to_numpy(), axis=-1)
    columns, objects = describe_columns(as_table(frame)), [f"{SCRIPT} {number}" for number in range(n)]
    found = held_out_error(columns, frame, similarities, objects=objects) if evaluated else None
    return KernelModel.fit(
        columns,
        frame,
        similarities,
        objects=objects,
        evaluation=found,
        settings={"table": "bodies.csv"},
        notes=(IMAGE,),
    )
