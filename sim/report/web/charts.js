// What all charts share. A chart is {title, hint, series: [{name, x, y, ...}], x, y}; each of its curves has its own x.

const kDark = matchMedia("(prefers-color-scheme: dark)");
// Okabe and Ito; the darkest and the palest of them swap with the background.
const kColours = () => kDark.matches
  ? ["#56b4e9", "#e69f00", "#2fd0a5", "#d98cc0", "#f0e442", "#ff7f3f", "#9db8ff", "#e8ebef"]
  : ["#0072b2", "#c77700", "#00805c", "#b3478a", "#8a7a00", "#d55e00", "#2e8bc0", "#333a42"];
const kDashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [14, 4], [3, 6], [6, 2, 2, 2, 2, 2]];
const kPlots = new Set();
const kTimeSync = "time";

/** Brings curves with x of their own onto one x, sorted; where a curve has no point, null. */
function merged(series) {
  const shared = series.length > 0 && series.every((s) => s.x === series[0].x);
  if (shared) return [series[0].x, ...series.map((s) => s.y)];
  const points = [];
  series.forEach((s, at) => s.x.forEach((x, i) => { if (x != null) points.push([x, at, s.y[i]]); }));
  points.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const columns = [points.map((p) => p[0]), ...series.map(() => new Array(points.length).fill(null))];
  points.forEach((p, i) => { columns[p[1] + 1][i] = p[2]; });
  return columns;
}

/** Curves on top of each other: returns the upper edges, the last being the sum. */
function stacked(series) {
  const total = new Array(series[0].y.length).fill(0);
  return series.map((s) => ({ ...s, raw: s.y, y: s.y.map((v, i) => (total[i] += v || 0)) }));
}

function axis(spec, side) {
  const text = styleOf("--soft");
  const grid = { stroke: styleOf("--grid"), width: 1 };
  const format = spec.format || number;
  return {
    label: spec.label, stroke: text, grid, ticks: grid, font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif", size: side === "y" ? 64 : 40, labelSize: 20, labelGap: 2,
    values: (u, ticks) => ticks.map((tick) => (tick == null ? "" : format(tick))),
    ...(spec.log ? { filter: (u, ticks) => decades(ticks, u.scales[side]) } : {}),
  };
}

/** Labels at powers of ten; at all ticks where the axis shows less than two decades. */
function decades(ticks, scale) {
  const few = scale.max / scale.min < 30;
  return ticks.map((tick) => {
    const mantissa = tick / 10 ** Math.floor(Math.log10(tick) + 1e-9);
    const shown = few ? [1, 2, 5] : [1];
    return shown.some((m) => Math.abs(mantissa - m) < 1e-6) ? tick : null;
  });
}

function curve(spec, at, chart) {
  const colours = kColours();
  const colour = colours[(spec.colour ?? at) % colours.length];
  const format = chart.y.format || number;
  const value = (u, v, s, i) => {
    const shown = spec.raw ? (i == null ? null : spec.raw[i]) : v;
    return shown == null ? "-" : format(shown);
  };
  const base = { label: spec.name, stroke: colour, width: 2, spanGaps: true, value, dash: kDashes[(spec.dash ?? 0) % 8] };
  if (spec.dots) {
    return { ...base, paths: () => null, points: { show: true, size: spec.size || 4, fill: colour + "99", stroke: colour, width: 0.5 } };
  }
  const paths = spec.steps ? uPlot.paths.stepped({ align: 1 }) : undefined;
  return { ...base, ...(paths ? { paths } : {}), points: { show: spec.x.length < 2 }, ...(spec.fill ? { fill: colour + "b0", width: 1 } : {}) };
}

function options(chart, series, width) {
  const scale = (spec) => ({
    time: false,
    ...(spec.log ? { distr: 3 } : {}),
    ...(spec.range ? { range: spec.range } : {}),
  });
  const yRange = chart.y.log || chart.y.range ? {} : { range: (u, low, high) => [0, high > 0 ? high * 1.05 : 1] };
  const xFormat = chart.x.format || number;
  return {
    width, height: chart.height || 260, padding: [10, 24, 0, 0],
    scales: { x: scale(chart.x), y: { ...scale(chart.y), ...yRange } },
    axes: [axis(chart.x, "x"), axis(chart.y, "y")],
    cursor: { ...(chart.sync ? { sync: { key: chart.sync } } : {}), points: { size: 6 }, focus: { prox: 24 } },
    focus: { alpha: 0.5 },
    legend: { show: true, live: true },
    series: [{ label: chart.x.short || chart.x.label, value: (u, v) => (v == null ? "-" : xFormat(v)) },
      ...series.map((s, at) => curve(s, at, chart))],
    bands: chart.stack ? series.slice(1).map((s, i) => ({ series: [i + 2, i + 1] })) : undefined,
  };
}

