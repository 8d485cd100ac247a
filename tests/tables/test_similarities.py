import numpy as np
import pandas as pd
import pytest

from kernelwright.tables import KernelModel, as_table, describe_columns, held_out_error, read_similarities

NAMES = ["a", "b", "c", "d"]
S = np.array([[1.0, 0.5, 0.2, 0.1], [0.5, 1.0, np.nan, 0.3], [0.2, np.nan, 1.0, 0.4], [0.1, 0.3, 0.4, 1.0]])


@pytest.fixture
def written(tmp_path):
    def write(frame, **options):
        path = tmp_path / "sim.csv"
        frame.to_csv(path, **options)
        return path

    return write


@pytest.mark.parametrize("labels", ["both", "header", "column", "none"])
@pytest.mark.parametrize("named", [True, False])
def test_a_matrix_with_and_without_labels(written, labels, named):
    frame = pd.DataFrame(S, index=NAMES, columns=NAMES)
    path = written(frame, index=labels in ("both", "column"), header=labels in ("both", "header"))
    found = read_similarities(path, NAMES, named=named)
    np.testing.assert_array_equal(found.values, S)
    assert found.places.tolist() == [0, 1, 2, 3]


def test_labels_give_the_order_and_may_be_some_of_the_objects(written):
    order = [3, 0, 2]
    path = written(pd.DataFrame(S, index=NAMES, columns=NAMES).iloc[order, order])
    found = read_similarities(path, NAMES, named=True)
    np.testing.assert_array_equal(found.values, S[np.ix_(order, order)])
    assert found.places.tolist() == order


def test_labels_that_are_numbers(written):
    names = ["11", "12", "13", "14"]
    path = written(pd.DataFrame(S, index=names, columns=names))
    np.testing.assert_array_equal(read_similarities(path, names, named=True).values, S)
    path = written(pd.DataFrame(S, columns=names), index=False)
    np.testing.assert_array_equal(read_similarities(path, names, named=True).values, S)
    path = written(pd.DataFrame(S, index=names, columns=names).iloc[1:, 1:])  # cells as of all objects without labels
    found = read_similarities(path, names, named=True)
    np.testing.assert_array_equal(found.values, S[1:, 1:])
    assert found.places.tolist() == [1, 2, 3]


def test_similarities_that_look_like_names_are_none(written):
    """Objects called 0 to 3, and similarities of nought or one."""
    yes_or_no = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 1], [0, 0, 1, 1]])
    path = written(pd.DataFrame(yes_or_no), index=False, header=False)
    np.testing.assert_array_equal(read_similarities(path, ["0", "1", "2", "3"], named=True).values, yes_or_no)


def test_one_triangle_is_enough(written):
    lower = np.where(np.tril(np.ones((4, 4))) > 0, S, np.nan)
    found = read_similarities(written(pd.DataFrame(lower), index=False, header=False), NAMES, named=True)
    np.testing.assert_array_equal(found.values, S)


@pytest.mark.parametrize("header", [True, False])
def test_a_list_of_pairs(written, header):
    i, j = np.nonzero(np.triu(~np.isnan(S)))
    pairs = pd.DataFrame({"one": np.take(NAMES, i), "two": np.take(NAMES, j), "value": S[i, j]})
    found = read_similarities(written(pairs, index=False, header=header), NAMES, named=True)
    np.testing.assert_array_equal(found.values, S)
    for first in (0, 1):  # objects without names are numbered from 0 or from 1
        pairs = pd.DataFrame({"one": i + first, "two": j + first, "value": S[i, j]})
        found = read_similarities(written(pairs, index=False, header=header), ["1", "2", "3", "4"], named=False)
        np.testing.assert_array_equal(found.values, S)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1,2,3,4\n2,1,3,4\n", "is not square: 2 rows and 4 columns"),
        ("1,2,3,4,5\n" * 5, "5 rows and columns of similarities, but there are 4 objects"),
        ("1,2,3,4\n2,1,3,4\n3,9,1,4\n4,4,4,1\n", "is not symmetric: 'b' with 'c' is 3, but the reverse is 9"),
        (
            ",a,b,c,x\na,1,2,3,4\nb,2,1,3,4\nc,3,3,1,4\nx,4,4,4,1\n",
            "similarities of 'x', which is not among the objects",
        ),
        (
            ",a,b,c,d\na,1,2,3,4\nb,2,1,3,4\nd,3,3,1,4\nc,4,4,4,1\n",
            "labels of .* differ: column 4 is 'c', but line 4 is 'd'",
        ),
        (",a,b,c,c\na,1,2,3,4\nb,2,1,3,4\nc,3,3,1,4\nc,4,4,4,1\n", "the label 'c' twice"),
        ("1,2,3,4\n2,1,3,4\n3,3,huge,4\n4,4,4,1\n", "'huge' in line 3, column of 'c'"),
        (",,,\n" * 3 + ",,,\n", "no similarities"),
        ("one,two,value\na,b,1\nb,a,2\n", "not symmetric: 'a' with 'b' is 1"),
        ("a,b,1\na,b,2\n", "gives 'a' with 'b' twice with different values: line 2 and line 1"),
        ("a,b,1\na,q,2\n", "similarities of 'q', which is not among"),
        ("a,b,1\na,c,many\n", "'many' in line 2, third column"),
        ("one,two,value\n", "no similarities"),
    ],
)
def test_what_is_wrong_with_similarities_is_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "sim.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=sentence) as caught:
        read_similarities(path, NAMES, named=True)
    assert "sim.csv" in str(caught.value)


