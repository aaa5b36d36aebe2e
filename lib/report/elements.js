// The page's data and building blocks: elements, numbers, tables.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs, several = runs.length > 1;
const main = document.getElementById("main");
// Runs with the same name are shown by their paths.
for (const run of runs) run.shown = runs.filter(other => other.name === run.name).length > 1 ? run.path : run.name;
for (const run of runs) run.name = run.shown;

// ---- elements and numbers

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "style") Object.assign(made.style, value);
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}
function drawn(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
const isNumber = value => typeof value === "number" && Number.isFinite(value);
function number(value) {
  if (!isNumber(value)) return value === null || value === undefined ? "" : String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return value.toLocaleString("en-US");
  if (size >= 1e6 || size < 1e-4) return value.toExponential(3);
  return size >= 1000 ? Math.round(value).toLocaleString("en-US") : String(+value.toPrecision(4));
}
function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; count >= 999.5 && unit < 4; ++unit) count /= 1000;
  return (unit && count < 99.95 ? count.toFixed(1) : Math.round(count)) + " " + units[unit];
}
/// Formats a number of samples per second.
const speed = value => number(value < 10 ? +value.toPrecision(2) : Math.round(value));
function duration(seconds) {
  if (!isNumber(seconds)) return "";
  if (seconds < 10) return seconds.toFixed(seconds < 1 ? 2 : 1) + " s";
  const s = Math.round(seconds), two = value => String(value).padStart(2, "0");
  return s < 60 ? s + " s" : s < 3600 ? Math.floor(s / 60) + ":" + two(s % 60) + " min"
    : Math.floor(s / 3600) + ":" + two(Math.floor(s / 60) % 60) + ":" + two(s % 60) + " h";
}
function moment(text) {  // "2026-11-21T22:39:54+0100", shown in its own time zone
  const found = /^(\d+-\d+-\d+)T(\d+:\d+)/.exec(text || "");
  return found ? found[1] + " " + found[2] : "";
}
const color = index => `var(--s${index % 10})`;
const dashes = index => index >= 10 ? "7 3" : "";
const plain = name => name.replace(/_/g, " ");

// ---- tables

/// Makes a table. `columns`: [{title, of(row), text(value), number, sortable}]; rows may be of any type.
function table(columns, rows, sortable) {
  const body = element("tbody");
  const fill = list => body.replaceChildren(...list.map(row => element("tr", {}, ...columns.map(column => {
    const value = column.of(row);
    const cell = element("td", {class: [column.number ? "number" : "", column.wrap ? "wrap" : "",
      column.best && column.best(row) ? "best" : ""].join(" ").trim()});
    const shown = column.show ? column.show(row) : column.text ? column.text(value) : number(value);
    cell.append(shown);
    return cell;
  }))));
  const heads = columns.map(column => {
    const head = element("th", {scope: "col", class: column.number ? "number" : ""});
    if (!sortable) { head.append(column.title); return head; }
    head.append(element("button", {onclick: () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const missing = value => value === null || value === undefined || value === "";
      fill([...rows].sort((a, b) => {
        const x = column.of(a), y = column.of(b);
        if (missing(x) || missing(y)) return missing(x) - missing(y);
        const order = isNumber(x) && isNumber(y) ? x - y : String(x).localeCompare(String(y), "en", {numeric: true});
        return down ? -order : order;
      }));
    }}, column.title));
    return head;
  });
  fill(rows);
  return element("div", {class: "scroll"}, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body));
}
/// A table that hides columns, those with the greatest `spare` first, until it fits its container.
function fittedTable(columns, rows) {
  const holder = element("div");
  let all = false;
  const toggle = element("button", {onclick: () => { all = !all; fit(); }});
  const fit = () => {
    const spare = columns.filter(column => column.spare).sort((a, b) => a.spare - b.spare);
    let kept = columns, scroll;
    const fill = () => { scroll = table(kept, rows, true); holder.replaceChildren(scroll); };
    for (fill(); !all && spare.length && scroll.scrollWidth > scroll.clientWidth; fill()) {
      const left = spare.pop();
      kept = kept.filter(column => column !== left);
    }
    toggle.hidden = !all && kept.length === columns.length;
    toggle.textContent = all ? "fewer columns" : `${columns.length - kept.length} more columns`;
  };
  return {fit, content: [holder, element("div", {class: "tools"}, toggle)]};
}
const section = (title, ...content) => element("section", {}, element("h2", {}, title), ...content);

