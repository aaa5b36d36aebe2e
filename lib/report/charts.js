// Curves.
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

const hidden = new Set();  // runs
let singled = null;        // the run that the legend points at
let logarithmic = false;
const charts = [];

/// lines: [{run, label, epochs, values, thin}]
function chart(title, lines, unit) {
  const holder = element("div"), value = element("span", {class: "value"});
  const caption = element("figcaption", {}, element("span", {}, title));
  if (several ? lines.some(line => line.thin) : lines.length > 1)
    for (const kind of several ? [false, true] : lines) {
      const line = several ? {label: kind ? "training" : "validation", thin: kind} : kind;
      caption.append(element("span", {class: "key"}, element("span", {class: "swatch", style: {
        borderTopColor: several ? "var(--soft)" : colour(line.colour),
        borderTopStyle: several && line.thin ? "dotted" : "solid"}}), line.label));
    }
  caption.append(value);
  const draw = width => drawChart(holder, width ?? holder.clientWidth, value, lines.filter(line => !hidden.has(line.run)), unit);
  charts.push({holder, draw});
  return element("figure", {}, caption, holder);
}

/// Where epochs and values are in a drawing that is so wide.
function scalesOf(width, lines) {
  const height = Math.round(Math.min(260, Math.max(170, width * 0.52)));
  const left = 52, right = 10, top = 10, bottom = 24;
  const finite = lines.flatMap(line => line.values.filter(isNumber));
  let least = Infinity, most = -Infinity, first = Infinity, last = -Infinity;
  for (const each of finite) { least = Math.min(least, each); most = Math.max(most, each); }
  for (const line of lines) { first = Math.min(first, line.epochs[0]); last = Math.max(last, line.epochs.at(-1)); }
  const scales = {width, height, left, right, top, bottom, empty: !finite.length};
  const logs = logarithmic && least > 0;
  if (least === most) { const room = Math.abs(least) * 0.1 || 0.5; least -= logs ? 0 : room; most += room; }
  if (logs && least <= 0) least = most / 10;
  if (first === last) { first -= 0.5; last += 0.5; }
  const place = logs ? v => (Math.log(v) - Math.log(least)) / (Math.log(most) - Math.log(least)) : v => (v - least) / (most - least);
  return Object.assign(scales, {logs, least, most, first, last,
    x: epoch => left + (epoch - first) / (last - first) * (width - left - right),
    y: v => height - bottom - place(v) * (height - top - bottom),
    epochAt: at => first + (at - left) / (width - left - right) * (last - first)});
}

function drawAxes(svg, {width, height, left, right, logs, least, most, first, last, x, y}) {
  for (const tick of logs ? logTicks(least, most) : niceTicks(least, most, height / 36)) {
    svg.append(drawn("line", {x1: left, x2: width - right, y1: y(tick), y2: y(tick), stroke: "var(--line)"}));
    svg.append(drawn("text", {x: left - 6, y: y(tick) + 4, "text-anchor": "end"}, shortNumber(tick)));
  }
  for (const tick of niceTicks(first, last, Math.min(width / 70, 12)).filter(Number.isInteger))
    svg.append(drawn("text", {x: x(tick), y: height - 7, "text-anchor": "middle"}, shortNumber(tick)));
}

function drawLine(svg, line, {x, y}) {
  let path = "", gap = true;
  line.values.forEach((each, i) => {
    if (!isNumber(each)) { gap = true; return; }
    path += (gap ? "M" : "L") + x(line.epochs[i]).toFixed(1) + " " + y(each).toFixed(1);
    // A point without neighbours is no line.
    if (gap && !isNumber(line.values[i + 1]))
      svg.append(drawn("circle", {cx: x(line.epochs[i]), cy: y(each), r: 3.5, fill: colour(line.colour)}));
    gap = false;
  });
  const attributes = {d: path, fill: "none", stroke: colour(line.colour), "stroke-width": line.thin ? 1.1 : runs.length > 6 && singled !== line.run ? 1.4 : 2,
    opacity: singled !== null && singled !== line.run ? 0.12 : 1,
    "stroke-linejoin": "round", "stroke-linecap": "round"};
  if (several && line.thin) attributes["stroke-dasharray"] = "2 3"; else if (dashes(line.colour)) attributes["stroke-dasharray"] = dashes(line.colour);
  svg.append(drawn("path", attributes));
}

/// Shows the values at the epoch that the pointer is nearest to.
function followPointer(svg, value, lines, unit, {width, height, top, bottom, x, epochAt}) {
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
    value.textContent = `epoch ${number(epoch)}: ` + shown.join(", ") + (here.length > 3 ? ", ..." : "");
  });
}

function drawChart(holder, space, value, lines, unit) {
  const scales = scalesOf(Math.max(space, 200), lines);
  const {width, height} = scales;
  const svg = drawn("svg", {viewBox: `0 0 ${width} ${height}`, height, role: "img"});
  holder.replaceChildren(svg);
  if (scales.empty) { svg.append(drawn("text", {x: scales.left, y: height / 2}, "nothing to show")); return; }
  drawAxes(svg, scales);
  for (const line of lines) drawLine(svg, line, scales);
  followPointer(svg, value, lines, unit, scales);
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

/// The charts of these names, training and validation of one metric in one.
function curves() {
  const names = [];
  for (const run of runs) for (const name of Object.keys(run.series)) if (!names.includes(name)) names.push(name);
  const own = ["learning_rate", "seconds", "samples_per_second"];
  const bases = names.filter(name => !own.includes(name) && !(name.startsWith("val_") && names.includes(name.slice(4))));
  const lines = (name, thin, label, shade) => runs.flatMap((run, index) => run.series[name] && run.series[name].values.length
    ? [{run: index, label, thin, colour: several ? index : shade, epochs: run.series[name].epochs, values: run.series[name].values}] : []);
  const of = base => {
    const validation = lines("val_" + base, false, "validation", 1);
    return chart(plain(base), [...lines(base, several && validation.length > 0, "training", 0), ...validation]);
  };
  const made = bases.map(of);
  const titles = {learning_rate: "learning rate", seconds: "seconds an epoch", samples_per_second: "samples a second"};
  for (const name of own) if (names.includes(name)) made.push(chart(titles[name], lines(name, false, titles[name], 0), name === "seconds" ? "s" : ""));
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
      element("span", {class: "swatch", style: {borderTopColor: colour(index), borderTopStyle: index >= 10 ? "dashed" : "solid"}}), run.name);
    legend.append(button);
  });
  return section("Curves", element("div", {class: "tools"}, toggle), legend, element("div", {class: "charts"}, ...made));
}

