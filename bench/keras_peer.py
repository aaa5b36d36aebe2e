"""Keras's training loop of one workload, with the same data and the same model as dtrain: Keras opens dtrain's
checkpoint.

    keras_peer.py WORKLOAD DATA_DIRECTORY CHECKPOINT THREADS BATCH STEPS

Prints one JSON line: the time at the end of every step in seconds since the process began, and every step's loss.
With --in-order, the samples are used in the order of the file, otherwise in a random order. With --same-rules, the
optimizer omits the rules that differ between frameworks (weight decay, epsilon). The step is one compiled function over
data in memory, which is Keras's fastest way; with PEER_JIT=1, XLA compiles the step.
"""
import json
import os
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def seconds_since_process_start():
    with open("/proc/self/stat") as stat:
        started = int(stat.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    with open("/proc/uptime") as uptime:
        return float(uptime.read().split()[0]) - started


def main():
    workload, data, checkpoint = sys.argv[1:4]
    threads, batch, steps = map(int, sys.argv[4:7])
    import numpy
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    import keras

    same_rules = "--same-rules" in sys.argv
    model = keras.models.load_model(checkpoint, compile=False)
    names = ["x.npy", "x2.npy"] if workload == "shared-lstm" else ["x.npy"]
    inputs = [tf.constant(numpy.load(os.path.join(data, name))) for name in names]
    targets = numpy.load(os.path.join(data, "y.npy"))
    if workload in ("wide-mlp", "shared-lstm"):
        targets, loss_of = tf.constant(targets.astype("float32").reshape(-1, 1)), keras.losses.BinaryCrossentropy()
    else:
        targets, loss_of = tf.constant(targets), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if workload == "resnet20":
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9, weight_decay=None if same_rules else 1e-4)
    elif workload == "shared-lstm":
        optimizer = keras.optimizers.RMSprop(1e-3, epsilon=1e-30 if same_rules else 1e-7)
    else:
        optimizer = keras.optimizers.Adam(1e-4 if workload == "wide-mlp" else 1e-3, epsilon=1e-30 if same_rules else 1e-7)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=os.environ.get("PEER_JIT") == "1")
    def train(rows):
        x, y = [tf.gather(values, rows) for values in inputs], tf.gather(targets, rows)
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x if len(x) > 1 else x[0], training=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    samples = len(targets)
    order = numpy.arange(samples) if "--in-order" in sys.argv else numpy.random.default_rng(1).permutation(samples)
    order = tf.constant(order.astype("int32"))
    ends, losses = [], []
    for step in range(steps):
        first = step * batch % (samples // batch * batch)
        losses.append(float(train(order[first : first + batch])))
        now = time.perf_counter()
        if step == 0:
            origin = now - seconds_since_process_start()
        ends.append(now - origin)
    print(json.dumps({"framework": f"Keras {keras.__version__}, TensorFlow {tf.__version__}", "ends": ends, "losses": losses}))


if __name__ == "__main__":
    main()
