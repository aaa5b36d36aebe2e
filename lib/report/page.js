// The content of the page for one or several runs.
// ---- one run

const stateClass = run => run.state === "finished" ? "good" : ["failed", "stopped"].includes(run.state) ? "bad" : "";
const kNoMetrics = ["epoch", "step", "learning_rate", "seconds", "samples_per_second"];
const card = (value, label) => element("div", {class: "card"}, element("b", {}, value), element("span", {}, label));
const cardsOf = made => element("div", {class: "cards"}, ...made);
const metricCards = numbers => cardsOf(Object.entries(numbers).filter(([name, value]) => isNumber(value) && !kNoMetrics.includes(name)).map(([name, value]) => card(number(value), plain(name))));
const bestWords = run => `best epoch ${number(run.kept_best.epoch)}, by ${plain(run.kept_best.monitor)}`;
function cards(run) {
  const made = [], best = run.kept_best && run.kept_best.epoch !== run.epochs ? run.kept_best : null;
  if (best) made.push(element("h3", {}, `The ${bestWords(run)}`), metricCards(run.at_best));
  if (run.epochs) made.push(element("h3", {}, `The latest epoch, ${number(run.epochs)}` + (run.kept_best && !best ? ": the best so far" : "")), metricCards(run.last));
  const facts = [];
  if (run.best && !run.kept_best) facts.push(card(number(run.best.value), `best ${plain(run.best.monitor)}, epoch ${number(run.best.epoch)}`));
  facts.push(card(number(run.epochs) + (run.epochs_configured ? " of " + number(run.epochs_configured) : ""), "epochs"), card(number(run.step), "steps"));
  if (run.parameters) facts.push(card(number(run.parameters), "parameters"));
  facts.push(card(duration(run.seconds), "training and validation"));
  if (run.last.samples_per_second) facts.push(card(speed(run.last.samples_per_second), "samples per second"));
  return element("div", {}, ...made, element("h3", {}, "The run"), cardsOf(facts));
}

function classTables(run) {
  const made = [];
  const label = (names, index) => names && names[index] !== undefined ? names[index] : String(index);
  const named = (name, count) => { const names = run.classes[name]; return names && names.length === count ? names : null; };
  const lists = new Map();  // metrics with a value for each class, grouped by their classes
  for (const [name, value] of Object.entries(run.tables)) {
    if (value.classes) made.push(...largeMatrixTables(name, value, named(name, value.classes.length), label));
    if (!Array.isArray(value) || !value.length) continue;
    if (Array.isArray(value[0])) made.push(...matrixTables(name, value, named(name, value.length), label));
    else if (value.every(each => typeof each !== "object")) {
      const names = named(name, value.length), key = JSON.stringify(names || value.length);
      if (!lists.has(key)) lists.set(key, {names, count: value.length, metrics: []});
      lists.get(key).metrics.push([name, value]);
    }
  }
  for (const {names, count, metrics} of lists.values()) {
    made.unshift(element("h3", {}, "By class"), table([{title: "class", of: row => label(names, row)},
      ...metrics.map(([name, values]) => ({title: plain(name), number: true, of: row => values[row]}))], [...Array(count).keys()], true));
  }
  if (made.length && run.tables_epoch) made.unshift(element("p", {class: "soft"}, `At epoch ${number(run.tables_epoch)}${run.kept_best && run.kept_best.epoch === run.tables_epoch ? ", the best one" : ""}.`));
  return made;
}
/// Shows a confusion matrix; its rows are true classes, its columns predicted classes.
function matrixTables(name, matrix, names, label) {
  const size = matrix.length, sum = list => list.reduce((a, b) => a + b, 0);
  if (matrix.some(row => row.length !== size)) return [];
  const rows = matrix.map(sum), columns = matrix.map((_, j) => sum(matrix.map(row => row[j])));
  const head = element("tr", {}, element("th", {}, "true \\ predicted"), ...matrix.map((_, j) => element("th", {scope: "col"}, label(names, j))));
  const body = matrix.map((row, i) => element("tr", {}, element("th", {scope: "row"}, label(names, i)), ...row.map((count, j) => {
    const share = rows[i] > 0 ? count / rows[i] : 0;
    return element("td", {title: `${label(names, i)} predicted as ${label(names, j)}: ${number(count)} (${(share * 100).toFixed(1)} %)`,
      style: {background: count ? `color-mix(in srgb, var(${i === j ? "--s2" : "--s1"}) ${Math.round(8 + share * 62)}%, transparent)` : ""}}, count ? number(count) : "");
  })));
  return [element("h3", {}, plain(name)), element("div", {class: "scroll"}, element("table", {class: "matrix"}, element("thead", {}, head), element("tbody", {}, ...body))),
    ...measuresByClass(name, matrix.map((row, i) => [rows[i], columns[i], row[i]]), names, label)];
}
/// Shows the summary that parse_tables() makes of a confusion matrix with many classes.
function largeMatrixTables(name, {classes, confusions}, names, label) {
  const share = row => row[2] / classes[row[0]][0];
  return [element("h3", {}, plain(name) + ": the most frequent confusions"),
    table([{title: "true", of: row => label(names, row[0])}, {title: "predicted", of: row => label(names, row[1])}, {title: "samples", number: true, of: row => row[2]},
      {title: "share of the class", number: true, of: share, text: value => (100 * value).toFixed(1) + " %"}], confusions, true),
    ...measuresByClass(name, classes, names, label)];
}
/// Shows precision, recall and F1 score by class. `classes` has [true rows, predicted rows, correct rows] for
/// each class.
function measuresByClass(name, classes, names, label) {
  const measures = classes.map(([support, predicted, hit], i) => {
    const precision = predicted ? hit / predicted : 0, recall = support ? hit / support : 0;
    return {i, precision, recall, f1: precision + recall ? 2 * precision * recall / (precision + recall) : 0, support};
  });
  const measure = (title, key) => ({title, number: true, of: row => row[key]});
  return [element("h3", {}, "By class, from " + plain(name)),
    table([{title: "class", of: row => label(names, row.i)}, measure("precision", "precision"), measure("recall", "recall"), measure("f1 score", "f1"), measure("samples", "support")], measures, true)];
}

