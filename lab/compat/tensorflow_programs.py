# SPDX-License-Identifier: Apache-2.0
"""What the pages about TensorFlow's GPU options show, as programs that know nothing of cuslice:

  tensorflow_programs.py COMMAND [WORD…]      COMMAND is a function below that is named after it

Each writes what it saw to stdout, as lines of JSON. What TensorFlow itself says goes to stderr. tensorflow_rows.py runs
them, with TensorFlow's own option and with cuslice's from outside, and compares.
"""

import os
import sys
import time

if sys.argv[1:2] == ["choose_first"]:  # before the import
    os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[2]

import numpy
import tensorflow as tf

from telling import MIB, books, first_words, tell

v1 = tf.compat.v1


def empty(mib, device):
    """Memory that nobody writes: the fake GPU then needs none of the host's."""
    with tf.device(device):
        return tf.raw_ops.Empty(shape=[mib * MIB // 8], dtype=tf.float64, init=False)


def held():
    return books()[0]


def fill(device):
    """What a GPU gives: its pool, which TensorFlow takes with the first tensor there, and a tensor as large as that. No
    tensor is refused: TensorFlow would wait ten seconds for each."""
    before = books()[1]
    try:
        empty(1, device)
        pool = books()[1] - before
        kept = empty(min(int(pool) - 2, 8192), device)
        tell(device=device, pool=pool, refusal="")
        return kept
    except Exception as error:  # pylint: disable=broad-except
        return tell(device=device, pool=books()[1] - before, refusal=first_words(error))


def logical_gpus():
    return tf.config.list_logical_devices("GPU")


def take(*_):
    """Nothing set at all: what each GPU gives."""
    devices = logical_gpus()
    tell(devices=len(devices))
    kept = [fill(device.name) for device in devices]
    tell(done=len(kept))


def limits(*sizes):
    """LogicalDeviceConfiguration(memory_limit=…), all of them on the first GPU."""
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_logical_device_configuration(
        gpus[0], [tf.config.LogicalDeviceConfiguration(memory_limit=int(size)) for size in sizes]
    )
    take()


def growth(which="all"):
    """set_memory_growth, and what is held after each tensor; `first`: of the first GPU only; `unset`: of none."""
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in {"all": gpus, "first": gpus[:1], "unset": []}[which]:
        tf.config.experimental.set_memory_growth(gpu, True)
    try:
        logical_gpus()
    except Exception as error:  # pylint: disable=broad-except
        return tell(error=first_words(error))
    kept = []
    for size in (1, 16, 64, 256):
        kept += [empty(size, device.name) for device in logical_gpus()]
        tell(put=size, held=held())
    kept.clear()
    return tell(put=0, held=held())


def names(*_):
    """The GPUs as TensorFlow lists them."""
    gpus = tf.config.list_physical_devices("GPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    tell(names=[detail.get("device_name") for detail in details], devices=len(logical_gpus()))


def visible(*indices):
    """set_visible_devices: the GPUs with these indices, and what is held on each after a tensor on each."""
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices([gpus[int(index)] for index in indices], "GPU")
    kept = [empty(1, device.name) for device in logical_gpus()]
    tell(devices=len(kept), held=held())


def choose(value):
    """CUDA_VISIBLE_DEVICES, set by the program itself before the first call of CUDA."""
    os.environ["CUDA_VISIBLE_DEVICES"] = value
    names()


def choose_first(_):
    """The same, set before TensorFlow is imported; and what the GPUs give."""
    names()
    take()


def choose_late(value):
    """The same behind the first operation, when nobody reads it any more."""
    kept = [empty(1, device.name) for device in logical_gpus()]
    os.environ["CUDA_VISIBLE_DEVICES"] = value
    names()
    tell(tensors=len(kept), held=held())


def config_of(text):
    """A ConfigProto in the text form of protocol buffers: what the pages write line by line in Python."""
    from google.protobuf import text_format

    return text_format.Parse(text, v1.ConfigProto())


def session(text, mib="64", hold="0"):
    """A session with this ConfigProto: the devices' limits as it lists them, one tensor, and what is then held."""
    v1.disable_eager_execution()
    with v1.Session(config=config_of(text)) as running:
        tell(
            limits=[
                device.memory_limit_bytes // MIB for device in running.list_devices() if device.device_type == "GPU"
            ]
        )
        with tf.device("/gpu:0"):
            count = v1.placeholder(tf.int32, [1])
            size = tf.size(tf.raw_ops.Empty(shape=count, dtype=tf.uint8, init=False))
        largest = 0
        try:
            running.run(size, {count: [int(mib) * MIB]})
            largest = int(mib)
        except Exception as error:  # pylint: disable=broad-except
            tell(error=first_words(error))
        tell(largest=largest, held=held())
        time.sleep(float(hold))


def wrong_field(*_):
    """The misspelt option of one of the pages."""
    try:
        v1.ConfigProto(allow_grouth=True)
    except ValueError as error:
        tell(error=first_words(error))


def soft(*_):
    """allow_soft_placement: an operation that no GPU has a kernel for, asked for on one."""
    v1.disable_eager_execution()
    for placed_softly in (False, True):
        with tf.Graph().as_default():
            with tf.device("/gpu:0"):
                text = tf.strings.join(["a", "b"])
            config = v1.ConfigProto(allow_soft_placement=placed_softly, log_device_placement=True)
            with v1.Session(config=config) as running:
                try:
                    tell(soft=placed_softly, result=running.run(text).decode())
                except Exception as error:  # pylint: disable=broad-except
                    tell(soft=placed_softly, error=first_words(error))


def towers(*_):
    """A variable and a copy on each GPU by name, with the placement log on."""
    tf.debugging.set_log_device_placement(True)
    places, same = [], True
    for number, _ in enumerate(logical_gpus()):
        with tf.device(f"/gpu:{number}"):
            sent = numpy.arange(1000 + number, dtype=numpy.float32)
            variable = tf.Variable(sent)
            places.append(variable.device)
            same = same and numpy.array_equal(tf.identity(variable).numpy(), sent)
    tell(places=places, same=bool(same), held=held())


def server(*_):
    """A cluster of one, and what its only worker has for devices."""
    worker = v1.train.Server({"worker": ["localhost:0"]}, job_name="worker", task_index=0)
    with v1.Session(worker.target) as running:
        devices = [device for device in running.list_devices() if device.device_type == "GPU"]
        tell(devices=len(devices), limits=[device.memory_limit_bytes // MIB for device in devices])


CROSS_DEVICE_OPS = {
    "default": lambda: None,
    "hierarchical": tf.distribute.HierarchicalCopyAllReduce,
    "one": tf.distribute.ReductionToOneDevice,
    "nccl": tf.distribute.NcclAllReduce,
}


def mirrored(how, *sizes):
    """MirroredStrategy over all GPUs, or over logical ones of these sizes: variables, and one sum over all."""
    if sizes:
        gpu = tf.config.list_physical_devices("GPU")[0]
        tf.config.set_logical_device_configuration(
            gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=int(size)) for size in sizes]
        )
    devices = [device.name for device in logical_gpus()]
    strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=CROSS_DEVICE_OPS[how]())
    tell(replicas=strategy.num_replicas_in_sync)
    with strategy.scope():
        variable = tf.Variable(numpy.ones(4, numpy.float32))
    tell(places=[value.device for value in getattr(variable, "values", [variable])])

    @tf.function
    def step():
        return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.identity(variable)))

    try:
        tell(sums=len(strategy.experimental_local_results(step())))
    except Exception as error:  # pylint: disable=broad-except
        tell(error=first_words(error))


