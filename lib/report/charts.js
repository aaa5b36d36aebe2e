// Curve charts.
function niceTicks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(size => size >= rough * 0.999) || 10 * power;
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9; tick += step) ticks.push(+tick.toPrecision(12));
  return ticks;
}
function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
    for (const factor of high / low > 1e4 ? [1] : [1, 2, 5]) {
      const tick = factor * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  return ticks.length > 1 ? ticks : [low, high];
}

const hidden = new Set();  // indices of runs
let singled = null;        // index of the run that the mouse points at in the legend
let logarithmic = false;
const charts = [];

/// Returns the group of a run's series. The same metric may have two names, e.g. `accuracy` and its full name.
/// Both names are in the same group.
function groupOf(run, name) {
  const validation = name.startsWith("val_") && !run.computes[name], base = validation ? name.slice(4) : name;
  return (validation ? "val_" : "") + (run.computes[base] || base);
}
/// Returns the name of a run's series in a group.
const seriesIn = (run, group) => Object.keys(run.series).find(name => groupOf(run, name) === group);
/// Returns the groups of all runs, each with its names.
function metricGroups() {
  const groups = new Map();
  for (const run of runs) for (const name of Object.keys(run.series)) {
    const group = groupOf(run, name);
    if (!groups.has(group)) groups.set(group, new Set());
    groups.get(group).add(name);
  }
  return groups;
}

/// Makes a chart of `lines`: [{run, label, epochs, values, thin}]. `axis`: label of the horizontal axis, if it
/// does not show epochs. In this case, both axes go from 0 to 1.
function chart(title, lines, unit, axis) {
  const holder = element("div"), value = element("span", {class: "value"});
  const caption = element("figcaption", {}, element("span", {}, title));
  if (several ? lines.some(line => line.thin) : lines.length > 1)
    for (const kind of several ? [false, true] : lines) {
      const line = several ? {label: kind ? "training" : "validation", thin: kind} : kind;
      caption.append(element("span", {class: "key"}, element("span", {class: "swatch", style: {
        borderTopColor: several ? "var(--soft)" : color(line.color),
        borderTopStyle: several && line.thin ? "dotted" : "solid"}}), line.label));
    }
  caption.append(value);
  const draw = width => drawChart(holder, width ?? holder.clientWidth, value, lines.filter(line => !hidden.has(line.run)), unit, axis);
  charts.push({holder, draw});
  return element("figure", {}, caption, holder);
}

/// Returns the scales of a chart of this width.
function scalesOf(width, lines, axis) {
  const height = Math.round(Math.min(260, Math.max(170, width * 0.52)));
  const left = 52, right = 10, top = 10, bottom = 24;
  const finite = lines.flatMap(line => line.values.filter(isNumber));
  let least = Infinity, most = -Infinity, first = Infinity, last = -Infinity;
  for (const each of finite) { least = Math.min(least, each); most = Math.max(most, each); }
  for (const line of lines) { first = Math.min(first, line.epochs[0]); last = Math.max(last, line.epochs.at(-1)); }
  const scales = {width, height, left, right, top, bottom, empty: !finite.length};
  if (axis && finite.length) { least = first = 0; most = last = 1; }
  const logs = logarithmic && !axis && least > 0;
  if (least === most) { const room = Math.abs(least) * 0.1 || 0.5; least -= logs ? 0 : room; most += room; }
  if (logs && least <= 0) least = most / 10;
  if (first === last) { first -= 0.5; last += 0.5; }
  const place = logs ? v => (Math.log(v) - Math.log(least)) / (Math.log(most) - Math.log(least)) : v => (v - least) / (most - least);
  return Object.assign(scales, {logs, least, most, first, last,
    x: epoch => left + (epoch - first) / (last - first) * (width - left - right),
    y: v => height - bottom - place(v) * (height - top - bottom),
    epochAt: at => first + (at - left) / (width - left - right) * (last - first)});
}

function drawAxes(svg, {width, height, left, right, logs, least, most, first, last, x, y}, axis) {
  for (const tick of logs ? logTicks(least, most) : niceTicks(least, most, height / 36)) {
    svg.append(drawn("line", {x1: left, x2: width - right, y1: y(tick), y2: y(tick), stroke: "var(--line)"}));
    svg.append(drawn("text", {x: left - 6, y: y(tick) + 4, "text-anchor": "end"}, shortNumber(tick)));
  }
  for (const tick of niceTicks(first, last, Math.min(width / 70, 12)).filter(tick => axis || Number.isInteger(tick)))
    svg.append(drawn("text", {x: x(tick), y: height - 7, "text-anchor": "middle"}, shortNumber(tick)));
}