/// Shows images with their targets and predictions.
function pictures(samples) {
  const text = value => isNumber(value) ? number(value) : value === undefined ? "" : String(value);
  const said = ({output, target, prediction}) => element("div", {}, output ? output + ": " : "", text(prediction),
    prediction === target ? "" : element("span", {class: typeof prediction === "string" || Number.isInteger(target) ? "bad" : "soft"}, ` (${text(target)})`));
  return element("div", {class: "pictures"}, ...samples.map(sample => element("figure", {title: sample.id},
    ...sample.pictures.map(picture => element("img", {src: picture, alt: sample.id})),
    ...sample.outputs.filter(output => output.target !== undefined).map(said), element("div", {class: "soft"}, "loss " + number(sample.loss)))));
}
function samplesOf(run) {
  const {split, of, samples, worst, epoch} = run.samples;
  return [element("p", {class: "soft"}, `From the ${split === "train" ? "training" : split} split, with the weights of epoch ${number(epoch)}: the prediction, and in brackets the target if it differs.`),
    pictures(samples), element("h3", {}, `The largest losses of ${number(of)} samples`), pictures(worst)];
}

function layerTable(run) {
  const total = run.layers.reduce((a, row) => a + row.parameters, 0);
  return table([
    {title: "layer", of: row => row.name}, {title: "kind", of: row => row.kind}, {title: "output", of: row => row.output},
    {title: "parameters", number: true, of: row => row.parameters, text: value => value ? number(value) : ""},
    {title: "share", number: true, of: row => row.parameters, text: value => value && total ? (100 * value / total).toFixed(1) + " %" : ""},
    {title: "", of: row => row.trainable ? "" : "frozen"}], run.layers, true);
}
function memoryTable(run) {
  const part = (title, key) => ({title, number: true, of: row => row[key], text: value => value ? bytes(value) : ""});
  const slots = run.memory.some(row => row.slot) ? [{title: "slot", number: true, of: row => row.slot}] : [];
  return table([{title: "replica", number: true, of: row => row.replica}, ...slots, {title: "device", of: row => row.device}, {title: "threads", number: true, of: row => row.threads},
    {title: "samples per step", number: true, of: row => row.share}, part("parameters", "parameters"), part("optimizer", "slots"), part("gradients", "gradients"),
    part("activations", "activations"), part("staging", "staging"), part("data", "data"), part("metrics", "metrics"), part("total", "total")], run.memory, true);
}
function timeShares(run) {
  const spent = run.time, kinds = [["waiting", "waiting for samples to be read and decoded"], ["copying", "reading and copying batches to the devices"],
    ["computing", "computing, forward and backward"], ["updating", "summing gradients, and the optimizer"], ["validating", "validating"], ["saving", "waiting for checkpoints"]];
  const rest = Math.max(0, spent.total - kinds.reduce((sum, [key]) => sum + spent[key], 0));
  const parts = [...kinds.map(([key, text], index) => ({text, seconds: spent[key], index})), {text: "everything else", seconds: rest, index: 7}];
  return [element("div", {class: "shares", role: "img", "aria-label": "shares of the time"}, ...parts.filter(part => part.seconds > 0).map(part =>
    element("div", {title: `${part.text}: ${duration(part.seconds)}`, style: {flex: `${100 * part.seconds / spent.total} 0 0`, background: color(part.index)}}))),
    table([{title: "", of: part => part.text, wrap: true, show: part => { const made = document.createDocumentFragment(); made.append(element("span", {class: "swatch", style: {borderTopColor: color(part.index), borderTopWidth: "9px"}}), part.text); return made; }},
      {title: "time", number: true, of: part => part.seconds, text: duration},
      {title: "share", number: true, of: part => part.seconds, text: value => spent.total ? (100 * value / spent.total).toFixed(1) + " %" : ""}], parts),
    element("p", {class: "soft"}, "For the last process, measured on its main training thread. On GPUs, the parameter update counts as computing. " +
      "Reading and decoding run in parallel with the steps; only the time that steps waited for them is shown here."), ...readingShares(spent.reading)];
}
function readingShares(spent) {
  const kinds = [["files", "reading files"], ["decoding", "decoding images"], ["rest", "transforms, augmentation, copying"]];
  const total = spent ? kinds.reduce((sum, [key]) => sum + spent[key], 0) : 0;
  if (!(total > 0)) return [];
  return [element("p", {}, `Reading threads were busy for ${duration(total)} in total: ` +
    kinds.filter(([key]) => spent[key] > 0).map(([key, text]) => `${text} ${duration(spent[key])} (${(100 * spent[key] / total).toFixed(1)} %)`).join(", ") + ".")];
}
function history(run) {
  return table([{title: "when", of: row => moment(row.time)}, {title: "what", of: row => row.event, text: value => value === "fit" ? "started" : value === "resume" ? "resumed" : value === "end" ? "ended" : String(value)},
    {title: "epoch", number: true, of: row => row.epoch}, {title: "step", number: true, of: row => row.step},
    {title: "how", wrap: true, of: row => row.how || (row.command || []).join(" ")},
    {title: "machine", of: row => row.machine || ""}, {title: "dtrain", of: row => row.version || ""}], run.events);
}
function details(run) {
  const made = [], add = (title, ...content) => made.push(several ? element("div", {}, element("h3", {}, title), ...content) : section(title, ...content));
  const classes = classTables(run);
  if (classes.length) add("Classes", ...classes);
  if (run.samples) add("Samples", ...samplesOf(run));
  if (run.time) add("Where the time went", ...timeShares(run));
  if (run.layers.length) add("Layers", layerTable(run));
  if (run.memory.length) add("Devices and memory", memoryTable(run), ...(run.machine ? [element("p", {class: "soft"}, run.machine)] : []));
  if (run.events.length) add("History", history(run));
  add("Configuration", element("div", {class: "scroll", style: {padding: "10px 12px"}}, element("pre", {}, run.config)));
  return made;
}
function line(run) {
  const parts = [run.state + (run.how && run.how !== "done" ? ": " + run.how : "")];
  if (run.kept_best) parts.push(`${bestWords(run)}: ${number(run.kept_best.value)}`);
  if (run.began) parts.push("started " + moment(run.began));
  if (run.devices.length) parts.push("on " + [...new Set(run.devices)].join(", "));
  return parts.join("; ");
}