def fit(how=None, *_):
    """Keras' simplest example, on its own or under MirroredStrategy."""
    import contextlib
    import keras

    scope = contextlib.nullcontext()
    if how:
        scope = tf.distribute.MirroredStrategy(
            [device.name for device in logical_gpus()], cross_device_ops=CROSS_DEVICE_OPS[how]()
        ).scope()
    try:
        with scope:
            model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
            model.compile(loss="mse", optimizer=keras.optimizers.SGD(0.2))
        tell(built=True, keras=keras.__version__)
        history = model.fit(
            numpy.ones((24, 1), numpy.float32), numpy.ones((24, 1), numpy.float32), epochs=2, batch_size=12, verbose=0
        )
        tell(epochs=len(history.history["loss"]))
    except Exception as error:  # pylint: disable=broad-except
        tell(error=first_words(error))


def train(*_):
    """A training loop by hand, as it is and compiled."""
    weight = tf.Variable(tf.ones((32, 1)))
    inputs = tf.ones((64, 32))

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(inputs, weight) ** 2)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    try:
        for call in step, tf.function(step), tf.function(step, jit_compile=True):
            for _ in range(5):
                call()
        weight.numpy()
        tell(steps=15)
    except Exception as error:  # pylint: disable=broad-except
        tell(error=first_words(error))


def operations(*_):
    """One operation of each kind: which end, and how the others don't."""
    ones = numpy.ones
    calls = {
        "add": lambda: tf.constant([1.0, 2.0]) + 1.0,
        "cast": lambda: tf.cast(tf.constant([1.0, 2.0]), tf.int32),
        "zeros": lambda: tf.zeros([4]),
        "relu": lambda: tf.nn.relu(tf.constant([1.0, -2.0])),
        "reduce_sum": lambda: tf.reduce_sum(tf.constant(ones(8, numpy.float32))),
        "random": lambda: tf.random.normal([8]),
        "sort": lambda: tf.sort(tf.constant(ones(8, numpy.float32))),
        "matmul": lambda: tf.matmul(ones((4, 4), numpy.float32), ones((4, 4), numpy.float32)),
        "conv2d": lambda: tf.nn.conv2d(ones((1, 8, 8, 1), numpy.float32), ones((3, 3, 1, 1), numpy.float32), 1, "SAME"),
        "fft": lambda: tf.signal.fft(tf.constant(ones(8, numpy.complex64))),
        "softmax": lambda: tf.nn.softmax(tf.constant(ones((4, 4), numpy.float32))),
        "jit": lambda: tf.function(lambda x: x * 2 + 1, jit_compile=True)(tf.constant([1.0, 2.0])),
        # TensorFlow ends the process where cuSOLVER doesn't start: the last one.
        "inv": lambda: tf.linalg.inv(tf.constant(numpy.eye(4, dtype=numpy.float32))),
    }
    for name, call in calls.items():
        try:
            call()
            tell(operation=name, error="")
        except Exception as error:  # pylint: disable=broad-except
            tell(operation=name, error=first_words(error)[-300:])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
