"use strict";
(() => {
  const panel = document.getElementById("what-if-panel");
  const data = JSON.parse(panel.dataset.whatIf);
  const make = (tag, parent, text, name) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    parent.append(made);
    return made;
  };
  const decoded = text => {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const numbers = new Float64Array(bytes.length / 2);
    for (let i = 0; i < numbers.length; i++) numbers[i] = (bytes[2 * i] + 256 * bytes[2 * i + 1]) / 65535;
    return numbers;
  };
  const readable = value => {
    const size = Math.abs(value);
    if (size > 0 && (size < 1e-3 || size >= 1e12)) return value.toPrecision(3);
    return value.toLocaleString("en", {maximumFractionDigits: size < 10 ? 3 : size < 1000 ? 1 : 0});
  };
  const worded = (lever, value) => lever.date
    ? new Date(Math.floor(value) * 864e5).toISOString().slice(0, 10) : readable(value);
  /* The answer between the levels of the grid: linear along each slider, on the scale of the stored numbers. */
  const answer = (row, setting) => {
    let corners = [[0, 1]];
    row.levers.forEach((lever, k) => {
      const n = lever.levels.length;
      if (!lever.slides) {
        corners = corners.map(([place, share]) => [place * n + setting[k], share]);
        return;
      }
      let above = 1;
      while (above < n - 1 && lever.levels[above] < setting[k]) above++;
      const low = lever.levels[above - 1];
      const t = (setting[k] - low) / (lever.levels[above] - low);
      corners = corners.flatMap(([place, share]) =>
        [[place * n + above - 1, share * (1 - t)], [place * n + above, share * t]]);
    });
    const m = row.outputs.length, found = new Array(m).fill(0);
    for (const [place, share] of corners)
      for (let j = 0; j < m; j++) found[j] += share * row.numbers[place * m + j];
    return found.map(value => row.low + (row.high - row.low) * value);
  };
  const shares = logarithms => {
    const raised = logarithms.map(Math.exp), sum = raised.reduce((a, b) => a + b, 0);
    return raised.map(value => value / sum);
  };
  const percent = share => `${(100 * share).toFixed(1)}\u00a0%`;
  const showClasses = (row, found, place) => shares(found).forEach((share, j) => {
    const line = make("div", place, undefined, "bar-line");
    make("span", line, row.outputs[j], "bar-name");
    const track = make("span", line, undefined, "track");
    make("span", track, undefined, "fill").style.width = `${(100 * share).toFixed(2)}%`;
    make("span", line, percent(share), "bar-value");
  });
  const showNumbers = (row, found, place) => {
    const q = (data.log ? found.map(Math.exp) : found).sort((a, b) => a - b);
    const [low, high] = data.range, at = value => 100 * Math.min(1, Math.max(0, (value - low) / (high - low)));
    const track = make("div", place, undefined, "fan");
    for (const [name, from, to] of [["wide", q[0], q[4]], ["half", q[1], q[3]], ["middle", q[2], q[2]]]) {
      const band = make("span", track, undefined, name);
      band.style.left = `${at(from)}%`;
      band.style.width = `${at(to) - at(from)}%`;
    }
    const ends = make("div", place, undefined, "fan-ends");
    make("span", ends, readable(low));
    make("span", ends, readable(high));
    make("p", place, `Median ${readable(q[2])}; half of the probability between ${readable(q[1])} and ` +
      `${readable(q[3])}; nine tenths between ${readable(q[0])} and ${readable(q[4])}.`);
  };
  const form = make("form", panel);
  form.autocomplete = "off";
  const head = make("label", form, "Row ");
  const chosen = make("select", head);
  chosen.id = "what-if-row";
  data.rows.forEach((row, k) => { make("option", chosen, row.label).value = k; });
  const levers = make("div", form, undefined, "levers");
  const back = make("button", form, "Back to the row as it is");
  back.type = "button";
  const output = make("div", panel, undefined, "answer");
  output.setAttribute("aria-live", "polite");
  let row, inputs;
  const update = () => {
    const setting = inputs.map(input => Number(input.value));
    output.textContent = "";
    (data.numbers ? showNumbers : showClasses)(row, answer(row, setting), output);
  };
  const build = () => {
    row = data.rows[chosen.value];
    row.numbers = row.numbers || decoded(row.answers);
    levers.textContent = "";
    inputs = row.levers.map(lever => {
      const label = make("label", levers);
      make("span", label, lever.name, "lever-name");
      if (!lever.slides) {
        const list = make("select", label);
        lever.levels.forEach((level, k) => { make("option", list, level).value = k; });
        list.value = lever.start;
        list.addEventListener("change", update);
        return list;
      }
      const shown = make("output", label, worded(lever, lever.start));
      const slider = make("input", label);
      slider.type = "range";
      slider.min = lever.levels[0];
      slider.max = lever.levels[lever.levels.length - 1];
      slider.step = lever.whole ? 1 : "any";
      slider.value = lever.start;
      slider.addEventListener("input", () => { shown.textContent = worded(lever, Number(slider.value)); update(); });
      return slider;
    });
    update();
  };
  chosen.addEventListener("change", build);
  back.addEventListener("click", build);
  build();
  for (const each of document.querySelectorAll(".without-scripts")) each.remove();
})();
