"""The report in a real browser. Needs Chromium or Chrome on the path; without one these tests are skipped."""

import base64
import html
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from kernelwright.reports import model_report
from tests.reports.models import SCRIPT, kernel_model, nasty_model, nasty_number_model

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # which a container or root cannot have
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--virtual-time-budget=3000",
    "--enable-logging=stderr",
)
DARK = "--blink-settings=preferredColorScheme=0"
# Sent to the page around it: what a reader would see. It needs a copy of the page that lets scripts run.
MEASURE = """<script>
addEventListener("load", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top + scrollY, r.width, r.height]; };
  const shown = e => [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor];
  parent.postMessage(JSON.stringify({
    width: innerWidth, needed: document.documentElement.scrollWidth,
    height: document.documentElement.scrollHeight,
    images: [...document.images].filter(i => i.offsetWidth > 0)
      .map(i => ({natural: i.naturalWidth, dark: i.className === "night", box: box(i)})),
    colours: ["h1", "p", ".quiet", "a", "td", "thead th", "figcaption", "dt", "summary", ".bar-value"]
      .map(s => document.querySelector(s)).filter(e => e !== null).map(shown),
    tables: [...document.querySelectorAll(".scroll")].map(d => getComputedStyle(d).overflowX),
  }), "*");
});
</script>"""
FRAME = """<!doctype html><html lang="en"><head><title>frame</title></head><body style="margin:0">
<iframe src="{source}" style="border:0;width:{width}px;height:{height}px"></iframe>
<script>addEventListener("message", e => {{ document.body.dataset.found = e.data; }})</script></body></html>"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs Chromium or Chrome to open the report in"),
]


class Window:
    """Opens pages of a folder, one browser at a time."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, name, *flags):
        """Return the browser's standard output, and the lines of the page's console."""
        address = (self.folder / name).as_uri()
        profile = f"--user-data-dir={self.folder / 'profile'}"
        done = subprocess.run([BROWSER, *FLAGS, profile, *flags, address], capture_output=True, timeout=120, check=True)
        errors = done.stderr.decode(errors="replace")
        return done.stdout.decode(), [line for line in errors.splitlines() if "CONSOLE" in line]

    def framed(self, name, width, height=4000):
        """Write a page into a frame of a given width; a browser window is never narrower than 500 pixels."""
        (self.folder / "frame.html").write_text(FRAME.format(source=name, width=width, height=height))
        return "frame.html"

    def measure(self, name, width, *flags):
        """Return the layout of a page at a width."""
        dom, _ = self.run(
            self.framed(f"open-{name}", width), f"--window-size={max(width, 500)},900", *flags, "--dump-dom"
        )
        found = re.search(r'data-found="([^"]*)"', dom)
        assert found, "the page did not say anything"
        return json.loads(found[1].replace("&quot;", '"').replace("&amp;", "&"))

    def picture(self, name, width, height, *flags):
        """Return the pixels of a page at a width, as (height, width, 3)."""
        target = self.folder / "shot.png"
        target.unlink(missing_ok=True)
        self.run(self.framed(name, width, height), f"--window-size={width},{height}", *flags, f"--screenshot={target}")
        return imread(io.BytesIO(target.read_bytes()))[..., :3]


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, model in (
        ("classifier.html", nasty_model()),
        ("kernel.html", kernel_model()),
        ("numbers.html", nasty_number_model()),
    ):
        page = model_report(model)
        (folder / name).write_text(page, encoding="utf-8")
        policy = re.search(r"<meta http-equiv=[^>]*>", page)[0]
        (folder / f"open-{name}").write_text(page.replace(policy, "").replace("</body>", f"{MEASURE}</body>"), "utf-8")
    return Window(folder)


pages = pytest.mark.parametrize("name", ["classifier.html", "kernel.html"])