function drawLine(svg, line, {x, y}) {
  let path = "", gap = true;
  line.values.forEach((each, i) => {
    if (!isNumber(each)) { gap = true; return; }
    path += (gap ? "M" : "L") + x(line.epochs[i]).toFixed(1) + " " + y(each).toFixed(1);
    // A single point without neighbors would not be visible as a line.
    if (gap && !isNumber(line.values[i + 1]))
      svg.append(drawn("circle", {cx: x(line.epochs[i]), cy: y(each), r: 3.5, fill: color(line.color)}));
    gap = false;
  });
  const attributes = {d: path, fill: "none", stroke: color(line.color), "stroke-width": line.thin ? 1.1 : runs.length > 6 && singled !== line.run ? 1.4 : 2,
    opacity: singled !== null && singled !== line.run ? 0.12 : 1,
    "stroke-linejoin": "round", "stroke-linecap": "round"};
  if (several && line.thin) attributes["stroke-dasharray"] = "2 3"; else if (dashes(line.color)) attributes["stroke-dasharray"] = dashes(line.color);
  svg.append(drawn("path", attributes));
}

/// Marks the best epoch of each run that keeps its best checkpoint. The mark is a ring on each curve. If there
/// is only one run, there is also a vertical line.
function markBest(svg, lines, {top, height, bottom, x, y}) {
  for (const line of lines) {
    const best = runs[line.run].kept_best;
    if (!best || (several && line.thin)) continue;
    // The curve may have been thinned, so the nearest point is used.
    let at = 0;
    line.epochs.forEach((epoch, i) => { if (Math.abs(epoch - best.epoch) < Math.abs(line.epochs[at] - best.epoch)) at = i; });
    if (!isNumber(line.values[at])) continue;
    if (!several && line === lines[0])
      svg.append(drawn("line", {class: "best", x1: x(best.epoch), x2: x(best.epoch), y1: top, y2: height - bottom, stroke: "var(--good)", "stroke-dasharray": "4 3"}));
    svg.append(drawn("circle", {class: "best", cx: x(line.epochs[at]), cy: y(line.values[at]), r: 4.5, fill: "var(--panel)", stroke: color(line.color), "stroke-width": 2}));
  }
}

/// Shows the values at the epoch nearest to the pointer.
function followPointer(svg, value, lines, unit, axis, {width, height, top, bottom, x, epochAt}) {
  const cursor = drawn("line", {y1: top, y2: height - bottom, stroke: "var(--soft)", "stroke-dasharray": "3 3", visibility: "hidden"});
  svg.append(cursor);
  svg.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); value.textContent = ""; });
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), at = epochAt((event.clientX - box.left) * width / box.width);
    const found = [];
    let epoch = null;
    for (const line of lines) {
      let best = 0;
      for (let i = 1; i < line.epochs.length; ++i) if (Math.abs(line.epochs[i] - at) < Math.abs(line.epochs[best] - at)) best = i;
      if (epoch === null || Math.abs(line.epochs[best] - at) < Math.abs(epoch - at)) epoch = line.epochs[best];
      found.push({line, value: line.values[best], epoch: line.epochs[best]});
    }
    if (epoch === null) return;
    cursor.setAttribute("x1", x(epoch)); cursor.setAttribute("x2", x(epoch)); cursor.setAttribute("visibility", "visible");
    const here = found.filter(each => each.epoch === epoch && isNumber(each.value));
    const shown = here.slice(0, 3).map(each => (several ? runs[each.line.run].name + " " : here.length > 1 ? each.line.label + " " : "") + number(each.value) + (unit ? " " + unit : ""));
    value.textContent = `${axis || "epoch"} ${number(epoch)}: ` + shown.join(", ") + (here.length > 3 ? ", ..." : "");
  });
}

function drawChart(holder, space, value, lines, unit, axis) {
  const scales = scalesOf(Math.max(space, 200), lines, axis);
  const {width, height} = scales;
  const svg = drawn("svg", {viewBox: `0 0 ${width} ${height}`, height, role: "img"});
  holder.replaceChildren(svg);
  if (scales.empty) { svg.append(drawn("text", {x: scales.left, y: height / 2}, "nothing to show")); return; }
  drawAxes(svg, scales, axis);
  for (const line of lines) drawLine(svg, line, scales);
  if (!axis) markBest(svg, lines, scales);
  followPointer(svg, value, lines, unit, axis, scales);
}
function shortNumber(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e4 || size < 1e-3) {
    if (size >= 1e4 && size < 1e9 && value % 100 === 0) return size >= 1e6 ? value / 1e6 + "M" : value / 1e3 + "k";
    if (size >= 1e4 && size < 1e7 && Number.isInteger(value)) return value.toLocaleString("en-US");
    return (+value.toPrecision(6)).toExponential();
  }
  return String(+value.toPrecision(6));
}
let redrawing = 0;
function redraw() {
  cancelAnimationFrame(redrawing);
  redrawing = requestAnimationFrame(() => charts.forEach(each => each.draw()));
}

