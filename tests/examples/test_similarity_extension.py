"""The example runs, and its text is correct."""

import numpy as np

from tests.examples.loading import load


def test_a_geodesic_similarity_is_extended_better_than_by_the_nearest_neighbour(tmp_path, capsys):
    errors = load("similarity_extension").main("digits", 500, 0.6, tmp_path / "picture.png")
    assert errors["learned kernel"] < errors["nearest known object"]
    assert errors["learned kernel"] < 0.45
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "of the variance explained" in capsys.readouterr().out


def test_alignment_scores_equal_a_table_filled_by_hand():
    score = load("similarity_extension").alignment_scores

    def naive(a, b, match=1.0, mismatch=-1.0, gap=-1.5):
        table = np.zeros((len(a) + 1, len(b) + 1))
        table[:, 0], table[0] = gap * np.arange(len(a) + 1), gap * np.arange(len(b) + 1)
        for i in range(len(a)):
            for j in range(len(b)):
                same = match if a[i] == b[j] else mismatch
                table[i + 1, j + 1] = max(table[i, j] + same, table[i, j + 1] + gap, table[i + 1, j] + gap)
        return table[-1, -1]

    strings = ["ACGTAC", "ACTTAG", "GGGTAC", "TACGTA"]
    scores = score(np.array([list(s) for s in strings]))
    assert np.array_equal(scores, [[naive(a, b) for b in strings] for a in strings])
