from tools.pictures import colours, draw_ranks, plt, save


def test_ours_is_black_and_the_others_differ():
    found = colours(["a", "ours", "b"], "ours")
    assert found["ours"] == "black"
    assert tuple(found["a"]) != tuple(found["b"])


def test_the_same_numbers_give_the_same_file(tmp_path):
    for name in ("first.png", "second.png"):
        figure, axes = plt.subplots()
        ranks = {"b": 2.5, "ours": 1.0, "c": 2.5}
        draw_ranks(axes, ranks, ours="ours", critical_difference=1.2, groups=[(2.5, 2.5)], title="Any")
        assert [text.get_text() for text in axes.texts][3:6] == ["ours 1.00", "b 2.50", "c 2.50"]  # after 1, 2, 3
        assert axes.texts[3].get_weight() == "bold"
        save(figure, tmp_path / "pictures" / name)
    first, second = ((tmp_path / "pictures" / name).read_bytes() for name in ("first.png", "second.png"))
    assert first == second
    assert first.startswith(b"\x89PNG")
    assert not plt.fignum_exists(figure.number)
