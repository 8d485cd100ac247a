from kernelwright.research.experiments.demo import TASKS, pictures, rows_of


def test_one_task_gives_a_row_a_method_and_both_pictures():
    result = TASKS[0].run()
    rows = rows_of(result)
    assert [row["method"] for row in rows] == ["kernelwright", "SVM + grid", "random forest"]
    assert [bool(row["complexity"]) for row in rows] == [True, False, False]
    assert all(0.5 < score.accuracy <= 1 and 0 < score.log_loss < 1.5 for score in result.scores)
    drawn = pictures({result.name: result})
    assert list(drawn) == ["decision-probabilities", "learning-curves"]
    assert all(picture.png.startswith(b"\x89PNG") for picture in drawn.values())