function textAlternative(chart) {
  const format = chart.y.format || number;
  const parts = chart.series.map((s) => {
    const facts = summary(s.raw || s.y);
    return facts ? `${s.name}: median ${format(facts.median)}, highest ${format(facts.max)}` : `${s.name}: no data`;
  });
  return `${chart.title}. ${chart.y.label} against ${chart.x.label}. ${parts.join("; ")}. Arrow keys read single points.`;
}

/** The data behind a chart, built when it is asked for; long ones are thinned. */
function dataTable(chart) {
  const most = 200;
  const build = (details) => {
    if (details.dataset.built) return;
    details.dataset.built = "1";
    const columns = merged(chart.series.map((s) => ({ ...s, y: s.raw || s.y })));
    const every = Math.ceil(columns[0].length / most);
    const row = (cells, tag) => element("tr", {}, ...cells.map((text) => element(tag, tag === "th" ? { scope: "col" } : {}, text)));
    const rows = [];
    const yFormat = chart.y.format || number;
    const xFormat = chart.x.format || number;
    for (let i = 0; i < columns[0].length; i += every) {
      rows.push(row(columns.map((c, at) => (at ? yFormat(c[i]) : xFormat(c[i]))), "td"));
    }
    details.append(element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": chart.title + ", data" },
      element("table", {}, element("thead", {}, row([chart.x.label, ...chart.series.map((s) => s.name)], "th")),
        element("tbody", {}, ...rows))));
  };
  return element("details", { ontoggle: (event) => build(event.target) }, element("summary", {}, "Data as a table"));
}

function moveCursor(plot, chart, key) {
  const xs = plot.data[0];
  const from = plot.cursor.idx ?? -1;
  const steps = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };
  const to = Math.max(0, Math.min(xs.length - 1, from + steps[key]));
  plot.setCursor({ left: plot.valToPos(xs[to], "x"), top: plot.over.clientHeight / 2 });
  const xFormat = chart.x.format || number;
  const yFormat = chart.y.format || number;
  const values = chart.series.map((s, i) => [s.name, s.raw ? s.raw[to] : plot.data[i + 1][to]])
    .filter(([, value]) => value != null).map(([name, value]) => `${name} ${yFormat(value)}`);
  document.getElementById("live").textContent = `${chart.x.label} ${xFormat(xs[to])}: ${values.join(", ")}`;
}

/** A figure with one chart; nothing when there is nothing to draw. */
function chartFigure(chart) {
  chart.series = chart.series.filter((s) => s.y.some((v) => v != null));
  if (!chart.series.length) return null;
  if (chart.stack) chart.series = stacked(chart.series);
  const plot = element("div", { class: "plot", role: "img", tabindex: 0, "aria-label": textAlternative(chart) });
  const figure = element("figure", { "data-chart": chart.id },
    element("h3", {}, chart.title), chart.hint ? element("p", { class: "hint" }, chart.hint) : null, plot, dataTable(chart));
  const entry = { chart, node: plot, plot: null };
  plot.addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"].includes(event.key) || !entry.plot) return;
    event.preventDefault();
    moveCursor(entry.plot, chart, event.key);
  });
  kPlots.add(entry);
  return figure;
}

function draw(entry) {
  const width = Math.max(entry.node.clientWidth, 200);
  if (entry.plot) entry.plot.destroy();
  entry.plot = new uPlot(options(entry.chart, entry.chart.series, width), merged(entry.chart.series), entry.node);
  entry.width = width;
}

/** Draws what is new on the page and forgets what is gone. */
function drawAll() {
  for (const entry of [...kPlots]) {
    if (!entry.node.isConnected) {
      if (entry.plot) entry.plot.destroy();
      kPlots.delete(entry);
    } else if (!entry.plot) {
      draw(entry);
    }
  }
}

kDark.addEventListener("change", () => kPlots.forEach((entry) => draw(entry)));
addEventListener("resize", () => kPlots.forEach((entry) => {
  const width = Math.max(entry.node.clientWidth, 200);
  if (entry.plot && width !== entry.width) {
    entry.width = width;
    entry.plot.setSize({ width, height: entry.plot.height });
  }
}));
