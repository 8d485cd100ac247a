"""Parse report pages in tests."""

from html.parser import HTMLParser

VOID = {"meta", "img", "source", "br", "hr", "input", "link"}


class Parsed(HTMLParser):
    """A parsed page: elements must be properly nested."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.words = [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        assert len(attributes) == len(dict(attributes)), "an attribute twice"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if "style" not in self.open and "script" not in self.open:
            self.words.append(text)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def pictures(self, mode="day"):
        return [image for image in self.all("img") if image["class"] == mode]

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]
