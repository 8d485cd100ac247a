import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from kernelwright.reports import Picture, render_page, write_whole
from kernelwright.reports.page import DARK_PAPER, Page, Paragraph, Section


def test_every_value_is_escaped_and_pictures_have_words():
    nasty = "<script>alert(1)</script>"
    picture = Picture.of(Figure(figsize=(1, 1)), caption=nasty, alternative='a "quoted" text')
    page = render_page(nasty, [nasty], [{nasty: nasty, "b": 1.5}], [picture])
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 6  # title twice, paragraph, column, cell, caption
    assert page.count('alt="a &#34;quoted&#34; text"') == 2  # by day and by night
    assert "data:image/png;base64,iVBOR" in page
    assert "://" not in page


def test_a_page_without_rows_is_still_a_page():
    page = render_page("empty", [], [], [])
    assert "<h1>empty</h1>" in page
    assert "<table>" not in page
    assert page.startswith("<!doctype html>")


def test_a_picture_is_dark_ink_on_white_and_light_ink_on_dark_paper():
    figure = Figure(figsize=(2, 1))
    figure.text(0.1, 0.3, "MMMM", fontsize=30)
    picture = Picture.of(figure, "caption", "words")
    day, night = (imread(io.BytesIO(content)) for content in (picture.png, picture.dark))
    assert picture.size == (day.shape[1], day.shape[0])
    assert day[0, 0].tolist() == [1, 1, 1, 1]
    assert day[..., :3].min() == 0
    assert (255 * night[0, 0, :3]).round().astype(int).tolist() == list(bytes.fromhex(DARK_PAPER[1:]))
    inked = night[..., 0] > 0.7
    assert night[inked][:, :3].min() > 0.7
    assert np.mean(inked) > 0.05
    assert figure.texts[0].get_color() == "black"  # the figure is as it was


def test_on_paper_everything_is_light():
    page = render_page("title", [], [], [])
    assert page.count("prefers-color-scheme") == page.count("@media screen and (prefers-color-scheme: dark)") == 2
    assert "<picture" not in page  # whose sources a browser does not change for paper


def test_contents_link_to_sections():
    sections = [Section(title, [Paragraph("words", quiet=True)]) for title in ("One & two", "Three", "Four")]
    page = Page("title", sections=sections).render()
    assert '<a href="#one-two">One &amp; two</a>' in page
    assert '<h2 id="one-two">One &amp; two</h2>' in page


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "page.html"
    write_whole(target, b"old")
    with pytest.raises(TypeError):
        write_whole(target, "text, not bytes")  # type: ignore[arg-type]
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
