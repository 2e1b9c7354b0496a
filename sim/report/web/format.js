// Numbers and units, and small helpers for the page. Text is only ever set as text.

function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

/** Four significant digits, thousands grouped; "-" for what is not there. */
function number(value) {
  if (value == null || !Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size >= 1e-3) return String(Number(value.toPrecision(4)));
  return size === 0 ? "0" : value.toExponential(2);
}

const kPrefixes = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

/** 1.25e12 -> "1.25 T". */
function scaled(value) {
  if (value == null || !Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  for (const [factor, prefix] of kPrefixes) {
    if (size >= factor) return Number((value / factor).toPrecision(3)) + (prefix ? " " + prefix : "");
  }
  return String(Number(value.toPrecision(2)));
}

function percent(share) {
  return share == null ? "-" : Number((100 * share).toPrecision(3)) + " %";
}

function seconds(value) {
  return value == null ? "-" : number(value) + " s";
}

function sum(values) {
  return values.reduce((total, value) => total + (value || 0), 0);
}

/** Median and maximum of what is there, for text alternatives. */
function summary(values) {
  const sorted = values.filter((v) => v != null && Number.isFinite(v)).sort((a, b) => a - b);
  if (!sorted.length) return null;
  return { median: sorted[sorted.length >> 1], max: sorted[sorted.length - 1], count: sorted.length };
}

function styleOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
