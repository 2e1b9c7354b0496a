// The sections of the page. `view` says what is shown: {runs: [{run, name, at}], focus: one of them}.

/** Where each figure of the headline table stands in a result of --json, and which end is better. */
const kFigures = [
  { group: "Requests", name: "completed", key: ["completed"] },
  { group: "Requests", name: "rejected", key: ["requests", "rejected"], optional: true },
  { group: "Throughput", name: "req/s", key: ["request_throughput"], better: 1 },
  { group: "Throughput", name: "output tok/s", key: ["output_throughput"], better: 1 },
  { group: "Goodput", name: "req/s", key: ["request_goodput"], better: 1, optional: true },
  ...[["TTFT", "ttft"], ["TPOT", "tpot"], ["ITL", "itl"], ["E2E", "e2el"]].flatMap(([group, metric]) =>
    ["mean", "median", "p99"].map((name) => ({ group: group + " ms", name, key: [`${name}_${metric}_ms`], better: -1 }))),
  { group: "Engine", name: "steps", key: ["engine", "steps"] },
  { group: "Engine", name: "batch", key: ["engine", "mean_batch_size"] },
  { group: "Engine", name: "step ms", key: ["engine", "mean_step_ms"] },
  { group: "Engine", name: "busy", key: ["engine", "busy_fraction"], format: percent },
  { group: "Engine", name: "bubbles", key: ["engine", "bubble_fraction"], format: percent, optional: true },
  { group: "Engine", name: "MFU", key: ["engine", "mfu"], format: percent },
  { group: "Engine", name: "MBU", key: ["engine", "mbu"], format: percent },
  { group: "KV pool", name: "mean used", key: ["kv", "mean_used"], format: percent },
  { group: "KV pool", name: "peak", key: ["kv", "peak_used"], format: percent },
  { group: "KV pool", name: "preemptions", key: ["kv", "preemptions"] },
  { group: "KV pool", name: "prefix hits", key: ["kv", "prefix_hit_rate"], format: percent },
];

const kMostUpright = 4;

function figureOf(result, figure) {
  return figure.key.reduce((value, key) => (value == null ? null : value[key]), result);
}

/** The best of the runs of the same trace, where at least two differ. */
function isBest(figure, runs, at) {
  const mine = figureOf(runs[at].result, figure);
  if (!figure.better || mine == null) return false;
  const others = runs.filter((r) => r.result.trace === runs[at].result.trace)
    .map((r) => figureOf(r.result, figure)).filter((v) => v != null);
  return others.some((v) => v !== mine) && others.every((v) => (v - mine) * figure.better <= 0);
}

function headlineTable(runs, names) {
  const figures = kFigures.filter((f) => !f.optional || runs.some((r) => figureOf(r.result, f)));
  const groups = [];
  for (const figure of figures) {
    const last = groups[groups.length - 1];
    if (last && last.name === figure.group) last.count += 1;
    else groups.push({ name: figure.group, count: 1 });
  }
  const cell = (figure, at) => {
    const value = figureOf(runs[at].result, figure);
    return element("td", { "data-run": at, class: isBest(figure, runs, at) ? "best" : null, "data-key": figure.key.join("."), "data-value": value == null ? "" : String(value) },
      (figure.format || number)(value));
  };
  const upright = runs.length <= kMostUpright; // a column per run, which a phone can show
  const scroll = (...parts) => element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Figures of all runs" },
    element("table", { id: "headline", class: upright ? "upright" : null }, ...parts));
  if (upright) {
    return scroll(
      element("thead", {}, element("tr", {}, element("th", { scope: "col", colspan: 2 }, "Figure"), ...names.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...figures.map((f, i) => element("tr", {},
        i === 0 || figures[i - 1].group !== f.group ? element("th", { scope: "rowgroup" }, f.group) : element("td"),
        element("th", { scope: "row" }, f.name), ...runs.map((_, at) => cell(f, at))))));
  }
  return scroll(
      element("thead", {},
        element("tr", {}, element("td"), ...groups.map((g) => element("th", { scope: "colgroup", colspan: g.count }, g.name))),
        element("tr", {}, element("th", { scope: "col" }, "Run"), ...figures.map((f) => element("th", { scope: "col" }, f.name)))),
      element("tbody", {}, ...runs.map((run, at) =>
        element("tr", {}, element("th", { scope: "row" }, names[at]), ...figures.map((f) => cell(f, at))))));
}

