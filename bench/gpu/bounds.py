"""Computes a lower bound for the time of a training step on a GPU, from its operations and bytes (a roofline).

A step is a sequence of passes over memory. The time of a pass is the longer of two times: the time of its operations at
the rate of large matrix products, and the time of its bytes at the rate of a plain copy. bench/gpu/run.py measures both
rates on the same GPU. The passes assume all fusions that the libraries support: a product includes bias and relu, and a
normalization includes addition and relu. Caches are ignored. Convolutions and the GPT count the bytes of weights only
in the update. The passes that compute gradients are listed in the order of the forward pass; the backward pass runs
them in the reverse order (bench/scaling.py).
"""
from collections import namedtuple

import report

# `parameters` is the number of parameters whose gradients are ready after this pass.
Pass = namedtuple("Pass", "name operations bytes parameters", defaults=(0,))

SIZE = {"float32": 4, "tf32": 4, "bf16": 2}  # bytes per element of activations and their gradients


def seconds(passes, operations_per_second, bytes_per_second):
    return sum(max(one.operations / operations_per_second, one.bytes / bytes_per_second) for one in passes)


def stored_samples(elements, size):
    """Returns the pass that converts samples from bytes to the compute type."""
    return Pass("samples", 0, elements * (1 + size))


def update(parameters, slots, size):
    """Returns the pass that updates the parameters. The pass reads the weights, the gradient and the slots of the
    optimizer, and writes the weights and the slots. If the compute type has 16 bits, the pass also writes a copy of
    the weights in this type."""
    return Pass("update", 0, parameters * (12 + 8 * slots + (size if size < 4 else 0)))


def dense_layers(batch, inputs, layers, precision):
    """Returns the passes of a training step with Adam. The model consists of dense layers, which are given as
    (units, activation). The gradients of the kernels are float32."""
    size, passes, parameters = SIZE[precision], [stored_samples(batch * inputs, SIZE[precision])], 0
    for index, (units, activation) in enumerate(layers):
        operations, x, y, weights = 2 * batch * inputs * units, batch * inputs * size, batch * units * size, inputs * units
        passes.append(Pass("product", operations, x + weights * size + y))
        if activation not in (None, "relu"):  # relu and bias are fused into the product's epilogue
            passes.append(Pass("activation", 0, 2 * y))
        passes.append(Pass("filter gradient", operations, x + y + 4 * weights, weights + units))
        if index > 0:
            passes.append(Pass("data gradient", operations, y + weights * size + x))
        if activation:
            passes.append(Pass("gradients of activation and bias", 0, 3 * y))
        parameters += weights + units
        inputs = units
    return [*passes, update(parameters, 2, size)]


