"""PyTorch's training loop for one workload, with the same data and the same initial weights as dtrain.

    torch_peer.py WORKLOAD DATA_DIRECTORY CHECKPOINT THREADS BATCH STEPS

Prints one JSON line: the end time of every step, in seconds since the process started, and every step's loss. With --in-order
the samples are used in file order, otherwise in a random permutation. With --same-rules the optimizer omits the rules that
differ in Keras (weight decay, Adam's epsilon), and convolutions pad like Keras's.
"""
import json
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def seconds_since_process_start():
    with open("/proc/self/stat") as stat:
        started = int(stat.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    with open("/proc/uptime") as uptime:
        return float(uptime.read().split()[0]) - started


class Block(nn.Module):
    """ResNet's basic block, with a 1x1 convolution if the shape changes."""

    def __init__(self, inputs, filters, stride, keras_padding):
        super().__init__()
        # With an even extent and stride 2, Keras's `same` pads only at the end.
        self.pads = keras_padding and stride == 2
        self.conv1 = nn.Conv2d(inputs, filters, 3, stride, 0 if self.pads else 1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters, eps=1e-3)
        self.conv2 = nn.Conv2d(filters, filters, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters, eps=1e-3)
        self.widens = stride != 1
        if self.widens:
            self.conv3 = nn.Conv2d(inputs, filters, 1, stride, bias=False)
            self.bn3 = nn.BatchNorm2d(filters, eps=1e-3)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(F.pad(x, (0, 1, 0, 1)) if self.pads else x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (self.bn3(self.conv3(x)) if self.widens else x))


class Mean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def resnet20(keras_padding):
    layers, inputs = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16, eps=1e-3), nn.ReLU()], 16
    for filters in (16, 32, 64):
        for index in range(3):
            layers.append(Block(inputs, filters, 2 if filters > 16 and index == 0 else 1, keras_padding))
            inputs = filters
    return nn.Sequential(*layers, Mean(), nn.Linear(64, 10))


class ChannelsLastFlatten(nn.Module):
    """Flattens an image in Keras's order, so that the dense weights are the same array."""

    def forward(self, x):
        return x.permute(0, 2, 3, 1).flatten(1)


MODELS = {
    "mnist-mlp": lambda _: nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)),
    "wide-mlp": lambda _: nn.Sequential(nn.Linear(8000, 4000), nn.Tanh(), nn.Linear(4000, 2000), nn.ReLU(),
                                      nn.Linear(2000, 500), nn.ReLU(), nn.Linear(500, 300), nn.ReLU(),
                                      nn.Linear(300, 1), nn.Sigmoid()),
    "resnet20": resnet20,
    "lenet": lambda _: nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                                   ChannelsLastFlatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)),
}


def optimizer_of(workload, parameters, same_rules):
    if workload == "resnet20":
        return torch.optim.SGD(parameters, 0.1, momentum=0.9, weight_decay=0.0 if same_rules else 1e-4)
    return torch.optim.Adam(parameters, 1e-4 if workload == "wide-mlp" else 1e-3, eps=1e-30 if same_rules else 1e-8)


def read_weights(checkpoint):
    """Returns Keras's arrays: one list per layer with weights, in layer order."""
    import h5py

    with h5py.File(checkpoint, "r") as file:
        weights = file["model_weights"]
        names = [n.decode() if isinstance(n, bytes) else n for n in weights.attrs["layer_names"]]
        arrays = []
        for name in names:
            group = weights[name]
            paths = [p.decode() if isinstance(p, bytes) else p for p in group.attrs["weight_names"]]
            if paths:
                arrays.append([torch.from_numpy(group[path][...]) for path in paths])
    return arrays


def as_in_torch(module, values):
    """A layer's arrays in PyTorch's order of axes; None where they are not of the module's shapes."""
    if isinstance(module, nn.BatchNorm2d):
        arrays = values[:2] if len(values) == 4 else []
    else:
        kernel = values[0]
        arrays = [kernel.permute(3, 2, 0, 1) if kernel.ndim == 4 else kernel.T, *values[1:]] if kernel.ndim > 1 else []
    expected = [parameter.shape for parameter in (module.weight, module.bias) if parameter is not None]
    return arrays if [array.shape for array in arrays] == expected else None


def give_weights(model, arrays):
    """Assigns to each module with weights the first layer whose arrays fit. Keras has its own order of branches."""
    modules = [m for m in model.modules() if isinstance(m, (nn.Linear, nn.Conv2d, nn.BatchNorm2d))]
    assert len(arrays) == len(modules), (len(arrays), len(modules))
    left = list(arrays)
    for module in modules:
        index, values = next((i, found) for i, layer in enumerate(left) if (found := as_in_torch(module, layer)) is not None)
        del left[index]
        module.weight.data = values[0].contiguous()
        if len(values) > 1:
            module.bias.data = values[1]


def main():
    import numpy

    workload, data, checkpoint = sys.argv[1:4]
    threads, batch, steps = map(int, sys.argv[4:7])
    weights = read_weights(checkpoint)
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    same_rules = "--same-rules" in sys.argv
    model = MODELS[workload](same_rules)
    give_weights(model, weights)
    inputs = torch.from_numpy(numpy.load(os.path.join(data, "x.npy")))
    targets = torch.from_numpy(numpy.load(os.path.join(data, "y.npy")))
    if inputs.ndim == 4:
        inputs = inputs.permute(0, 3, 1, 2)
        layout = torch.channels_last if os.environ.get("PEER_CHANNELS_LAST") else torch.contiguous_format
        inputs, model = inputs.contiguous(memory_format=layout), model.to(memory_format=layout)
    if workload == "wide-mlp":
        targets, loss_of = targets.float().reshape(-1, 1), F.binary_cross_entropy
    else:
        targets, loss_of = targets.long(), F.cross_entropy
    optimizer = optimizer_of(workload, model.parameters(), same_rules)
    samples = len(inputs)
    order = torch.arange(samples) if "--in-order" in sys.argv else torch.randperm(samples)
    ends, losses = [], []
    for step in range(steps):
        first = step * batch % (samples // batch * batch)
        rows = order[first : first + batch]
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(inputs[rows]), targets[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        ends.append(seconds_since_process_start() if step == 0 else 0.0)
        now = time.perf_counter()
        if step == 0:
            origin = now - ends[0]
        ends[-1] = now - origin
    print(json.dumps({"framework": "torch " + torch.__version__, "ends": ends, "losses": losses}))


if __name__ == "__main__":
    main()