/** Curves of all shown runs that `pick` finds something in. */
function overlay(view, pick) {
  return view.runs.flatMap(({ run, name, slot }) => {
    const curves = run.series ? pick(run.series, run) : [];
    return curves.filter((c) => c.y).map((c, i) => ({
      ...c, name: view.runs.length > 1 ? `${name}${c.name ? ", " + c.name : ""}` : c.name || name,
      colour: view.runs.length > 1 ? slot : c.colour ?? i, dash: c.dash ?? slot }));
  });
}

/** Centres of the bins, one array per series so that curves of a run share it. */
function times(bins) {
  if (!bins.x) {
    const count = Math.max(0, ...Object.values(bins.columns).map((c) => c.length));
    bins.x = Array.from({ length: count }, (_, i) => bins.start_s + (i + 0.5) * bins.bin_s);
  }
  return bins.x;
}

const kTimeAxis = { label: "seconds after the first request", short: "time", format: seconds };

function cdfCharts(view) {
  return [["ttft", "Time to first token (TTFT)"], ["tpot", "Time per output token (TPOT)"],
    ["itl", "Inter-token latency (ITL)"], ["e2el", "End-to-end latency (E2E)"]].map(([metric, title]) => {
    const all = overlay(view, (s) => (s.cdf[metric] ? [{ x: s.cdf[metric].ms, y: s.cdf[metric].share }] : []));
    const low = Math.min(...all.map((s) => s.x[0]));
    const log = low > 0 && Math.max(...all.map((s) => s.x[s.x.length - 1])) / low > 10;
    return { id: "cdf-" + metric, title, series: all, x: { label: log ? "milliseconds (log)" : "milliseconds", short: "ms", log },
      y: { label: "share of samples", format: percent, range: [0, 1] } };
  });
}

function latencyCharts(view) {
  const by = view.runs.some((r) => r.run.series && r.run.series.latency.by === "first_token") ? "first token" : "arrival";
  return [["ttft", "TTFT over time"], ["tpot", "TPOT over time"]].map(([metric, title]) => ({
    id: metric + "-time", title, sync: kTimeSync, x: kTimeAxis, y: { label: "milliseconds" },
    hint: `Of requests by their ${by}: median and 99th percentile of all in a bin; dots are single requests.`,
    series: overlay(view, (s) => {
      const columns = s.latency.columns;
      const x = times(s.latency);
      const many = x.length > 1;
      return [
        many ? { name: "median", x, y: columns[metric + "_p50"], colour: 0, dash: 0 } : {},
        many ? { name: "p99", x, y: columns[metric + "_p99"], colour: 5, dash: 1 } : {},
        { name: s.latency.every > 1 ? `every ${s.latency.every}th request` : "requests", x: s.latency.points.time_s,
          y: s.latency.points[metric], dots: true, size: 3, colour: 2 }];
    }),
  }));
}

