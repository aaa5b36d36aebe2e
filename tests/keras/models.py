"""Models to open in Keras: random graphs with skips, a model with every layer, a model for every loss, optimizer and
schedule."""
import random

WIDTH, IMAGE = 6, [6, 6, 4]


def run_of(model, loss="mean_squared_error", targets=None, optimizer="sgd", metrics=(), low_high=(0, 1), **train):
    """Returns a run of two steps on random data. `targets` has options of the synthetic reader, by output."""
    names = list(targets)
    synthetic = {"samples": 10, "seed": 1, "input": {"low": low_high[0], "high": low_high[1]}}
    synthetic.update({"target": targets[names[0]]} if len(names) == 1 else {"targets": targets})
    return {"seed": 3, "model": model, "dataset": {"train": {"synthetic": synthetic}}, "strategy": "single",
            "train": {"epochs": 1, "batch_size": 5, "loss": loss, "optimizer": optimizer, "metrics": list(metrics),
                      **train}}


class RandomGraph:
    """A random graph. Its layers are in a random topological order, which usually differs from the order that Keras
    uses."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.layers, self.inputs, self.used = [], {}, set()
        self.weights = {}  # names of layers, by kind and type of the value that they read
        self.sharing = []  # names of layers whose weights other layers share, with the list that has their outputs
        self.vectors, self.images = [], []  # names of values
        self.written = 0
        for i in range(self.draw.choice([1, 1, 2, 3])):
            name = f"input{i}"
            is_image = self.draw.random() < 0.6
            self.inputs[name] = IMAGE if is_image else [WIDTH]
            (self.images if is_image else self.vectors).append(name)
        for _ in range(self.draw.randint(3, 16)):
            self.grow()
        for name in self.inputs:
            if name not in self.used:
                self.one(self.images if name in self.images else self.vectors, name)

    def name(self):
        """Returns a name. Some names look like names of layers in blocks."""
        self.written += 1
        return self.draw.choice(["n{}", "branch/n{}", "a.b{}", "x/y/n{}"]).format(self.written)

    def pick(self, values, most=1):
        """Draws one or more of the values. Values that were added later are more likely."""
        count = self.draw.randint(2, most) if most > 1 else 1
        chosen = [values[-1 - min(int(self.draw.expovariate(0.4)), len(values) - 1)] for _ in range(count)]
        return chosen if most > 1 else chosen[0]

    def lay(self, kind, inputs, values, **options):
        name = self.name()
        inputs = inputs if isinstance(inputs, list) else [inputs]
        self.used.update(inputs)
        self.layers.append({kind: {"name": name, "inputs": inputs if len(inputs) > 1 else inputs[0], **options}})
        values.append(name)
        return name

    def activation(self):
        chosen = self.draw.choice([None, None, "relu", "tanh", "sigmoid", "elu", "silu", "softmax"])
        return {"activation": chosen} if chosen else {}

    def one(self, values, source):
        """Adds a layer that has one input, and an output of the same shape as the input."""
        if values is self.vectors:
            kind = self.draw.choice(["dense", "dense", "dense", "layer_normalization", "batch_normalization",
                                     "activation", "dropout"])
        else:
            kind = self.draw.choice(["conv2d", "conv2d", "conv2d", "depthwise_conv2d", "batch_normalization",
                                     "max_pooling2d", "activation"])
        options = {
            "dense": lambda: {"units": WIDTH, "bias_initializer": "random_normal", **self.activation()},
            "conv2d": lambda: {"filters": IMAGE[2], "kernel_size": self.draw.choice([1, 3]), "padding": "same",
                               "bias_initializer": "random_normal", **self.activation()},
            "depthwise_conv2d": lambda: {"kernel_size": 3, "padding": "same", **self.activation()},
            "max_pooling2d": lambda: {"pool_size": 2, "strides": 1, "padding": "same"},
            "activation": lambda: {"activation": self.draw.choice(["relu", "tanh", "softmax"])},
            "dropout": lambda: {"rate": 0.25},
        }.get(kind, dict)()
        if self.draw.random() < 0.1:
            options["trainable"] = False
        alike = self.weights.setdefault((kind, values is self.vectors), [])
        if alike and self.draw.random() < 0.25:
            self.sharing.append((self.lay(kind, source, values, shared_with=self.draw.choice(alike)), values))
            return self.sharing[-1][0]
        name = self.lay(kind, source, values, **options)
        if kind not in ("max_pooling2d", "activation", "dropout"):
            alike.append(name)
        return name

    def grow(self):
        way = self.draw.random()
        values = self.draw.choice([v for v in (self.vectors, self.images) if v])
        if way < 0.5:
            self.one(values, self.pick(values))
        elif way < 0.8:
            self.lay(self.draw.choice(["add", "add", "multiply"]), self.pick(values, 3), values)
        elif way < 0.9:
            joined = self.lay("concatenate", self.pick(values, 3), [])
            if values is self.vectors:
                self.lay("dense", joined, values, units=WIDTH)
            else:
                self.lay("conv2d", joined, values, filters=IMAGE[2], kernel_size=1)
        elif self.images:
            pooled = self.lay("global_average_pooling2d", self.pick(self.images), [])
            self.lay("dense", pooled, self.vectors, units=WIDTH)

    def run(self):
        # Keras names an output by the layer that computes it. If several calls of one layer were outputs, the outputs
        # would have the same name.
        for name, values in self.sharing:
            if name not in self.used:
                self.lay("activation", name, values, activation="tanh")
        shape = {name: [WIDTH] for name in self.vectors} | {name: IMAGE for name in self.images}
        outputs = [name for name in shape if name not in self.inputs
                   and (name not in self.used or self.draw.random() < 0.1)
                   and name not in dict(self.sharing)]
        self.draw.shuffle(outputs)
        # Products of products become large. Without clipping of the gradient, the numbers of some runs would leave the
        # range of float32.
        return run_of({"inputs": self.inputs, "layers": self.layers, "outputs": outputs},
                      targets={name: {"shape": shape[name]} for name in outputs}, clip_norm=0.1)


def random_graph(seed):
    return RandomGraph(seed).run()


def every_layer():
    """Returns a model with every kind of layer, every activation as a layer and as an option, and the options that
    change the computation.

    Features that some versions of Keras lack are in small_ones()."""
    activations = ["linear", "relu", "leaky_relu", "gelu", "silu", "tanh", "sigmoid", "elu", "softmax",
                   {"leaky_relu": {"negative_slope": 0.3}}, {"elu": {"alpha": 0.5}}, "relu6", "selu", "softplus", "softsign",
                   "mish", {"relu": {"max_value": 1.5, "negative_slope": 0.1, "threshold": 0.5}},
                   {"relu": {"negative_slope": 0.2}}]
    layers = [
        # Layers on images, which read the input `image`.
        {"zero_padding2d": {"padding": [[1, 2], [0, 1]], "inputs": "image", "name": "padded"}},
        {"cropping2d": {"cropping": [[1, 0], [0, 2]]}},
        {"conv2d": {"filters": 4, "kernel_size": [3, 2], "strides": 2, "activation": "relu"}},
        {"batch_normalization": {"momentum": 0.8, "epsilon": 0.01}},
        {"activation": "relu"},
        {"prelu": {"alpha_initializer": "random_normal"}},
        {"batch_normalization": {"trainable": False, "scale": False,
                                 "moving_variance_initializer": {"constant": 4.0},
                                 "moving_mean_initializer": {"constant": 0.5}}},
        {"conv2d": {"filters": 6, "kernel_size": 3, "dilation_rate": 2, "padding": "same", "use_bias": False,
                    "activation": "softmax", "kernel_initializer": {"variance_scaling": {"scale": 3.0}},
                    "kernel_regularizer": {"l1_l2": {"l1": 0.1}}, "kernel_constraint": {"max_norm": {"axis": [0, 1, 2]}}}},
        {"conv2d": {"filters": 6, "kernel_size": 3, "padding": "same", "groups": 3, "bias_initializer": "random_normal"}},
        {"depthwise_conv2d": {"kernel_size": 3, "depth_multiplier": 2, "padding": "same", "activation": "tanh",
                              "bias_initializer": "random_normal", "name": "wide"}},
        {"prelu": {"shared_axes": [1, 2], "alpha_initializer": {"constant": 0.2}}},
        {"max_pooling2d": {"pool_size": [2, 3], "strides": 1, "padding": "same"}},
        {"prelu": {"shared_axes": [1, 3], "alpha_initializer": "random_normal"}},
        {"average_pooling2d": {"pool_size": 2, "strides": 1, "padding": "same", "name": "pooled"}},
        {"conv2d_transpose": {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", "activation": "elu",
                              "name": "up_same"}},
        {"conv2d_transpose": {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", "output_padding": 1,
                              "inputs": "pooled", "bias_initializer": "random_normal", "name": "up_padded"}},
        {"conv2d_transpose": {"filters": 2, "kernel_size": [3, 2], "strides": [2, 1], "inputs": "pooled",
                              "use_bias": False, "name": "up_valid"}},
        {"add": {"inputs": ["up_same", "up_padded"], "name": "same"}},
        {"upsampling2d": {"size": [1, 2], "inputs": "up_valid"}},
        {"upsampling2d": {"size": [2, 3], "interpolation": "bilinear"}},
        {"separable_conv2d": {"filters": 3, "kernel_size": [2, 3], "depth_multiplier": 2, "padding": "same",
                              "strides": 2, "activation": "relu", "bias_initializer": "random_normal"}},
        {"rescaling": {"scale": [0.5, 2.0, 1.5], "offset": [0.25, 0.0, -1.0]}},
        {"group_normalization": {"groups": 3, "gamma_initializer": "random_normal", "beta_initializer": "random_normal"}},
        {"spatial_dropout2d": {"rate": 0.25}},
        {"group_normalization": {"groups": -1, "scale": False, "beta_initializer": "random_normal"}},
        {"rescaling": {"scale": 0.75, "offset": 0.1}},
        {"resizing": {"height": 5, "width": 11}},
        {"resizing": {"height": 7, "width": 6, "interpolation": "nearest"}},
        {"global_max_pooling2d": {"name": "largest"}},
        {"repeat_vector": {"n": 2}},
        {"flatten": {"name": "repeated"}},
        {"global_average_pooling2d": {"inputs": "up_same", "keepdims": True}},
        {"reshape": {"target_shape": [-1], "name": "mean"}},
        {"flatten": {"inputs": "same", "name": "flat"}},
        {"dense": {"units": 5, "bias_initializer": "random_normal", "name": "row_of_image"}},
        {"group_normalization": {"groups": 1, "center": False, "epsilon": 0.01}},
        {"softmax": {}},
        {"gaussian_dropout": {"rate": 0.25}},
        {"prelu": {"alpha_initializer": "random_normal", "name": "of_image"}},
        # Layers on volumes, which read the input `volume`.
        {"zero_padding3d": {"padding": [[1, 0], [0, 1], [2, 1]], "inputs": "volume"}},
        {"cropping3d": {"cropping": [[0, 0], [1, 0], [0, 2]]}},
        {"conv3d": {"filters": 4, "kernel_size": [2, 3, 1], "strides": [1, 2, 1], "padding": "same", "activation": "relu",
                    "bias_initializer": "random_normal", "name": "solid"}},
        {"batch_normalization": {"momentum": 0.8}},
        {"upsampling3d": {"size": [1, 2, 1]}},
        {"conv3d": {"filters": 4, "kernel_size": [1, 2, 1], "padding": "same", "groups": 2}},
        {"conv3d": {"filters": 3, "kernel_size": 2, "dilation_rate": [2, 1, 1], "use_bias": False, "activation": "tanh"}},
        {"max_pooling3d": {"pool_size": [1, 2, 2], "strides": 1, "padding": "same", "name": "tops"}},
        {"average_pooling3d": {"pool_size": [2, 2, 1], "padding": "same"}},
        {"flatten": {"name": "of_volume"}},
        {"global_max_pooling3d": {"inputs": "tops", "keepdims": True}},
        {"reshape": {"target_shape": [-1], "name": "top"}},
        {"global_average_pooling3d": {"inputs": "solid", "name": "mean_of_volume"}},
        # Layers on whole numbers, which read the input `words`.
        {"reshape": {"target_shape": [3, 2], "inputs": "words"}},
        {"flatten": {}},
        {"embedding": {"input_dim": 9, "output_dim": 5, "name": "embedded"}},
        {"layer_normalization": {"epsilon": 0.01, "gamma_initializer": "random_normal"}},
        {"layer_normalization": {"center": False, "scale": False}},
        {"batch_normalization": {"center": False}},
        {"rms_normalization": {"epsilon": 0.01}},
        {"spatial_dropout1d": {"rate": 0.25}},
        {"unit_normalization": {}},
        {"gaussian_noise": {"stddev": 0.1}},
        {"dense": {"units": 4, "activation": "gelu"}},
        {"multiply": {"inputs": ["embedded", "embedded"], "name": "square"}},
        {"permute": {"dims": [2, 1], "name": "turned"}},
        {"permute": {"dims": [2, 1], "name": "turned_back"}},
        {"zero_padding1d": {"padding": [1, 2]}},
        {"conv1d": {"filters": 6, "kernel_size": 3, "padding": "same", "activation": "relu",
                    "bias_initializer": "random_normal"}},
        {"conv1d": {"filters": 4, "kernel_size": 3, "padding": "same", "groups": 2, "bias_initializer": "random_normal"}},
        {"conv1d": {"filters": 5, "kernel_size": 2, "dilation_rate": 2}},
        {"prelu": {"shared_axes": [1], "alpha_initializer": "random_normal"}},
        {"conv1d": {"filters": 4, "kernel_size": 3, "dilation_rate": 2, "padding": "causal"}},
        {"conv1d": {"filters": 5, "kernel_size": 2, "strides": 2, "padding": "causal", "bias_initializer": "random_normal"}},
        {"prelu": {"shared_axes": [1, 2], "alpha_initializer": {"constant": 0.3}}},
        {"conv1d_transpose": {"filters": 3, "kernel_size": 4, "strides": 2, "padding": "same", "bias_initializer": "random_normal"}},
        {"conv1d": {"filters": 5, "kernel_size": 2, "strides": 2}},
        {"conv1d_transpose": {"filters": 5, "kernel_size": 3, "use_bias": False}},
        {"cropping1d": {"cropping": [1, 3]}},
        {"upsampling1d": {"size": 2}},
        {"max_pooling1d": {"pool_size": 2, "padding": "same", "strides": 1}},
        {"average_pooling1d": {"pool_size": 3, "padding": "same", "name": "means"}},
        {"cropping1d": {"cropping": [1, 0]}},
        {"global_max_pooling1d": {"name": "largest_of_words"}},
        {"global_average_pooling1d": {"inputs": "means", "name": "mean_of_words"}},
        {"subtract": {"inputs": ["turned_back", "embedded"]}},
        {"average": {"inputs": ["subtract", "embedded", "square"]}},
        {"maximum": {"inputs": ["average", "embedded"]}},
        {"minimum": {"inputs": ["maximum", "square"], "name": "merged"}},
        {"concatenate": {"axis": -1, "inputs": ["merged", "dense", "embedded"]}},
        {"flatten": {}},
        {"dense": {"units": 5, "name": "of_words", "trainable": False}},
        # Recurrent layers, which read the embedded words.
        {"lstm": {"units": 4, "inputs": "embedded", "return_sequences": True, "dropout": 0.2, "recurrent_dropout": 0.25}},
        {"gru": {"units": 5, "return_sequences": True, "go_backwards": True, "bias_initializer": "random_normal"}},
        {"simple_rnn": {"units": 3, "return_sequences": True, "bias_initializer": "random_normal"}},
        {"lstm": {"units": 4, "go_backwards": True, "unit_forget_bias": False, "bias_initializer": "random_normal"}},
        {"gru": {"units": 3, "inputs": "gru", "use_bias": False, "name": "gru_state"}},
        # Attention.
        {"position_embedding": {"sequence_length": 8, "inputs": "embedded", "activity_regularizer": {"l2": 0.01}}},
        {"sinusoidal_position_encoding": {"max_wavelength": 100.0, "name": "placed"}},
        {"multi_head_attention": {"num_heads": 2, "key_dim": 3, "inputs": "placed", "causal": True, "dropout": 0.1, "kernel_regularizer": {"l2": 0.01}, "bias_constraint": "non_neg", "bias_initializer": "random_normal"}},
        {"multi_head_attention": {"num_heads": 2, "key_dim": 4, "value_dim": 3, "inputs": ["multi_head_attention", "embedded"], "name": "crossed"}},
        {"multi_head_attention": {"num_heads": 4, "key_dim": 2, "num_key_value_heads": 2, "use_bias": False, "name": "grouped"}},
        {"multi_head_attention": {"num_heads": 2, "key_dim": 4, "rotary": {"base": 50.0}, "causal": True, "bias_initializer": "random_normal", "name": "rotated"}},
        {"multi_head_attention": {"num_heads": 3, "key_dim": 2, "rotary": {}, "use_bias": False, "inputs": ["rotated", "turned_back"], "name": "rotated_to_others"}},
        {"multi_head_attention": {"num_heads": 4, "key_dim": 4, "num_key_value_heads": 2, "rotary": {}, "causal": True, "bias_initializer": "random_normal", "name": "rotated_groups"}},
        {"multi_head_attention": {"num_heads": 2, "key_dim": 4, "value_dim": 3, "dropout": 0.1, "rotary": {"base": 50.0}, "inputs": ["rotated_groups", "turned_back"], "name": "rotated_to_wide"}},
        {"multi_head_attention": {"num_heads": 4, "key_dim": 2, "value_dim": 3, "num_key_value_heads": 1, "causal": True, "bias_initializer": "random_normal", "name": "wide_groups"}},
        {"masking": {"mask_value": 0.5}},
        {"flatten": {"ignore_mask": True, "name": "attended"}},
        {"simple_rnn": {"units": 2, "inputs": "lstm", "use_bias": False, "go_backwards": True, "name": "rnn_state"}},
        {"bidirectional": {"layer": {"lstm": {"units": 3, "return_sequences": True}}, "merge_mode": "ave", "inputs": "embedded", "name": "two_ways"}},
        {"bidirectional": {"layer": {"gru": {"units": 2, "bias_initializer": "random_normal"}}, "name": "both_ends"}},
        {"bidirectional": {"layer": {"simple_rnn": {"units": 2, "go_backwards": True}}, "merge_mode": "mul", "inputs": "two_ways", "name": "product_of_ends"}},
        # Products of two values.
        {"dot": {"axes": [2, 1], "inputs": ["embedded", "turned"], "name": "likeness"}},
        {"dot": {"axes": -1, "normalize": True, "inputs": ["likeness", "likeness"], "name": "cosines"}},
        {"flatten": {"name": "of_products"}},
        # Layers applied to each position.
        {"reshape": {"target_shape": [3, 2, 5, 1], "inputs": "embedded", "name": "frames"}},
        {"time_distributed": {"layer": {"conv2d": {"filters": 2, "kernel_size": [1, 2], "activation": "relu",
                                                   "bias_initializer": "random_normal"}}, "name": "each_frame"}},
        {"time_distributed": {"layer": {"max_pooling2d": {"pool_size": [1, 2]}}, "name": "pooled_frames"}},
        {"time_distributed": {"layer": {"flatten": {}}, "name": "rows_of_frames"}},
        {"time_distributed": {"layer": {"dense": {"units": 3, "activation": "tanh", "bias_initializer": "random_normal"}},
                              "name": "row_of_frame"}},
        {"reshape": {"target_shape": [3, 10, 1], "inputs": "frames", "name": "sentences"}},
        {"time_distributed": {"layer": {"gru": {"units": 2, "bias_initializer": "random_normal"}}, "name": "of_sentences"}},
        {"concatenate": {"inputs": ["row_of_frame", "of_sentences"], "name": "distributed"}},
        {"flatten": {"name": "of_frames"}},
        {"concatenate": {"inputs": ["lstm_1", "gru_state", "rnn_state", "both_ends", "product_of_ends"], "name": "states"}},
        # Concatenates the outputs of all branches and the input `row`.
        {"concatenate": {"inputs": ["largest", "repeated", "largest_of_words", "mean_of_words", "mean", "of_words", "of_image", "of_volume", "top", "mean_of_volume", "states", "attended", "of_frames", "of_products", "row"], "name": "all"}},
    ]
    value, outputs = "all", []
    for i, activation in enumerate(activations):
        layers.append({"dense": {"units": 7, "inputs": value, "name": f"_option/{i}", "activation": activation,
                                 "bias_initializer": "random_normal"}})
        layers.append({"activation": {"activation": activation, "name": f"layer/{i}"}})
        layers.append({"concatenate": {"inputs": ["all", f"layer/{i}"], "name": f"joined{i}"}})
        value = f"joined{i}"
    layers.append({"dropout": 0.25})
    layers.append({"dense": {"units": 3, "name": "answer"}})
    outputs = ["answer", "of_words"]
    model = {"inputs": {"image": [9, 8, 2], "words": {"shape": [6], "dtype": "int32"}, "row": [4],
                        "volume": [4, 5, 3, 2]},
             "layers": layers, "outputs": outputs}
    return run_of(model, targets={"answer": {"shape": [3]}, "of_words": {"shape": [5]}}, low_high=(0, 9))


def small_ones():
    """Returns small models by name: a model for each loss, optimizer, schedule and metric, and for each feature that
    some versions of Keras lack."""
    def run(units=3, activation=None, target=None, **train):
        last = {"units": units, "name": "last"} | ({"activation": activation} if activation else {})
        model = {"inputs": {"x": [4]}, "layers": [{"dense": {"units": 5, "activation": "tanh"}}, {"dense": last}]}
        return run_of(model, targets={"last": target or {"shape": [units]}}, **train)

    classes = {"classes": 3}
    sparse = {"sparse_categorical_crossentropy": {"from_logits": True}}
    runs = {
        "sparse_categorical_crossentropy": run(activation="softmax", target=classes,
                                               loss="sparse_categorical_crossentropy"),
        "sparse_categorical_crossentropy of logits": run(
            target=classes, loss=sparse,
            metrics=["accuracy", "sparse_categorical_accuracy", {"sparse_top_k_categorical_accuracy": {"k": 2}}]),
        "categorical_crossentropy": run(
            activation="softmax", loss="categorical_crossentropy",
            metrics=["accuracy", "categorical_accuracy", {"top_k_categorical_accuracy": {"k": 2}}]),
        "binary_crossentropy": run(units=1, activation="sigmoid", target={"shape": [1]}, loss="binary_crossentropy",
                                   metrics=["accuracy", {"binary_accuracy": {"threshold": 0.3}}]),
        "binary_crossentropy of logits": run(loss={"binary_crossentropy": {"from_logits": True}}),
        "mean_squared_error": run(metrics=["mean_absolute_error"]),
        "mean_absolute_error": run(loss="mean_absolute_error"),
        "huber": run(loss={"huber": {"delta": 0.5}}),
        "smoothed labels": run(loss={"categorical_crossentropy": {"from_logits": True, "label_smoothing": 0.1}}),
        "smoothed classes": run(target=classes, loss={"sparse_categorical_crossentropy":
                                                      {"from_logits": True, "label_smoothing": 0.1}}),
        "categorical_focal_crossentropy": run(activation="softmax", loss={"categorical_focal_crossentropy": {"gamma": 1.5}},
                                              metrics=[{"precision": {"thresholds": 0.4}}, "auc", "confusion_matrix"]),
        "binary_focal_crossentropy": run(activation="sigmoid", loss={"binary_focal_crossentropy": {"gamma": 1.5}},
                                         metrics=["precision", "recall", {"auc": {"curve": "PR"}}]),
        "precision, recall, auc of logits": run(loss={"binary_crossentropy": {"from_logits": True}},
                                                metrics=["precision", "recall", "auc"]),
        "f1_score": run(activation="softmax", loss="categorical_crossentropy",
                        metrics=[{"f1_score": {"average": "macro"}}, "mean_iou"]),
        "r2_score": run(loss="log_cosh", metrics=["r2_score", "root_mean_squared_error", "mean_absolute_percentage_error"]),
        "class_weight": run(target=classes, loss=sparse, class_weight={0: 2, 2: 0.5}),
        "groups": run(groups=[{"weights": "last/*", "learning_rate_factor": 0.5}, {"weights": "*/bias", "trainable": False}]),
        "ema": run(callbacks=[{"ema": {"decay": 0.9}}]),
        "clip_norm": run(clip_norm=0.5),
        "clip_value": run(clip_value=0.01),
        "gelu by tanh": run(activation={"gelu": {"approximate": True}}),
        "hard_sigmoid": run(activation="hard_sigmoid"),
        "hard_sigmoid of Keras 2": run(activation={"hard_sigmoid": {"slope": 0.2}}),
        "hard_silu": run(activation="hard_silu"),
        "exponential": run(activation="exponential"),
        "concatenate along another axis": run_of(
            {"inputs": {"x": [2, 3]}, "layers": [{"concatenate": {"axis": 1, "inputs": ["x", "x"]}}, {"flatten": {}},
                                                 {"dense": {"units": 2, "name": "last"}}]},
            targets={"last": {"shape": [2]}}),
        "shared weights": run_of(
            {"inputs": {"a": [4], "b": [6]},
             "layers": [{"dense": {"units": 6, "inputs": "a", "name": "one", "activation": {"elu": {"alpha": 0.5}}}},
                        {"dense": {"units": 4, "inputs": "b", "name": "deep", "activation": "tanh"}},
                        {"layer_normalization": {"name": "rows", "gamma_initializer": "random_normal"}},
                        {"dense": {"shared_with": "one", "name": "two"}},
                        {"dense": {"units": 4, "name": "back"}},
                        {"layer_normalization": {"shared_with": "rows", "name": "rows/again"}},
                        {"dense": {"shared_with": "two", "name": "three"}},
                        {"concatenate": {"inputs": ["three", "one"], "name": "joined"}},
                        {"dense": {"units": 3, "name": "last"}}]},
            targets={"last": {"shape": [3]}}),
        "tied embedding": run_of(
            {"inputs": {"x": {"shape": [6], "dtype": "int32"}},
             "layers": [{"embedding": {"input_dim": 9, "output_dim": 4, "name": "token"}},
                        {"layer_normalization": {"gamma_initializer": "random_normal"}},
                        {"dense": {"shared_with": "token", "name": "scores", "activation": "tanh"}},
                        {"dense": {"units": 4, "name": "narrow"}},
                        {"dense": {"shared_with": "token", "name": "last"}}]},
            targets={"last": {"shape": [6, 9]}}, low_high=(0, 9)),
        "synchronized batch normalization": run_of(
            {"inputs": {"x": [4]}, "layers": [{"batch_normalization": {"synchronized": True}},
                                              {"dense": {"units": 2, "name": "last"}}]},
            targets={"last": {"shape": [2]}}),
        "masks": run_of(
            {"inputs": {"x": {"shape": [6], "dtype": "int32"}},
             "layers": [{"embedding": {"input_dim": 4, "output_dim": 5, "mask_zero": True}},
                        {"dense": {"units": 4, "activation": "tanh", "name": "each"}},
                        {"lstm": {"units": 3, "return_sequences": True, "name": "a"}},
                        {"gru": {"units": 3, "return_sequences": True, "inputs": "each", "name": "b"}},
                        {"add": {"inputs": ["a", "b"]}},
                        {"bidirectional": {"layer": {"gru": {"units": 2, "return_sequences": True}}}},
                        {"simple_rnn": {"units": 4, "return_sequences": True, "name": "c"}},
                        {"global_max_pooling1d": {"ignore_mask": True, "name": "largest"}},
                        {"lstm": {"units": 3, "go_backwards": True, "inputs": "c", "name": "d"}},
                        {"concatenate": {"inputs": ["largest", "d"]}},
                        {"dense": {"units": 3, "name": "last"}}]},
            targets={"last": {"shape": [3]}}, low_high=(0, 4)),
        "masked attention": run_of(
            {"inputs": {"x": {"shape": [6], "dtype": "int32"}},
             "layers": [{"embedding": {"input_dim": 4, "output_dim": 5, "mask_zero": True}},
                        {"multi_head_attention": {"num_heads": 2, "key_dim": 3, "causal": True, "bias_initializer": "random_normal"}},
                        {"global_average_pooling1d": {}}, {"dense": {"units": 3, "name": "last"}}]},
            targets={"last": {"shape": [3]}}, low_high=(0, 4)),
        "masked blocks of attention": run_of(
            {"inputs": {"x": {"shape": [6], "dtype": "int32"}},
             "layers": [{"embedding": {"input_dim": 4, "output_dim": 5, "mask_zero": True, "name": "e"}},
                        {"multi_head_attention": {"num_heads": 2, "key_dim": 3, "name": "a"}},
                        {"add": {"inputs": ["e", "a"], "name": "r"}},
                        {"multi_head_attention": {"num_heads": 1, "key_dim": 3, "inputs": ["r", "e"], "name": "b"}},
                        {"add": {"inputs": ["r", "b"]}},
                        {"global_average_pooling1d": {}}, {"dense": {"units": 3, "name": "last"}}]},
            targets={"last": {"shape": [3]}}, low_high=(0, 4)),
        "masked outputs": run_of(
            {"inputs": {"x": {"shape": [6], "dtype": "int32"}},
             "layers": [{"embedding": {"input_dim": 4, "output_dim": 5, "mask_zero": True}},
                        {"lstm": {"units": 3, "return_sequences": True}},
                        {"dense": {"units": 3, "activation": "softmax", "name": "last"}}]},
            targets={"last": {"shape": [6, 3]}}, loss="categorical_crossentropy", metrics=["accuracy"],
            low_high=(0, 4)),
        "masked steps": run_of(
            {"inputs": {"x": [6, 2]},
             "layers": [{"masking": {"mask_value": 0.5}}, {"lstm": {"units": 3}}, {"dense": {"units": 2, "name": "last"}}]},
            targets={"last": {"shape": [2]}}),
        "a name that TensorFlow refuses": run() | {"name": "my first run"},
    }
    optimizers = {
        "sgd": {}, "sgd with momentum": {"momentum": 0.9, "nesterov": True}, "rmsprop": {},
        "rmsprop centered": {"centered": True, "momentum": 0.5, "rho": 0.8}, "adagrad": {},
        "adam": {"beta_1": 0.8}, "adamw": {}, "adamw without decay": {"weight_decay": 0},
        "sgd with decay": {"weight_decay": 0.01}, "lion": {}, "lamb": {}, "adamax": {},
        "nadam": {}, "adadelta": {}, "adafactor": {},
    }
    for loss in ({"dice": {"axis": [1, 2]}}, {"dice": {"axis": [1, 2, 3]}},
                 {"tversky": {"alpha": 0.7, "beta": 0.2, "axis": [1, 2]}}):
        name = f"{next(iter(loss))} of axes {loss[next(iter(loss))]['axis']}"
        runs[name] = run_of({"inputs": {"x": [4, 4, 2]},
                             "layers": [{"conv2d": {"filters": 3, "kernel_size": 1, "activation": "softmax", "name": "last"}}]},
                            targets={"last": {"shape": [4, 4, 3]}}, loss=loss)
    for name in ("kl_divergence", "cosine_similarity", "hinge", "squared_hinge", "poisson", "log_cosh",
                 "mean_absolute_percentage_error", "mean_squared_logarithmic_error"):
        runs[name] = run(activation="softmax", loss=name)
    for name, options in optimizers.items():
        runs[name] = run(optimizer={name.split()[0]: options})
    schedules = {
        "piecewise_constant": {"boundaries": [1, 3], "values": [0.1, 0.01, 0.001]},
        "exponential_decay": {"initial": 0.1, "decay_steps": 3, "decay_rate": 0.5, "staircase": True},
        "inverse_time_decay": {"initial": 0.1, "decay_steps": 3, "decay_rate": 0.5, "staircase": True},
        "cosine_decay": {"initial": 0.1, "steps": 5, "alpha": 0.1},
        "cosine_decay with warm-up": {"initial": 0.1, "steps": 5, "warmup_steps": 2, "warmup_initial": 0.01},
        "reduce_on_plateau": {"initial": 0.1, "monitor": "loss"},
        "polynomial_decay": {"initial": 0.1, "steps": 5, "power": 2},
        "one_cycle": {"max": 0.1, "steps": 5},
        "linear_warmup": {"steps": 2, "then": 0.1},
    }
    for optimizer in ("sgd", "adam", "rmsprop", "adagrad", "adamax", "adadelta"):
        for name, options in schedules.items():
            runs[f"{optimizer}, {name}"] = run(optimizer={optimizer: {"learning_rate": {name.split()[0]: options}}})
    return runs