def luminance(colour):
    c = np.array([int(part) for part in re.findall(r"\d+", colour)[:3]]) / 255.0
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_the_console_is_heard(window):
    # Without this the next test would also pass if the browser said nothing at all.
    (window.folder / "bad.html").write_text("<script>console.error('spoken')</script><img src='missing.png'>")
    _, console = window.run("bad.html", "--dump-dom")
    assert any("spoken" in line for line in console)


@pages
def test_a_page_opens_without_a_complaint_and_runs_nothing(window, name):
    dom, console = window.run(name, "--dump-dom")
    assert console == []
    assert dom.count("<script") == (name == "classifier.html")  # the script of the panel, and no other
    assert "onerror=" not in re.sub(r'alt="[^"]*"|data-what-if="[^"]*"|aria-label="[^"]*"|>[^<]*<', "", dom)
    assert SCRIPT.replace("<", "&lt;").replace(">", "&gt;") in dom


@pages
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("flags", [(), (DARK,)], ids=["light", "dark"])
def test_pictures_are_there_and_nothing_sticks_out(window, name, width, flags):
    found = window.measure(name, width, *flags)
    assert found["width"] == width
    assert found["needed"] <= width  # no sideways scrolling of the page; tables scroll in their own boxes
    assert set(found["tables"]) == {"auto"}
    assert len(found["images"]) == (5 if name == "classifier.html" else 3)  # no maps: it has a category
    for image in found["images"]:
        assert image["natural"] > 300
        assert image["dark"] == bool(flags)
        left, _, wide, high = image["box"]
        assert left >= 0
        assert left + wide <= width
        assert wide > 300
        assert high > 80
    for ink, paper in found["colours"]:
        low, high = sorted([luminance(ink), luminance(paper)])
        assert (high + 0.05) / (low + 0.05) >= 4.5


@pages
@pytest.mark.parametrize("width", [390, 1200])
def test_pages_are_light_or_dark_with_pictures_to_match(window, name, width):
    found = window.measure(name, width)
    height = int(found["height"]) + 50
    shots = {
        mode: window.picture(f"open-{name}", width, height, *flags) for mode, flags in (("day", ()), ("night", (DARK,)))
    }
    corners = {mode: shot[5, 5].mean() for mode, shot in shots.items()}
    assert corners["day"] > 0.95
    assert corners["night"] < 0.15
    for shot in shots.values():
        for image in found["images"]:
            left, top, wide, high = map(int, image["box"])
            inside = shot[top : top + high, left : left + wide]
            assert len(np.unique((inside * 255).astype(int) @ [65536, 256, 1])) > 20
            # Most of the ink must stand out from the page behind it.
            assert np.abs(inside - shot[5, 5]).max() > 0.5


# the panel ------------------------------------------------------------------------------------------------

# Added to a copy of the page that lets scripts run: it moves the levers of rows and reports the answers.
MOVE = """<script>
addEventListener("load", () => {{
  const settings = {settings}, said = [];
  const panel = document.getElementById("what-if-panel");
  for (const setting of settings) {{
    const row = document.getElementById("what-if-row");
    row.value = setting.row;
    row.dispatchEvent(new Event("change"));
    setting.values.forEach((value, k) => {{
      const lever = panel.querySelectorAll(".levers input, .levers select")[k];
      lever.value = value;
      lever.dispatchEvent(new Event(lever.tagName === "SELECT" ? "change" : "input"));
    }});
    said.push(panel.querySelector(".answer").textContent);
  }}
  document.body.dataset.said = JSON.stringify(said);
}});
</script>"""


def panel_data(page):
    return json.loads(html.unescape(re.search(r'data-what-if="([^"]*)"', page)[1]))


def answers_of(row):
    """Return the stored grid of a row, decoded without the code that wrote it."""
    steps = np.frombuffer(base64.b64decode(row["answers"]), dtype="<u2") / 65535
    shape = [len(lever["levels"]) for lever in row["levers"]]
    return (row["low"] + (row["high"] - row["low"]) * steps).reshape(*shape, len(row["outputs"]))