function loadCharts(view) {
  const engine = (pick) => overlay(view, (s) => pick(s.engine.columns).map((c) => ({ ...c, x: times(s.engine) })));
  const plus = (a, b) => (a || b ? (a || b).map((_, i) => (a ? a[i] : 0) + (b ? b[i] : 0)) : null);
  return [
    { id: "batch", title: "Batch size", hint: "Sequences in the step that runs, over all replicas; pauses count as none.",
      x: kTimeAxis, y: { label: "sequences" }, sync: kTimeSync,
      series: engine((c) => [{ name: "", y: plus(c.decode_seqs, c.prefill_seqs) }]) },
    { id: "queue", title: "Queue", hint: "Requests sent and not yet in a step, or preempted.",
      x: kTimeAxis, y: { label: "requests" }, sync: kTimeSync, series: engine((c) => [{ name: "", y: c.waiting }]) },
    { id: "tokens", title: "Tokens computed", hint: "Per second, over all replicas.", x: kTimeAxis, sync: kTimeSync,
      y: { label: "tokens/s", format: scaled },
      series: engine((c) => [{ name: "prefill", y: c.prefill_tokens_per_s, colour: 1, dash: 1 },
        { name: "decode", y: c.decode_tokens_per_s, colour: 0, dash: 0 }]) },
  ];
}

const kKvNames = { kv_used: "used", kv_internal: "internal fragmentation", kv_reserved: "reservation waste",
  kv_external: "external fragmentation" };

/** Charts of one run: parts that add up. */
function stackCharts(view) {
  const { run } = view.focus;
  if (!run.series) return [];
  const engine = run.series.engine;
  const x = times(engine);
  const capacity = run.kv_slots * run.replicas;
  const part = (name, y, at) => ({ name, x, y, fill: true, colour: at, dash: 0 });
  const kv = Object.keys(kKvNames).filter((key) => engine.columns[key]).map((key, at) =>
    part(kKvNames[key], engine.columns[key].map((v) => v / capacity), at));
  const components = Object.entries(engine.columns).filter(([key]) => key.startsWith("time_"))
    .sort((a, b) => sum(b[1]) - sum(a[1]))
    .map(([key, y], at) => part(key.slice(5).replaceAll("_", " "), y.map((v) => v / run.replicas), at));
  const charts = [];
  if (kv.length && capacity > 0) {
    charts.push({ id: "kv", title: "KV pool by bytes", stack: true, sync: kTimeSync, series: kv, x: kTimeAxis,
      hint: "Shares of the pool; what is missing to 100 % is free.", y: { label: "share of the pool", format: percent } });
  }
  if (components.length) {
    charts.push({ id: "components", title: "Step time by component", stack: true, sync: kTimeSync, series: components, x: kTimeAxis,
      hint: "Shares of the time of an engine; what is missing to 100 % is idle.", y: { label: "share of time", format: percent } });
  }
  const links = run.series.links.map((link, at) => ({ name: link.name, x, y: link.busy, colour: at, dash: at }));
  if (links.length) {
    charts.push({ id: "links", title: "Links", sync: kTimeSync, series: links, x: kTimeAxis,
      hint: "Shares of each link's bandwidth.", y: { label: "utilisation", format: percent } });
  }
  return charts;
}

function componentTable(view) {
  const names = [...new Set(view.runs.flatMap(({ run }) => Object.entries(run.result.engine.time_by_component_s)
    .filter(([, s]) => s > 0).map(([name]) => name)))];
  if (!names.length) return null;
  const row = ({ run, name, at }) => {
    const times = run.result.engine.time_by_component_s;
    const total = sum(Object.values(times));
    return element("tr", {}, element("th", { scope: "row" }, name), ...names.map((key) =>
      element("td", { "data-run": at, "data-key": "engine.time_by_component_s." + key, "data-value": String(times[key]) },
        `${number(times[key])} s (${percent(total > 0 ? times[key] / total : 0)})`)));
  };
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Time by component" },
    element("table", { id: "component-table" },
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Run"),
        ...names.map((name) => element("th", { scope: "col" }, name.replaceAll("_", " "))))),
      element("tbody", {}, ...view.runs.map(row))));
}

/** The roof of a machine: the lower of what bandwidth and compute allow. */
function roof(run, low, high) {
  const ridge = run.peak_flops / run.peak_bytes_per_s;
  const x = [Math.min(low, ridge / 2), ridge, Math.max(high, ridge * 4)];
  return { name: "roof", x, y: x.map((at) => Math.min(run.peak_flops, at * run.peak_bytes_per_s)), colour: 7, dash: 0 };
}

