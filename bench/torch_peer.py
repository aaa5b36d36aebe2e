"""PyTorch's training loop of one workload, with the same data and the same initial weights as dtrain.

    torch_peer.py WORKLOAD DATA_DIRECTORY CHECKPOINT THREADS BATCH STEPS

Prints one JSON line: the time at the end of every step in seconds since the process began, and every step's loss.
With --in-order, the samples are used in the order of the file, otherwise in a random order. With --same-rules, the
optimizer omits the rules that differ between frameworks (weight decay, epsilon), and convolutions pad like Keras's.
"""
import json
import math
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
        # If the height and the width are even and the stride is 2, Keras's `same` pads only at the end.
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


class SharedLstm(nn.Module):
    """A model in which one LSTM reads two sequences. A dense layer reads the last states of both sequences."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(256, 64, batch_first=True)
        # Keras's LSTM has one bias, but PyTorch's LSTM has two. The second bias is therefore set to zero and is not
        # trained.
        nn.init.zeros_(self.lstm.bias_hh_l0).requires_grad_(False)
        self.dense = nn.Linear(128, 1)

    def forward(self, a, b):
        last = [self.lstm(sequence)[1][0][0] for sequence in (a, b)]
        return torch.sigmoid(self.dense(torch.cat(last, 1)))


class Attention(nn.Module):
    """Causal attention. One product computes queries, keys and values."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.in_weight, self.in_bias = nn.Parameter(torch.empty(3 * width, width)), nn.Parameter(torch.empty(3 * width))
        self.out_weight, self.out_bias = nn.Parameter(torch.empty(width, width)), nn.Parameter(torch.empty(width))

    def forward(self, x):
        rows, steps, width = x.shape
        q, k, v = F.linear(x, self.in_weight, self.in_bias).view(rows, steps, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.full((steps, steps), -math.inf).triu(1)
            y = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(width // self.heads) + mask, -1) @ v
        return F.linear(y.transpose(1, 2).reshape(rows, steps, width), self.out_weight, self.out_bias)


class Transformer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width, eps=1e-3), Attention(width, heads)
        self.norm2, self.wide, self.narrow = nn.LayerNorm(width, eps=1e-3), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(256, 128), nn.Embedding(128, 128)
        self.blocks = nn.Sequential(*[Transformer(128, 4) for _ in range(4)])
        self.norm, self.head = nn.LayerNorm(128, eps=1e-3), nn.Linear(128, 256)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.tokens(x) + self.positions.weight)))


MODELS = {
    "mnist-mlp": lambda _: nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)),
    "wide-mlp": lambda _: nn.Sequential(nn.Linear(8000, 4000), nn.Tanh(), nn.Linear(4000, 2000), nn.ReLU(),
                                      nn.Linear(2000, 500), nn.ReLU(), nn.Linear(500, 300), nn.ReLU(),
                                      nn.Linear(300, 1), nn.Sigmoid()),
    "resnet20": resnet20,
    "lenet": lambda _: nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                                   ChannelsLastFlatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)),
    "shared-lstm": lambda _: SharedLstm(),
    "gpt-small": lambda _: Gpt(),
}


def optimizer_of(workload, parameters, same_rules):
    if workload == "resnet20":
        return torch.optim.SGD(parameters, 0.1, momentum=0.9, weight_decay=0.0 if same_rules else 1e-4)
    if workload == "shared-lstm":
        return torch.optim.RMSprop(parameters, 1e-3, alpha=0.9, eps=1e-30 if same_rules else 1e-8)
    if workload == "gpt-small":
        return torch.optim.AdamW(parameters, 0.0, eps=1e-30 if same_rules else 1e-8, weight_decay=0.1)
    return torch.optim.Adam(parameters, 1e-4 if workload == "wide-mlp" else 1e-3, eps=1e-30 if same_rules else 1e-8)


def learning_rate(step, initial=1e-3, steps=1000, warmup=100):
    """Keras's CosineDecay of gpt-small, with a linear warm-up from 0."""
    if step < warmup:
        return initial * step / warmup
    return initial * 0.5 * (1 + math.cos(math.pi * min((step - warmup) / steps, 1)))


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


MODULES = (nn.Linear, nn.Conv2d, nn.BatchNorm2d, nn.LayerNorm, nn.Embedding, nn.LSTM, Attention)  # modules with weights