@pytest.fixture
def objects(rng):
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["height", "weight"])
    distances = np.linalg.norm(frame.to_numpy()[:, None] - frame.to_numpy(), axis=-1)
    return frame, -distances


def test_a_learned_kernel_beats_its_rivals_on_objects_it_has_not_seen(objects):
    frame, similarities = objects
    columns = describe_columns(as_table(frame))
    names = [f"o{k}" for k in range(60)]
    found = held_out_error(columns, frame, similarities, objects=names, share=0.25)
    assert len(found.objects) == 15
    assert found.error.low <= found.error.value <= found.error.high < found.rivals["nearest known object"].low
    assert found.rivals["constant"].value == pytest.approx(found.spread, rel=0.1)
    assert np.sqrt(np.mean((found.truth - found.learned) ** 2)) == pytest.approx(found.error.value, rel=0.05)


def test_the_error_is_that_of_the_asked_pairs(objects):
    frame, similarities = objects
    columns = describe_columns(as_table(frame))
    names = [str(k) for k in range(60)]
    found = held_out_error(columns, frame, similarities, objects=names)
    out = np.isin(np.arange(60), [int(name) for name in found.objects])
    inner = similarities[np.ix_(~out, ~out)]
    constant = [(similarities[i, j] - inner.mean()) ** 2 for i in range(60) for j in range(60) if out[i] or out[j]]
    assert found.rivals["constant"].value == pytest.approx(np.sqrt(np.mean(constant)), rel=0.02)


def test_too_few_objects_are_not_held_out(objects):
    frame, similarities = objects
    columns = describe_columns(as_table(frame))
    assert held_out_error(columns, frame[:5], similarities[:5, :5], objects=list("abcde")) is None


def test_a_kernel_model_gives_a_matrix_of_two_tables(objects):
    frame, similarities = objects
    model = KernelModel.fit(describe_columns(as_table(frame)), frame, similarities, objects=[""] * 60)
    K = model.predict(frame[:4], frame[4:7])
    assert K.shape == (4, 3)
    assert pytest.approx(similarities[:4, 4:7], abs=0.2) == K


def test_a_matrix_is_read_in_one_way_as_a_whole(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("0;3,671;0,5\n3,671;0;1,250\n0,5;1,250;0\n")  # one cell settles it, also that no row is a header
    found = read_similarities(path, ["1", "2", "3"], named=False)
    assert found.values[0].tolist() == [0.0, 3.671, 0.5]
    assert found.remark == ""
    path.write_text("0;3,671;2,500\n3,671;0;1,250\n2,500;1,250;0\n")
    found = read_similarities(path, ["1", "2", "3"], named=False)
    assert found.values[0].tolist() == [0.0, 3671.0, 2500.0]
    assert "'3,671' can be read in two ways and was read as 3671. --decimal comma" in found.remark
    said = read_similarities(path, ["1", "2", "3"], named=False, decimal="comma")
    assert (said.values[0].tolist(), said.remark) == ([0.0, 3.671, 2.5], "")


def test_pairs_are_read_in_one_way_as_a_whole(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("a;b;value\nu;v;1,250\nu;w;0,5\n")
    assert read_similarities(path, list("uvwx"), named=True).values[0, 1:].tolist() == [1.25, 0.5]
    path.write_text("a;b;value\nu;v;1,250\nu;w;2,500\n")
    found = read_similarities(path, list("uvwx"), named=True)
    assert found.values[0, 1:].tolist() == [1250.0, 2500.0]
    assert "two ways" in found.remark
    assert read_similarities(path, list("uvwx"), named=True, decimal="comma").values[0, 1:].tolist() == [1.25, 2.5]