function rooflineChart(view) {
  const drawn = view.runs.filter(({ run }) => run.series && run.peak_flops > 0);
  if (!drawn.length) return [];
  const dots = overlay({ runs: drawn }, (s, run) => ["decode", "prefill"].map((kind, at) => {
    const column = (name) => s.steps[kind].fields.indexOf(name);
    const [flops, bytes, ms] = ["flops", "hbm_bytes", "step_ms"].map(column);
    const rows = s.steps[kind].rows;
    return { name: kind === "decode" ? "decode steps" : "steps with prefill", dots: true, size: at ? 5 : 4, colour: at,
      x: rows.map((r) => r[flops] / r[bytes]), y: rows.map((r) => r[flops] / (r[ms] * 1e-3)) };
  }).filter((c) => c.x.length));
  const all = dots.flatMap((s) => s.x);
  if (!all.length) return [];
  const low = all.reduce((a, b) => Math.min(a, b));
  const high = all.reduce((a, b) => Math.max(a, b));
  const roofs = new Map(drawn.map(({ run }) => [`${run.peak_flops} ${run.peak_bytes_per_s}`, run]));
  const ridges = [...roofs.values()].map((run) => number(run.peak_flops / run.peak_bytes_per_s)).join(", ");
  const every = Math.max(...drawn.map(({ run }) => Math.max(run.series.steps.decode.every, run.series.steps.prefill.every)));
  return [{ id: "roofline", title: "Roofline", height: 340,
    hint: `Each dot is a step, or the mean of a stretch of equal decode steps${every > 1 ? ` (a sample: up to every ${every}th)` : ""}. `
      + `Ridge at ${ridges} FLOP/byte: left of it memory is the limit, right of it compute.`,
    series: [...[...roofs.values()].map((run) => roof(run, low / 2, high * 2)), ...dots],
    x: { label: "arithmetic intensity, FLOP per HBM byte (log)", short: "FLOP/byte", log: true },
    y: { label: "FLOP/s (log)", log: true, format: scaled } }];
}

function paretoChart(pareto) {
  if (!pareto) return [];
  const column = (points, name) => points.map((p) => p[name]);
  const front = pareto.points.filter((p) => p.front).sort((a, b) => a.x - b.x);
  const rest = pareto.points.filter((p) => !p.front);
  return [{ id: "pareto", title: "Pareto front", height: 340, hint: "Nothing that was tried is better on both axes than a point of the front.",
    series: [{ name: "front", x: column(front, "x"), y: column(front, "y"), colour: 5, dash: 0 },
      { name: "best trade-offs", x: column(front, "x"), y: column(front, "y"), dots: true, size: 9, colour: 5 },
      { name: "other configurations", x: column(rest, "x"), y: column(rest, "y"), dots: true, size: 4, colour: 0 }],
    x: { label: pareto.x_label }, y: { label: pareto.y_label } }];
}

function paretoTable(pareto) {
  if (!pareto) return null;
  const front = pareto.points.filter((p) => p.front).sort((a, b) => a.x - b.x);
  const head = ["Configuration", pareto.x_label, pareto.y_label];
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Configurations on the front" },
    element("table", { id: "pareto-table" }, element("thead", {}, element("tr", {}, ...head.map((h) => element("th", { scope: "col" }, h)))),
      element("tbody", {}, ...front.map((p) => element("tr", {}, element("th", { scope: "row" }, p.label),
        element("td", {}, number(p.x)), element("td", {}, number(p.y)))))));
}

function configuration(run, name) {
  const text = (value) => (value === null ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value));
  return element("details", {}, element("summary", {}, name),
    element("div", { class: "scroll" }, element("table", {}, element("tbody", {},
      ...Object.entries(run.result.config).map(([key, value]) =>
        element("tr", {}, element("th", { scope: "row" }, key), element("td", { class: "text" }, text(value))))))));
}
