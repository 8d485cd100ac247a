import base64
import dataclasses
import hashlib
import re

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from kernelwright import EmbeddingClassifier, learning
from kernelwright.evaluation import Evaluation
from kernelwright.kernels import Gaussian
from kernelwright.reports import model_report
from kernelwright.reports.training_rows import training_rows
from tests.reports.models import IMAGE, LONG, NASTY, SCRIPT, kernel_model, nasty_model, table, tabular_model
from tests.reports.parsing import Parsed


@pytest.fixture(scope="module")
def nasty():
    page = model_report(nasty_model())
    return page, Parsed(page)


@pytest.fixture(scope="module")
def kernel():
    page = model_report(kernel_model())
    return page, Parsed(page)


@pytest.fixture(params=["nasty", "kernel"])
def report(request):
    return request.getfixturevalue(request.param)


def test_a_page_needs_nothing_else(report):
    page, parsed = report
    assert page.startswith("<!doctype html>")
    assert re.findall(r"\b(?:https?|ftp|file):", page) == []
    assert "//" not in re.sub(r"base64,[A-Za-z0-9+/=]+|data-what-if=\"[^\"]*\"", "", page)
    assert "url(" not in page
    assert "@import" not in page
    scripts = re.findall(r"(?s)<script[^>]*>(.*?)</script>", page)
    assert len(scripts) == len(parsed.all("script")) == (report[1].all("details") != [])
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    policy = parsed.all("meta")[1]
    assert re.findall(r"script-src ([^;]*)", policy["content"]) == [f"'sha256-{digest}'" for digest in digests]
    assert "unsafe-eval" not in policy["content"]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"].startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'")
    assert len(page) < 600_000


def test_a_page_is_well_formed_and_says_what_language_it_is_in(report):
    _, parsed = report
    assert parsed.all("html") == [{"lang": "en"}]
    headings = [tag for tag, _ in parsed.elements if re.fullmatch(r"h\d", tag)]
    assert headings[0] == "h1"
    assert set(headings[1:]) == {"h2"}
    targets = [a["href"] for a in parsed.all("a")]
    behind = ("relevant-features", "maps", "training", "risk-bounds", "settings-and-versions")
    shown = [h["id"] for h in parsed.all("h2") if not parsed.all("details") or h["id"] not in behind]
    assert targets == [f"#{name}" for name in shown]
    assert all(th.get("scope") in ("col", "row") for th in parsed.all("th"))
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_pictures_have_words_with_numbers_in_them(report):
    _, parsed = report
    pictures, dark = parsed.pictures(), parsed.pictures("night")
    assert [picture["alt"] for picture in dark] == [picture["alt"] for picture in pictures]
    bars = [figure for figure in parsed.all("figure") if figure.get("class") == "bars"]
    assert len(pictures) == len(parsed.all("figcaption")) - len(bars) >= 3
    for picture in (*pictures, *dark):
        assert picture["src"].startswith("data:image/png;base64,")
        assert len(picture["alt"]) > 40
        assert re.search(r"\d", picture["alt"])


def test_names_are_shown_and_never_obeyed(nasty):
    _, parsed = nasty
    allowed = (
        "html head meta title style body main h1 p dl div dt dd nav ul li a section h2 table caption thead tbody tr "
        "th td span figure img figcaption svg rect path details summary script"
    )
    assert {tag for tag, _ in parsed.elements} <= set(allowed.split())
    known = {"class", "src", "alt", "width", "height"}
    assert all(set(img) == known for img in parsed.all("img"))
    assert not any(key.startswith("on") for _, attributes in parsed.elements for key in attributes)
    for name in (*NASTY, LONG, "$y_2$", f"Classifier of {IMAGE + SCRIPT}"):
        assert " ".join(name.split()) in parsed.text
    assert "1337" not in parsed.text  # a name is no template


def test_all_sections_of_a_classifier_are_there(nasty):
    page, parsed = nasty
    assert [h["id"] for h in parsed.all("h2")] == [
        "each-class",
        "quality-on-new-rows",
        "confusions",
        "confidence",
        "hardest-rows",
        "what-if",
        "what-it-looks-at",
        "columns",
        "relevant-features",
        "maps",
        "training",
        "risk-bounds",
        "settings-and-versions",
    ]
    assert "cannot be made" not in page
    assert "this one has categories or gaps" in parsed.text  # no maps
    assert len(parsed.pictures()) == 5
    assert "Note: A note with <b>tags</b>." in parsed.text
    assert "This is vacuous" in parsed.text
    assert "No guarantee" in parsed.text
    assert "Theorem 4" in parsed.text


def test_the_summary_is_honest_about_better_and_worse(nasty):
    _, parsed = nasty
    assert "Its probabilities are clearly worse than those of logistic regression" in parsed.text
    assert "There is no clear difference from random forest" in parsed.text
    assert "For probabilities on this table, prefer logistic regression." in parsed.text