// ---- several runs

/// Returns the value of a metric at the best epoch if the run keeps its best checkpoint. Otherwise returns the
/// best value of the metric.
function shownValue(run, group) {
  const name = seriesIn(run, group);
  return name === undefined ? undefined : run.kept_best ? run.at_best[name] : run.bests[name];
}
function comparison() {
  const groups = [...metricGroups().keys()].filter(group => !kNoMetrics.includes(group));
  // The metrics that determine the best epochs come first, and then the other validation metrics.
  const monitors = runs.flatMap(run => run.kept_best ? [groupOf(run, run.kept_best.monitor)] : []);
  const rank = group => monitors.includes(group) ? 0 : group.startsWith("val_") ? 1 : 2;
  groups.sort((a, b) => rank(a) - rank(b));
  const titles = metricGroups();
  const smaller = group => ![...titles.get(group)].some(name => data.larger_is_better.includes(name));
  const extreme = group => {
    const all = runs.map(run => shownValue(run, group)).filter(isNumber);
    return all.length > 1 ? (smaller(group) ? Math.min(...all) : Math.max(...all)) : null;
  };
  const rows = runs.map((run, index) => ({run, index}));
  const kept = runs.some(run => run.kept_best);
  const made = fittedTable([
    {title: "run", wrap: true, of: row => row.run.name, show: row => { const made = document.createDocumentFragment(); made.append(element("span", {class: "swatch", style: {borderTopColor: color(row.index), borderTopStyle: row.index >= 10 ? "dashed" : "solid"}}), row.run.name); return made; }},
    ...variedColumns(runs.map(run => run.varied), row => row.run.varied),
    {title: "state", of: row => row.run.state, spare: 2}, {title: "epochs", number: true, of: row => row.run.epochs, spare: 3},
    ...(kept ? [{title: "best epoch", number: true, of: row => row.run.kept_best ? row.run.kept_best.epoch : null, spare: 1}] : []),
    ...groups.map((group, place) => {
      const top = extreme(group), twin = groups.includes("val_" + group);
      return {title: (kept ? "" : "best ") + [...titles.get(group)].map(plain).join(", "), number: true, of: row => shownValue(row.run, group),
        best: row => top !== null && shownValue(row.run, group) === top, spare: place === 0 ? 0 : (twin ? 100 : 10) + place};
    }),
    {title: "parameters", number: true, of: row => row.run.parameters, spare: 6}, {title: "time", number: true, of: row => row.run.seconds, text: duration, spare: 5},
    {title: "samples/s", number: true, of: row => row.run.last.samples_per_second, text: value => isNumber(value) ? speed(value) : "", spare: 91},
    {title: "started", of: row => row.run.began, text: moment, spare: 90}], rows);
  charts.push({draw: made.fit});
  return section("Runs", ...made.content, ...(kept ? [element("p", {class: "soft"}, "Metrics are from the best epoch of each run that keeps its best checkpoint" +
    (runs.every(run => run.kept_best) ? "." : "; for the other runs, each metric is its best value over all epochs."))] : []));
}
function differences() {
  const title = "Differences between the configurations";
  if (!data.differences.length) return section(title, element("p", {}, "None."));
  return section(title, table([{title: "key", wrap: true, of: row => row.key},
    ...runs.map((run, index) => ({title: run.name, wrap: true, of: row => row.values[index], text: value => value === null ? "\u2013" : value}))], data.differences));
}

