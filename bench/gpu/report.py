"""The report of bench/gpu/run.py."""
import datetime
import json
import re


def row(workload, measure, peer, dtrain, value, must, reason, at_most=False):
    """Returns a row of the report. `value` is a ratio or a share; `must` is its minimum or, if `at_most` is true,
    its maximum. Values that could not be measured are None, and `reason` says why."""
    met = None if must is None or value is None else (value <= must if at_most else value >= must)
    return {"workload": workload, "measure": measure, "peer": peer, "dtrain": dtrain, "value": value, "must": must,
            "at_most": at_most, "met": met, "reason": reason}


def checks(result):
    """Yields (precision, loss comparison) for every loss comparison in a workload's result."""
    for one in result.get("precisions", {"": result}).values():
        if "losses" in one:
            yield one["precision"], one["losses"]


def complete(measured):
    """Returns true if everything was measured and all losses agreed."""
    return all("error" not in result and all(row["value"] is not None for row in result["rows"])
               and all(losses.get("agree") for _, losses in checks(result)) for result in measured.values())


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def goal(row):
    if row["must"] is None:
        return "-"
    return ("at most " if row["at_most"] else "at least ") + f"{row['must']:g}"


def table(measured):
    lines = ["| workload | measure | PyTorch | dtrain | ratio or share | must | met |", "|" + "---|" * 7]
    for result in measured.values():
        for r in result["rows"]:
            met = {True: "yes", False: "NO", None: "-"}[r["met"]]
            value = "not measured" if r["value"] is None else number(r["value"])
            lines.append(f"| {r['workload']} | {r['measure']} | {number(r['peer'])} | {number(r['dtrain'])} | {value} | {goal(r)} | {met} |")
    return lines


def missing(measured, order):
    lines = [f"- {name}: not requested" for name in order if name not in measured]
    for name, result in measured.items():
        if "error" in result:
            lines.append(f"- {name}: {result['error']}")
        for r in result["rows"]:
            if r["value"] is None:
                lines.append(f"- {r['workload']}, {r['measure']}: {r['reason']}")
        for precision, losses in checks(result):
            if "error" in losses:
                lines.append(f"- {name}, {precision}, whether the losses agree: {losses['error']}")
    return lines


def agreement(measured):
    lines = []
    for name, result in measured.items():
        for precision, losses in checks(result):
            if "error" not in losses:
                verdict = "agree" if losses["agree"] else "DO NOT AGREE"
                lines.append(f"- {name}, {precision}: the first {losses['steps']} losses {verdict}: they differ by at most "
                             f"{losses['difference']:.1e}; {losses['tolerance']:g} is allowed")
    return lines


def operations(measured):
    lines = []
    for result in measured.values():
        for one in (result, *result.get("precisions", {}).values()):
            for r in {**one.get("operations", {}), **one.get("products", {})}.values():
                lines.append(f"| {r['name']} | {r['seconds'] * 1e6:,.1f} | {number(r.get('gigabytes_per_second'))} | "
                             f"{number(r.get('teraflops'))} |")
    return ["| operation of dtrain, alone | microseconds | GB/s | TFLOP/s |", "|" + "---|" * 4, *lines] if lines else []


def versions(found):
    torch, dtrain = found.get("torch", {}), found["dtrain"]
    parts = [f"driver {dtrain.get('driver') or 'unknown'}", f"PyTorch {torch.get('torch', 'not run')} (CUDA {torch.get('cuda')}, cuDNN {torch.get('cudnn')})"]
    parts.append("dtrain with " + ", ".join(f"{name} {dtrain.get(key) or 'unknown'}" for name, key in (
        ("CUDA", "cuda_runtime"), ("cuBLASLt", "cublaslt"), ("cuDNN", "cudnn"), ("NCCL", "nccl"))))
    return "; ".join(parts)


def write(directory, found, measured, order):
    """Writes the report's .md and .json files, and keeps the results of other workloads of the same day. Returns the
    text of the report."""
    gpu = found["gpu"]
    today = datetime.date.today().isoformat()
    stem = directory / f"{today}-{re.sub('[^a-z0-9]+', '-', gpu.lower().replace('nvidia', '')).strip('-')}"
    data = stem.with_name(stem.name + ".json")
    kept = json.loads(data.read_text())["workloads"] if data.exists() else {}
    kept.update(measured)
    kept = {name: kept[name] for name in order if name in kept}
    data.write_text(json.dumps({"date": today, "gpu": gpu, "versions": found, "workloads": kept}, indent=1) + "\n")
    times = ", ".join(f"{name} {result['at'][11:16]}" for name, result in kept.items())
    sections = [[f"# dtrain beside PyTorch, {gpu}, {today}"], [f"{versions(found)}. Measured at: {times}. `bench/gpu/run.py` repeats it."],
                table(kept), agreement(kept), operations(kept)]
    not_measured = missing(kept, order)
    if not_measured:
        sections.append(["Not measured:", "", *not_measured])
    text = "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"
    stem.with_name(stem.name + ".md").write_text(text)
    return text