class Images:
    """Collects the passes of a training step of a model of convolutions. Each convolution is followed by batch
    normalization."""

    def __init__(self, batch, side, channels, precision):
        self.batch, self.size, self.parameters = batch, SIZE[precision], 0
        self.passes = [stored_samples(batch * side * side * channels, self.size)]
        self.side, self.channels = side, channels

    def bytes_of(self, side, channels):
        return self.batch * side * side * channels * self.size

    def convolution(self, filters, kernel, stride=1, adds=False, first=False):
        """Adds a convolution. The next convolution reads its output. If `adds` is true, the batch normalization also
        adds the other branch of a block."""
        out = self.side // stride
        weights = kernel * kernel * self.channels * filters
        operations = 2 * self.batch * out * out * weights
        x, y = self.bytes_of(self.side, self.channels), self.bytes_of(out, filters)
        self.passes += [Pass("convolution", operations, x + y), Pass("filter gradient", operations, x + y, weights + 3 * filters)]
        if not first:
            self.passes.append(Pass("data gradient", operations, y + x))
        # The forward pass reads y once for the statistics and once for the output; the second time, it also reads the
        # block's other branch. The backward pass reads the gradient and y once for the sums and once for the gradient
        # of y. It also writes the gradient of relu's input, which is the gradient of the other branch.
        self.passes.append(Pass("normalization", 0, (3 + 1 if adds else 3) * y))
        self.passes.append(Pass("normalization's gradients", 0, (5 + 1 if adds else 5) * y))
        self.parameters += weights + 3 * filters
        self.side, self.channels = out, filters

    def max_pooling(self, stride):
        x, y = self.bytes_of(self.side, self.channels), self.bytes_of(self.side // stride, self.channels)
        places = y // self.size
        self.passes += [Pass("pooling", 0, x + y + places), Pass("pooling's gradient", 0, x + y + places)]
        self.side //= stride

    def classifier(self, classes):
        x = self.bytes_of(self.side, self.channels)
        self.passes += [Pass("global pooling", 0, x), Pass("global pooling's gradient", 0, x)]
        parameters = (self.channels + 1) * classes
        for name in ("product", "filter gradient", "data gradient"):
            self.passes.append(Pass(name, 2 * self.batch * self.channels * classes, 0, parameters if name == "filter gradient" else 0))
        self.parameters += parameters


def resnet50(batch, precision):
    """Returns the passes of a training step of ResNet-50 with momentum, for images of 224x224. The first convolution
    of a stage has the stride of the stage."""
    images = Images(batch, 224, 3, precision)
    images.convolution(64, 7, 2, first=True)
    images.max_pooling(2)
    for filters, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for index in range(blocks):
            stride = 2 if index == 0 and filters > 64 else 1
            side, channels = images.side, images.channels
            if index == 0:
                images.convolution(4 * filters, 1, stride)
                images.side, images.channels = side, channels
            images.convolution(filters, 1, stride)
            images.convolution(filters, 3)
            images.convolution(4 * filters, 1, adds=True)
    images.classifier(1000)
    return [*images.passes, update(images.parameters, 1, images.size)]


def transformer(batch, positions, vocabulary, width, hidden, blocks, precision):
    """Returns the passes of a training step of a GPT with AdamW, such as bench/workloads/gpt-small.yaml. The
    attention computes all scores, also those of later positions."""
    size, rows = SIZE[precision], batch * positions
    passes = [stored_samples(rows, size)]

    def bytewise(name, reads_and_writes, gradient_reads_and_writes, parameters):
        passes.append(Pass(name, 0, reads_and_writes * rows * width * size))
        passes.append(Pass(name + "'s gradient", 0, gradient_reads_and_writes * rows * width * size, parameters))

    def product(inputs, units, parameters, name="product"):
        operations, moved = 2 * rows * inputs * units, rows * (inputs + units) * size
        passes.append(Pass(name, operations, moved))
        passes.append(Pass("filter gradient", operations, moved, parameters))
        passes.append(Pass("data gradient", operations, moved))

    bytewise("embedding", 1, 1, vocabulary * width)
    bytewise("position embedding", 2, 1, positions * width)
    for _ in range(blocks):
        bytewise("normalization", 2, 3, 2 * width)
        product(width, 3 * width, 3 * width * (width + 1))
        scores = 4 * batch * positions * positions * width
        passes.append(Pass("attention", scores, 4 * rows * width * size))
        passes.append(Pass("attention's gradient", 2 * scores, 8 * rows * width * size))
        product(width, width, width * (width + 1))
        bytewise("addition and normalization", 4, 5, 2 * width)
        product(width, hidden, (width + 1) * hidden)
        bytewise("activation", 2 * hidden // width, 3 * hidden // width, 0)
        product(hidden, width, (hidden + 1) * width)
    bytewise("normalization", 2, 3, 2 * width)
    product(width, vocabulary, (width + 1) * vocabulary)
    return [*passes, update(sum(one.parameters for one in passes), 2, size)]


def step(workload, batch, precision):
    """Returns the passes of a training step of one of the workloads in bench/workloads."""
    if workload == "mnist-mlp":
        return dense_layers(batch, 784, [(256, "relu"), (256, "relu"), (10, None)], precision)
    if workload == "wide-mlp":
        return dense_layers(batch, 8000, [(4000, "tanh"), (2000, "relu"), (500, "relu"), (300, "relu"), (1, None)], precision)
    if workload == "gpt-small":
        return transformer(batch, 128, 256, 128, 512, 4, precision)
    return resnet50(batch, precision)


def row(name, passes, measured, rates, reason, must=None):
    """Returns a row of the report. Its value is the lower bound divided by the `measured` seconds. `rates` is
    (operations per second, bytes per second), or None if the rates are unknown; `reason` then says why."""
    least = rates and seconds(passes, *rates)
    return report.row(name, "share of its bound by operations and bytes", None, None, least and measured and least / measured, must, reason)