// ---- sweeps

/// Makes a column for each key that sweeps vary. `of` returns the values of a row.
function variedColumns(all, of) {
  const keys = [...new Set(all.flatMap(values => Object.keys(values)))];
  return keys.map(key => ({title: data.varied[key], wrap: true, of: row => of(row)[key], text: value => value === undefined ? "" : String(value)}));
}
function settings(sweep) {
  const rows = sweep.settings, failed = rows.some(row => row.failed);
  return section(`Settings in ${sweep.folder}`, table([
    ...variedColumns(rows.map(row => row.values), row => row.values),
    {title: "finished", of: row => `${row.finished} of ${row.runs}`}, {title: `best ${plain(rows[0].monitor)}, mean`, number: true, of: row => row.mean},
    {title: "deviation", number: true, of: row => row.deviation}, ...(failed ? [{title: "failed", wrap: true, of: row => row.failed ? `${row.failed}: ${row.note}` : ""}] : [])],
    rows, true));
}

// ---- the page

main.replaceChildren();
if (several) {
  main.style.maxWidth = "1600px";
  document.title = runs.map(run => run.name).join(", ");
  main.append(element("h1", {}, `${runs.length} runs`), comparison(), ...data.sweeps.map(settings), curves(), ...areas(), differences(), element("h2", {}, "Each run"),
    ...runs.map(run => {
      const made = element("details", {}, element("summary", {}, run.name), element("p", {class: "soft"}, line(run)));
      // Creates the content on first use.
      made.fill = () => { if (made.children.length === 2) made.append(cards(run), ...details(run)); };
      made.addEventListener("toggle", () => { if (made.open) made.fill(); });
      return made;
    }));
} else {
  const run = runs[0];
  document.title = run.name;
  main.append(element("h1", {}, run.name), element("p", {class: stateClass(run)}, line(run)), cards(run), curves(), ...areas(), ...details(run));
}
main.append(element("footer", {}, `Generated by ${data.program}, ${moment(data.made)}.`));
/// Width of a chart on a printed page. A printed page is narrower than the screen, and has two charts side by
/// side.
const kPrintedWidth = 320;
addEventListener("beforeprint", () => { document.querySelectorAll("details").forEach(each => { each.fill(); each.open = true; }); charts.forEach(each => each.draw(kPrintedWidth)); });
addEventListener("afterprint", redraw);
let width = innerWidth;
addEventListener("resize", () => { if (width !== innerWidth) { width = innerWidth; redraw(); } });
charts.forEach(each => each.draw());