def said_by_the_panel(window, name, settings):
    page = (window.folder / name).read_text(encoding="utf-8")
    policy = re.search(r"<meta http-equiv=[^>]*>", page)[0]
    script = MOVE.format(settings=json.dumps(settings))
    (window.folder / "moved.html").write_text(page.replace(policy, "").replace("</body>", f"{script}</body>"), "utf-8")
    dom, console = window.run("moved.html", "--dump-dom")
    assert console == []
    return json.loads(html.unescape(re.search(r'data-said="([^"]*)"', dom)[1]))


@pytest.mark.parametrize("name", ["classifier.html", "numbers.html"])
def test_the_panel_runs_under_the_policy_of_its_page(window, name):
    dom, console = window.run(name, "--dump-dom")
    assert console == []
    assert dom.count("<option") >= 10
    assert dom.count('type="range"') >= 1
    assert "This panel needs scripts" not in dom


def test_without_scripts_the_page_is_whole(window):
    page = (window.folder / "classifier.html").read_text(encoding="utf-8")
    changed = page.replace("document.getElementById", "document.getElementByID")  # which the policy does not know
    assert changed != page
    (window.folder / "changed.html").write_text(changed, encoding="utf-8")
    dom, console = window.run("changed.html", "--dump-dom")
    assert any("Content Security Policy" in line for line in console)
    assert "This panel needs scripts" in dom
    assert "The rows as they are" in dom
    assert '<div id="what-if-panel" data-what-if=' in dom
    assert 'type="range"' not in dom


def test_the_panel_says_the_probabilities_of_its_grid(window):
    data = panel_data((window.folder / "classifier.html").read_text(encoding="utf-8"))
    assert len(data["rows"]) >= 10
    settings, expected = [], []
    for k, row in enumerate(data["rows"][:4]):
        places = [len(lever["levels"]) - 1 for lever in row["levers"]]
        values = [lever["levels"][-1] if lever["slides"] else p for lever, p in zip(row["levers"], places, strict=True)]
        settings.append({"row": k, "values": values})
        shares = np.exp(answers_of(row)[tuple(places)])
        expected.append(100 * shares / shares.sum())
    for text, shares in zip(said_by_the_panel(window, "classifier.html", settings), expected, strict=True):
        found = [float(each) for each in re.findall(r"([\d.]+)\u00a0%", text.replace("100%", ""))]
        assert found[-len(shares) :] == pytest.approx(shares, abs=0.06)


def test_half_way_between_two_levels_the_answer_is_half_way(window):
    data = panel_data((window.folder / "numbers.html").read_text(encoding="utf-8"))
    row = data["rows"][0]
    first = next(k for k, lever in enumerate(row["levers"]) if lever["slides"])
    start = [lever["levels"].index(lever["start"]) if lever["slides"] else lever["start"] for lever in row["levers"]]
    low, high = row["levers"][first]["levels"][:2]
    values = [lever["start"] for lever in row["levers"]]
    values[first] = (low + high) / 2
    ends = [answers_of(row)[tuple([*start[:first], end, *start[first + 1 :]])] for end in (0, 1)]
    (text,) = said_by_the_panel(window, "numbers.html", [{"row": 0, "values": values}])
    median = float(re.search(r"Median (-?[\d.]+)", text)[1])
    assert median == pytest.approx(np.mean(ends, axis=0)[2], abs=0.002)


def test_on_paper_the_fold_and_the_panel_are_left_out(window):
    if shutil.which("pdftotext") is None:
        pytest.skip("needs pdftotext")
    target = window.folder / "page.pdf"
    window.run("classifier.html", f"--print-to-pdf={target}")
    text = subprocess.run(["pdftotext", "-layout", str(target), "-"], capture_output=True, check=True).stdout.decode()
    assert Path(target).stat().st_size > 10_000
    assert "Precision: if the model names the class" in " ".join(text.split())
    assert "The rows as they are" in text
    assert "The part for specialists is in the file" in " ".join(text.split())
    assert "Back to the row" not in text
