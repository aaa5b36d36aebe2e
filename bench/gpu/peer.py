"""Measures PyTorch on a GPU, with the same data and the same initial weights as dtrain.

    peer.py WORKLOAD DATA_DIRECTORY WEIGHTS --batch N --precision float32|tf32|bf16
            --modes eager,graph,compile,products,adam

Prints one JSON line. For each mode, it has the figures or an "error". With --losses N, it also has the losses of N
steps, which read the samples in the order of the file. PyTorch runs in its fastest setup: all data is on the device in
the format of the model, the optimizer is one kernel, and the loss stays on the device. The script needs only torch.
"""
import argparse
import contextlib
import json
import mmap
import pathlib
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import torch_peer  # noqa: E402
from resnet50 import resnet50  # noqa: E402


def npy(path, dtype):
    """Reads an array written by bench/gpu/run.py."""
    with open(path, "rb") as file:
        header = file.read(128).decode("latin-1")
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    extents = header[header.index("(") + 1 : header.index(")")]
    shape = [int(extent) for extent in extents.split(",") if extent.strip()]
    return torch.frombuffer(content, dtype=dtype, offset=128).reshape(shape)


def exported_weights(manifest):
    """Reads the output of `gpu_bench weights`: a description and the arrays in a file next to it."""
    path = pathlib.Path(manifest)
    values = torch.frombuffer(bytearray(path.with_suffix(".bin").read_bytes()), dtype=torch.float32)
    layers, first = [], 0
    for layer in json.loads(path.read_text())["layers"]:
        layers.append([])
        for array in layer["weights"]:
            size = torch.Size(array["shape"]).numel()
            layers[-1].append(values[first : first + size].reshape(array["shape"]))
            first += size
    return layers


def best_of_optimizers(kind, parameters, **options):
    """Creates the optimizer in its fastest variant. This is the variant that is fused into one kernel, if this
    version of PyTorch supports it on this device."""
    for extra in ({"fused": True}, {"foreach": True}):
        try:
            return kind(parameters, **options, **extra), next(iter(extra))
        except (TypeError, RuntimeError):
            pass
    return kind(parameters, **options), "plain"


class Training:
    """A model with its data on the device; every mode starts from the initial weights."""

    def __init__(self, arguments, capturable=False):
        self.workload, self.batch = arguments.workload, arguments.batch
        self.device = torch.device(arguments.device)
        self.bf16 = arguments.precision == "bf16"
        torch.set_float32_matmul_precision("high" if arguments.precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = arguments.precision == "tf32"
        torch.backends.cudnn.benchmark = True
        self.model = resnet50() if self.workload == "resnet50" else torch_peer.MODELS[self.workload](True)
        torch_peer.give_weights(self.model, exported_weights(arguments.weights))
        self.read(pathlib.Path(arguments.data))
        # Keras adds Adam's epsilon to the root before the bias correction, and PyTorch adds it after the correction. A
        # negligible epsilon makes the losses comparable.
        if self.workload == "resnet50":
            self.optimizer, self.how = best_of_optimizers(torch.optim.SGD, list(self.model.parameters()), lr=0.01, momentum=0.9)
        else:
            self.optimizer, self.how = best_of_optimizers(
                torch.optim.Adam, list(self.model.parameters()), lr=1e-4 if self.workload == "wide-mlp" else 1e-3, eps=1e-30,
                **({"capturable": True} if capturable else {}))

    def read(self, data):
        stored = npy(data / "x.npy", torch.uint8)
        # Converts a few samples at a time, because all samples as float32 would need much memory.
        self.inputs = torch.cat([(piece.to(self.device).float() * 0.00392156862745098).to(
            torch.bfloat16 if self.bf16 else torch.float32) for piece in stored.split(4096)])
        self.targets = npy(data / "y.npy", torch.int32).to(self.device)
        self.model = self.model.to(self.device)
        if self.workload == "resnet50":
            self.inputs = self.inputs.permute(0, 3, 1, 2)  # memory layout is channels last
            self.model = self.model.to(memory_format=torch.channels_last)
        self.targets = self.targets.float().reshape(-1, 1) if self.workload == "wide-mlp" else self.targets.long()
        self.per_epoch = len(self.inputs) // self.batch
        self.order, self.step_in_epoch = None, 0

    def rows(self, shuffle=True):
        if self.order is None or self.step_in_epoch == self.per_epoch:
            samples = self.per_epoch * self.batch
            order = torch.randperm(samples, device=self.device) if shuffle else torch.arange(samples, device=self.device)
            self.order, self.step_in_epoch = order.reshape(self.per_epoch, self.batch), 0
        self.step_in_epoch += 1
        return self.order[self.step_in_epoch - 1]

    def loss(self, x, y):
        casts = torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False) if self.bf16 else contextlib.nullcontext()
        with casts:
            # Sigmoid and loss are fused, as in dtrain.
            prediction = (self.model[:-1] if self.workload == "wide-mlp" else self.model)(x)
        if self.workload == "wide-mlp":
            return F.binary_cross_entropy_with_logits(prediction.float(), y)
        return F.cross_entropy(prediction.float(), y)

    def learn(self, rows):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.inputs[rows], self.targets[rows])
        loss.backward()
        self.optimizer.step()
        return loss


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(work, arguments, window=None, warmup=3):
    """Measures the mean time of one call of work() in each of several windows, and returns the median of the
    windows."""
    device, window = torch.device(arguments.device), window or arguments.window

    def spent(count):
        start = time.perf_counter()
        for _ in range(count):
            work()
        synchronize(device)
        return time.perf_counter() - start

    for _ in range(warmup):
        work()
    synchronize(device)
    count, took = 1, spent(1)
    while took < window:
        count = max(count + 1, min(10 * count, int(1.1 * count * window / took)))
        took = spent(count)
    windows = sorted(spent(count) / count for _ in range(arguments.windows))
    return {"seconds": statistics.median(windows), "least": windows[0], "most": windows[-1]}