def test_a_model_that_is_no_better_than_guessing_says_so():
    model = tabular_model(table())
    n, random = len(model.evaluation.labels), np.random.default_rng(1)
    p = random.dirichlet([20.0, 20.0], size=n)
    found = Evaluation.of(p, model.evaluation.labels, classes=model.classes, protocol="a coin")
    found.rivals["majority class"] = found.compare(np.full((n, 2), 0.5))
    text = Parsed(model_report(dataclasses.replace(model, evaluation=found))).text
    assert "the difference may be due to chance" in text
    assert "not clearly better than the class frequencies alone" in text


def test_a_possible_leak_stands_out():
    frame = table(n=120)
    model = tabular_model(frame.assign(code=(frame["target"] == "yes") + 0.5, id=range(120)), evaluated=False)
    page = model_report(model)
    assert re.search(r"<p>Note: Possible leak: code alone predicts", page)
    assert re.search(r'<p class="quiet">Note: Left out: id', page)


def test_numbers_are_those_of_the_records(nasty):
    model = nasty_model()
    _, parsed = nasty
    scores = model.evaluation.scores
    assert f"{100 * scores.accuracy.value:.1f} %" in parsed.text
    assert f"{scores.log_loss.low:.3f} to {scores.log_loss.high:.3f}" in parsed.text
    for row in model.evaluation.hardest(10):
        assert f"{row.row} {' '.join(row.actual.split())} {row.predicted} {row.probability:.3f}" in parsed.text
    assert f"{model.classifier.risk_bound().total:.1f}" in parsed.text


def test_without_an_evaluation_the_rest_is_there():
    page = model_report(tabular_model(table(), evaluated=False))
    parsed = Parsed(page)
    assert "trained without cross-validation" in parsed.text
    assert len(parsed.pictures()) == 5  # relevance, three maps, learning curves
    assert "cannot be made" not in page


def test_of_many_classes_the_largest_are_shown():
    names = tuple(f"class {number}" for number in range(35))
    parsed = Parsed(model_report(tabular_model(table(105, classes=names))))
    assert "There are 35 classes; only the 20 largest and their rows are shown" in parsed.text
    assert any(img["alt"].startswith("Matrix of 20 classes") for img in parsed.pictures())


@pytest.mark.parametrize(
    ("classifier", "sentence"),
    [
        (
            EmbeddingClassifier(Gaussian("median"), learn=learning.Auto(max_iter=2), random_state=0),
            "a length scale for each feature",
        ),
        (EmbeddingClassifier(Gaussian("median"), learn=None), "hyperparameters were given"),
        (
            EmbeddingClassifier(Gaussian("median"), learn=learning.Auto(max_iter=2), solver="fourier", random_state=0),
            "keeps no training rows",
        ),
    ],
    ids=["one length scale", "nothing learned", "no rows kept"],
)
def test_what_another_classifier_lacks_is_left_out_with_a_sentence(classifier, sentence):
    model = tabular_model(table())
    frame = table()[["a", "b"]]
    labels = np.searchsorted(model.classes, table()["target"])
    pipeline = Pipeline([("classify", classifier)]).fit(frame, labels)
    parsed = Parsed(model_report(dataclasses.replace(model, pipeline=pipeline, examples=None)))
    assert "No rows are kept with this model" in parsed.text
    assert sentence in parsed.text
    assert len(parsed.all("h2")) == 13


def test_a_single_column_has_no_map():
    parsed = Parsed(model_report(tabular_model(table(names=("only",)))))
    assert "A map needs at least two features" in parsed.text


def test_two_columns_are_the_axes_of_the_map():
    parsed = Parsed(model_report(tabular_model(table(names=("height", "width")))))
    assert "over height and width" in parsed.text
    assert "principal" not in parsed.text


@pytest.mark.parametrize("scale", ["auto", "standard"])
def test_training_rows_come_back_from_their_views(rng, scale):
    X = np.column_stack([rng.normal(size=50), rng.exponential(size=50) ** 3, np.ones(50), rng.integers(0, 2, 50)])
    kernel = None if scale == "auto" else Gaussian(1.0)
    model = EmbeddingClassifier(kernel, scale=scale, learn=learning.Auto(max_iter=1)).fit(X, X[:, 0] > 0)
    np.testing.assert_allclose(np.unique(training_rows(model), axis=0), np.unique(X, axis=0), atol=1e-6)


def test_all_sections_of_a_kernel_are_there(kernel):
    page, parsed = kernel
    assert [h["id"] for h in parsed.all("h2")] == [
        "error-on-new-objects",
        "given-and-learned-matrix",
        "columns",
        "settings-and-versions",
    ]
    assert "cannot be made" not in page
    assert len(parsed.pictures()) == 3
    assert "clearly better than a constant" in parsed.text
    assert "nearest known object" in parsed.text
    assert f"Note: {IMAGE}" in parsed.text
    assert SCRIPT in parsed.text
    assert "eigenvalues are negative" in parsed.text


def test_a_kernel_of_few_objects_has_no_error_on_new_ones():
    parsed = Parsed(model_report(kernel_model(6, evaluated=False)))
    assert "was not measured" in parsed.text
    assert len(parsed.pictures()) == 2


def test_a_report_of_something_else_is_refused():
    with pytest.raises(TypeError, match="TabularModel or a KernelModel"):
        model_report(EmbeddingClassifier())
