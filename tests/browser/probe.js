// Run at the end of a report: uses the page as a reader would, and writes down what it found.
(async () => {
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const found = { ready_ms: Number(document.documentElement.dataset.ready), errors: window.probeErrors };
  const charts = () => all("figure[data-chart]").map((figure) => {
    const canvas = figure.querySelector("canvas");
    const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const data = context.getImageData(0, 0, copy.width, copy.height).data;
    const colours = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3]) colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    const plot = figure.querySelector(".plot");
    return { id: figure.dataset.chart, colours: colours.size, label: plot.getAttribute("aria-label"), focusable: plot.tabIndex === 0,
      series: [...figure.querySelectorAll(".u-legend .u-series")].length - 1 };
  });
  const drawn = async () => { for (let i = 0; i < 5; ++i) await null; }; // charts are drawn in microtasks
  await drawn();
  found.charts = charts();
  found.cells = all("td[data-key]").map((cell) => ({ table: cell.closest("table").id, run: Number(cell.dataset.run || 0),
    key: cell.dataset.key, value: cell.dataset.value, text: cell.textContent }));
  found.wider_than_screen = document.documentElement.scrollWidth - innerWidth;
  found.width = innerWidth;
  found.command = one("#command").textContent;
  found.warnings = all(".warning").map((node) => node.textContent);
  found.elements_from_names = all("main b, main img, main script").length;

  const plot = one("figure[data-chart] .plot");
  if (plot) {
    plot.focus();
    for (const key of ["Home", "ArrowRight", "End"]) plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    found.spoken = one("#live").textContent;
    const details = one("figure[data-chart] details");
    details.open = true;
    details.dispatchEvent(new Event("toggle"));
    found.table_rows = details.querySelectorAll("tbody tr").length;
  }
  const box = one("#runs input");
  if (box) {
    box.click();
    await drawn();
    found.charts_without_first = charts();
    box.click();
    await drawn();
    found.charts_again = charts();
    const focus = one("#focus");
    focus.value = focus.options[focus.options.length - 1].value;
    focus.dispatchEvent(new Event("change"));
    await drawn();
    found.charts_of_last = charts();
  }
  document.body.append(Object.assign(document.createElement("pre"), { id: "probe", textContent: encodeURIComponent(JSON.stringify(found)) }));
})();