def losses(arguments):
    training = Training(arguments)
    return [training.learn(training.rows(shuffle=False)).item() for _ in range(arguments.losses)]


def eager(arguments):
    training = Training(arguments)
    result = seconds_of(lambda: training.learn(training.rows()), arguments, warmup=arguments.warmup)
    return dict(result, optimizer=training.how)


def compiled(arguments):
    training = Training(arguments)
    training.model = torch.compile(training.model)
    start = time.perf_counter()
    training.learn(training.rows())
    synchronize(training.device)
    took = time.perf_counter() - start
    result = seconds_of(lambda: training.learn(training.rows()), arguments, warmup=arguments.warmup)
    return dict(result, optimizer=training.how, compiling_seconds=took)


def graph(arguments):
    """Times a step that is captured as one CUDA graph. The graph also gathers the samples of the batch; only the
    indices of the rows are written outside of it."""
    training = Training(arguments, capturable=True)
    rows = training.rows().clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            training.learn(rows)
    torch.cuda.current_stream().wait_stream(side)
    training.optimizer.zero_grad(set_to_none=True)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        training.learn(rows)

    def step():
        rows.copy_(training.rows())
        captured.replay()

    return dict(seconds_of(step, arguments, warmup=arguments.warmup), optimizer=training.how)


def products(arguments):
    """Times only the matrix products of wide-mlp's step, with cuBLAS."""
    device = torch.device(arguments.device)
    torch.set_float32_matmul_precision("high" if arguments.precision == "tf32" else "highest")
    dtype = torch.bfloat16 if arguments.precision == "bf16" else torch.float32

    def numbers(*shape):
        return torch.rand(shape, device=device, dtype=torch.float32).mul_(2).sub_(1).to(dtype)

    work, each = [], []
    linears = [module for module in torch_peer.MODELS["wide-mlp"](True) if isinstance(module, nn.Linear)]
    for index, linear in enumerate(linears):
        x, w = numbers(arguments.batch, linear.in_features), numbers(linear.in_features, linear.out_features)
        dy = numbers(arguments.batch, linear.out_features)
        kinds = [("forward", x, w), ("by kernel", x.T, dy)] + ([("by input", dy, w.T)] if index else [])
        for kind, a, b in kinds:
            out = torch.empty(a.shape[0], b.shape[1], device=device, dtype=dtype)
            work.append(lambda a=a, b=b, out=out: torch.mm(a, b, out=out))
            each.append({"name": f"dense_{index + 1} {kind}", "operations": 2 * a.shape[0] * a.shape[1] * b.shape[1]})
    for product, one in zip(work, each):
        one.update(seconds_of(product, arguments, arguments.window / 8))
    result = seconds_of(lambda: [product() for product in work], arguments)
    return dict(result, operations=sum(one["operations"] for one in each), products=each)


def adam(arguments):
    """Times Adam over as many parameters as wide-mlp has, and a copy of as many floats."""
    device, count = torch.device(arguments.device), arguments.parameters
    parameter = torch.zeros(count, device=device, requires_grad=True)
    parameter.grad = torch.rand(count, device=device)
    optimizer, how = best_of_optimizers(torch.optim.Adam, [parameter], lr=1e-4)
    result = seconds_of(optimizer.step, arguments)
    other = torch.empty_like(parameter)
    copied = seconds_of(lambda: other.copy_(parameter.grad), arguments)
    return dict(result, optimizer=how, parameters=count, bytes=28 * count, copy_seconds=copied["seconds"], copy_bytes=8 * count)


MODES = {"eager": eager, "graph": graph, "compile": compiled, "products": products, "adam": adam, "losses": losses}


def attempt(mode, arguments):
    try:
        return MODES[mode](arguments)
    except Exception as error:  # if a mode fails, the other modes are still measured
        return {"error": f"{type(error).__name__}: {str(error).strip()[:400]}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload")
    parser.add_argument("data", nargs="?")
    parser.add_argument("weights", nargs="?")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32", "bf16"))
    parser.add_argument("--modes", default="eager")
    parser.add_argument("--losses", type=int, default=0)
    parser.add_argument("--parameters", type=int, default=41157101)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--window", type=float, default=0.25)
    parser.add_argument("--windows", type=int, default=9)
    parser.add_argument("--warmup", type=int, default=10)
    arguments = parser.parse_args()
    modes = arguments.modes.split(",") + (["losses"] if arguments.losses else [])
    result = {mode: attempt(mode, arguments) for mode in modes}
    result["versions"] = {"torch": torch.__version__, "cuda": torch.version.cuda,
                          "cudnn": torch.backends.cudnn.version() if torch.cuda.is_available() else None}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