/// Makes the charts. Each shows the training and validation curves of one metric.
function curves() {
  const groups = metricGroups();
  const own = ["learning_rate", "seconds", "samples_per_second"];
  const bases = [...groups.keys()].filter(group => !own.includes(group) && !(group.startsWith("val_") && groups.has(group.slice(4))));
  const lines = (group, thin, label, shade) => runs.flatMap((run, index) => {
    const series = run.series[seriesIn(run, group)];
    return series && series.values.length ? [{run: index, label, thin, color: several ? index : shade, epochs: series.epochs, values: series.values}] : [];
  });
  const of = base => {
    const validation = lines("val_" + base, false, "validation", 1);
    return chart([...groups.get(base)].map(plain).join(", "), [...lines(base, several && validation.length > 0, "training", 0), ...validation]);
  };
  const made = bases.map(of);
  const titles = {learning_rate: "learning rate", seconds: "seconds per epoch", samples_per_second: "samples per second"};
  for (const name of own) if (groups.has(name)) made.push(chart(titles[name], lines(name, false, titles[name], 0), name === "seconds" ? "s" : ""));
  const toggle = element("button", {"aria-pressed": "false", onclick: () => {
    logarithmic = !logarithmic;
    toggle.setAttribute("aria-pressed", logarithmic);
    redraw();
  }}, "logarithmic");
  const legend = element("div", {class: "legend"});
  if (several) runs.forEach((run, index) => {
    const button = element("button", {"aria-pressed": "true", title: run.path, onclick: () => {
      hidden.has(index) ? hidden.delete(index) : hidden.add(index);
      button.setAttribute("aria-pressed", !hidden.has(index));
      redraw();
    }, onmouseenter: () => { singled = index; redraw(); }, onmouseleave: () => { singled = null; redraw(); }},
      element("span", {class: "swatch", style: {borderTopColor: color(index), borderTopStyle: index >= 10 ? "dashed" : "solid"}}), run.name);
    legend.append(button);
  });
  const marks = runs.some(run => run.kept_best) ? [element("p", {class: "soft"}, "A ring marks the best epoch.")] : [];
  return section("Curves", element("div", {class: "tools"}, toggle), legend, element("div", {class: "charts"}, ...made), ...marks);
}

/// Makes the ROC and precision-recall curves of binary outputs, from the counts of their auc metrics.
function areas() {
  const lines = {roc: [], pr: []};
  runs.forEach((run, index) => {
    const drawnBefore = new Set();  // curves that are already drawn: two auc metrics may have the same curve
    for (const [name, {true_positives: hits, false_positives: misses}] of Object.entries(run.tables)) {
      const validation = name.startsWith("val_");
      if (!hits || (several && !validation && run.tables["val_" + name]) || drawnBefore.has(validation + JSON.stringify([hits, misses]))) continue;
      drawnBefore.add(validation + JSON.stringify([hits, misses]));
      const line = {run: index, label: plain(name), color: several ? index : lines.roc.length};
      const all = hits.at(-1), others = misses.at(-1), precision = hits.map((hit, i) => hit / (hit + misses[i]));
      lines.roc.push({...line, epochs: [0, ...misses.map(miss => miss / others)], values: [0, ...hits.map(hit => hit / all)]});
      lines.pr.push({...line, epochs: [0, ...hits.map(hit => hit / all)], values: [precision[0], ...precision]});
    }
  });
  if (!lines.roc.length) return [];
  const shown = runs.filter(run => run.kept_best && run.kept_best.epoch === run.tables_epoch).length;
  return [section("ROC and precision-recall", element("div", {class: "charts"},
    chart("true positive rate over false positive rate", lines.roc, "", "rate"), chart("precision over recall", lines.pr, "", "recall")),
    element("p", {class: "soft"}, several ? "For the validation split if there is one" + (shown === runs.length ? ", at the best epoch." : ".") : `At epoch ${number(runs[0].tables_epoch)}${shown ? ", the best one" : ""}.`))];
}

