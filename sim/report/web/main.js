// Reads the data and builds the page.

const kMostShown = 8; // as many colours and patterns as can be told apart
const kData = JSON.parse(document.getElementById("data").textContent);

/** "chat.jsonl, chunked, block-size 16": what tells the runs apart. */
function runNames(runs) {
  const differs = (pick) => new Set(runs.map(pick)).size > 1;
  const parts = [["trace", (r) => r.result.trace], ["policy", (r) => r.result.policy]].filter(([, pick]) => differs(pick));
  return runs.map((run) => {
    const name = [...parts.map(([, pick]) => pick(run)),
      ...Object.entries(run.varied).filter(([key]) => key !== "trace" && key !== "policy").map(([key, value]) => `${key} ${value}`)];
    return name.length ? name.join(", ") : `${run.result.trace}, ${run.result.policy}`;
  });
}

const kNames = runNames(kData.runs);

function section(id, title, ...children) {
  const shown = children.filter((child) => child != null);
  return shown.length ? element("section", { id, "aria-labelledby": id + "-title" }, element("h2", { id: id + "-title" }, title), ...shown) : null;
}

function charts(list) {
  const figures = list.map(chartFigure).filter((figure) => figure);
  return figures.length ? element("div", { class: "charts" }, ...figures) : null;
}

/** The runs that are ticked, in slots that keep their colour. */
const kSlots = new Map(kData.runs.slice(0, kMostShown).map((_, at) => [at, at]));
let focus = 0;

function currentView() {
  const runs = [...kSlots].map(([at, slot]) => ({ at, slot, run: kData.runs[at], name: kNames[at] })).sort((a, b) => a.at - b.at);
  return { runs, focus: { run: kData.runs[focus], name: kNames[focus] } };
}

function redraw() {
  const view = currentView();
  document.getElementById("overlaid").replaceChildren(...[
    section("latency", "Latency", charts(cdfCharts(view)), charts(latencyCharts(view))),
    section("load", "Load", charts(loadCharts(view))),
    section("roofline-section", "Where the steps sit", charts(rooflineChart(view))),
  ].filter((s) => s));
  redrawFocus(view);
}

function redrawFocus(view) {
  const choice = kData.runs.length > 1
    ? element("label", {}, "Run shown here", element("select", { id: "focus", onchange: (event) => {
      focus = Number(event.target.value);
      redrawFocus(currentView());
      document.getElementById("focus").focus();
    } }, ...kNames.map((name, at) => element("option", { value: at, selected: at === focus }, name)))) : null;
  const stacks = charts(stackCharts(view));
  document.getElementById("single").replaceChildren(...[
    section("stacks", "Memory and time", choice, stacks, componentTable(view)),
  ].filter((s) => s));
  drawAll();
}

function runSelector() {
  if (kData.runs.length < 2) return null;
  const box = (name, at) => {
    const swatch = element("span", { class: "swatch", "aria-hidden": "true" });
    const paint = () => {
      swatch.style.borderTopColor = kSlots.has(at) ? kColours()[kSlots.get(at)] : "transparent";
      swatch.style.borderTopStyle = kSlots.get(at) % 2 ? "dashed" : "solid";
    };
    paint();
    kDark.addEventListener("change", paint);
    const toggle = (event) => {
      if (!event.target.checked) {
        kSlots.delete(at);
      } else {
        const used = new Set(kSlots.values());
        const free = Array.from({ length: kMostShown }, (_, slot) => slot).find((slot) => !used.has(slot));
        if (free === undefined) event.target.checked = false;
        else kSlots.set(at, free);
      }
      note.textContent = kSlots.size === kMostShown ? `${kMostShown} runs are shown, the most that can be told apart.` : "";
      paint();
      redraw();
    };
    return element("label", {}, element("input", { type: "checkbox", checked: kSlots.has(at), onchange: toggle }), swatch, name);
  };
  const note = element("p", { class: "hint", role: "status" });
  return element("div", {}, element("fieldset", { id: "runs" }, element("legend", {}, "Runs in the charts"), ...kNames.map(box)), note);
}

function warnings() {
  const runsOf = new Map();
  kData.runs.forEach((run, at) => run.result.warnings.forEach((text) => runsOf.set(text, [...(runsOf.get(text) || []), kNames[at]])));
  return [...runsOf].map(([text, names]) => {
    const some = names.length < kData.runs.length;
    const who = names.slice(0, 3).join("; ") + (names.length > 3 ? `; ${names.length - 3} more` : "");
    return element("p", { class: "warning" }, some ? `${who}: ${text}` : text);
  });
}

function build() {
  const unique = (pick) => [...new Set(kData.runs.map(pick))].join(", ");
  document.getElementById("subject").textContent = kData.runs.length
    ? `${kData.runs.length === 1 ? "1 run" : kData.runs.length + " runs"} of ${unique((r) => r.result.trace)}: `
      + `${unique((r) => r.result.model)} on ${unique((r) => r.result.hardware)}` : "";
  document.getElementById("made").textContent = `Made by servesim ${kData.version}, seed ${kData.seed}. Curves of long runs are thinned, never cut off.`;
  const anySeries = kData.runs.some((run) => run.series);
  document.getElementById("main").append(...[
    section("figures", "Figures", ...warnings(), kData.runs.length ? headlineTable(kData.runs, kNames) : null),
    section("pareto-section", "Search", kData.pareto ? element("p", { id: "answer" }, kData.pareto.answer) : null, charts(paretoChart(kData.pareto)), paretoTable(kData.pareto)),
    anySeries ? section("choice", "Runs", runSelector()) : null,
    element("div", { id: "overlaid" }),
    element("div", { id: "single" }),
    section("configuration", "Configuration", element("p", {}, "Made by this command:"), element("pre", { id: "command", tabindex: 0 }, kData.command),
      ...kData.runs.map((run, at) => configuration(run, kNames[at]))),
  ].filter((s) => s));
  if (anySeries) redraw();
  else drawAll();
}

build();
document.documentElement.dataset.ready = String(Math.round(performance.now()));
