import pytest
from matplotlib.figure import Figure

from kernelwright.reports import Picture, render_page, write_whole


def test_every_value_is_escaped_and_pictures_have_words():
    nasty = "<script>alert(1)</script>"
    picture = Picture.of(Figure(figsize=(1, 1)), caption=nasty, alternative='a "quoted" text')
    page = render_page(nasty, [nasty], [{nasty: nasty, "b": 1.5}], [picture])
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 6  # title twice, paragraph, column, cell, caption
    assert 'alt="a &#34;quoted&#34; text"' in page
    assert "data:image/png;base64,iVBOR" in page
    assert "http" not in page


def test_a_page_without_rows_is_still_a_page():
    assert "<h1>empty</h1>" in render_page("empty", [], [], [])


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "page.html"
    write_whole(target, b"old")
    with pytest.raises(TypeError):
        write_whole(target, "text, not bytes")  # type: ignore[arg-type]
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