def as_in_torch(module, values):
    """Converts the arrays of a Keras layer to PyTorch's order of axes. Returns one array for each parameter of the
    module, or None if the shapes differ."""
    if isinstance(module, nn.BatchNorm2d):
        arrays = values[:2] if len(values) == 4 else []
    elif isinstance(module, (nn.LayerNorm, nn.Embedding)):
        arrays = values
    elif isinstance(module, nn.LSTM):
        arrays = [values[0].T, values[1].T, values[2], torch.zeros_like(values[2])] if len(values) == 3 else []
    elif isinstance(module, Attention):
        width = len(module.out_bias)
        arrays = [torch.cat([kernel.reshape(width, width).T for kernel in values[0:6:2]]), torch.cat([b.flatten() for b in values[1:6:2]]),
                  values[6].reshape(width, width).T, values[7]] if len(values) == 8 else []
    else:
        kernel = values[0]
        arrays = [kernel.permute(3, 2, 0, 1) if kernel.ndim == 4 else kernel.T, *values[1:]] if kernel.ndim > 1 else []
    expected = [parameter.shape for parameter in module.parameters()]
    return arrays if [array.shape for array in arrays] == expected else None


def give_weights(model, arrays):
    """Sets the weights of all modules. Each module gets the arrays of the first remaining layer with the same
    shapes. The order of the layers alone is not enough, because Keras stores the layers of branches in another
    order."""
    modules = [m for m in model.modules() if isinstance(m, MODULES)]
    assert len(arrays) == len(modules), (len(arrays), len(modules))
    left = list(arrays)
    for module in modules:
        index, values = next((i, found) for i, layer in enumerate(left) if (found := as_in_torch(module, layer)) is not None)
        del left[index]
        for parameter, value in zip(module.parameters(), values):
            parameter.data = value.contiguous()


def read_data(workload, data):
    """Returns the inputs and the targets, with the samples along the first axis."""
    import numpy

    if workload == "gpt-small":
        text = torch.from_numpy(numpy.fromfile(os.path.join(data, "text.txt"), dtype=numpy.uint8)).long()
        return [text[:-1].view(-1, 128)], text[1:].view(-1, 128)
    names = ["x.npy", "x2.npy"] if workload == "shared-lstm" else ["x.npy"]
    inputs, targets = ([torch.from_numpy(numpy.load(os.path.join(data, name))) for name in files] for files in (names, ["y.npy"]))
    return inputs, targets[0]


def loss_for(workload):
    """Returns the loss of a batch's outputs and targets."""
    if workload in ("wide-mlp", "shared-lstm"):
        return F.binary_cross_entropy
    return lambda outputs, targets: F.cross_entropy(outputs.flatten(0, -2), targets.flatten())


def update(workload, model, optimizer, step):
    """Updates the weights from their gradients."""
    if workload == "gpt-small":
        optimizer.param_groups[0]["lr"] = learning_rate(step)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def main():
    workload, data, checkpoint = sys.argv[1:4]
    threads, batch, steps = map(int, sys.argv[4:7])
    weights = read_weights(checkpoint)
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    same_rules = "--same-rules" in sys.argv
    model = MODELS[workload](same_rules)
    give_weights(model, weights)
    inputs, targets = read_data(workload, data)
    if inputs[0].ndim == 4:
        layout = torch.channels_last if os.environ.get("PEER_CHANNELS_LAST") else torch.contiguous_format
        inputs = [images.permute(0, 3, 1, 2).contiguous(memory_format=layout) for images in inputs]
        model = model.to(memory_format=layout)
    loss_of = loss_for(workload)
    targets = targets.float().reshape(-1, 1) if loss_of is F.binary_cross_entropy else targets.long()
    optimizer = optimizer_of(workload, [p for p in model.parameters() if p.requires_grad], same_rules)
    samples = len(targets)
    order = torch.arange(samples) if "--in-order" in sys.argv else torch.randperm(samples)
    ends, losses = [], []
    for step in range(steps):
        first = step * batch % (samples // batch * batch)
        rows = order[first : first + batch]
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(*[values[rows] for values in inputs]), targets[rows])
        loss.backward()
        update(workload, model, optimizer, step)
        losses.append(loss.item())
        ends.append(seconds_since_process_start() if step == 0 else 0.0)
        now = time.perf_counter()
        if step == 0:
            origin = now - ends[0]
        ends[-1] = now - origin
    print(json.dumps({"framework": "torch " + torch.__version__, "ends": ends, "losses": losses}))


if __name__ == "__main__":
    main()
