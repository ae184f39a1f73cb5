# SPDX-License-Identifier: Apache-2.0
"""TensorFlow in a slice: what it is shown, what its pool gets, and whether cuBLAS, cuDNN, its kernels and Keras compute
rightly beside a full pool."""
import numpy
import tensorflow as tf

from watched import MIB, counted, finish, held, tell

GPU = "/GPU:0"


def empty(size):
    """Bytes of the GPU. One block that is too large would take TensorFlow ten seconds to refuse."""
    with tf.device(GPU):
        return tf.raw_ops.Empty(shape=[size // 8], dtype=tf.float64, init=False)


def both(call):
    """The same on the GPU and on the CPU."""
    results = []
    for device in GPU, "/CPU:0":
        with tf.device(device):
            results.append(numpy.asarray(call()))
    return results


def pool_bound():
    """The size of TensorFlow's pool, in bytes."""
    from tensorflow.python.client import device_lib
    devices = device_lib.list_local_devices()
    return max((device.memory_limit for device in devices if device.device_type == "GPU"), default=0)


def train():
    """Keras' simplest example: the loss after each epoch."""
    import keras
    keras.utils.set_random_seed(7)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer=keras.optimizers.SGD(0.1))
    samples = numpy.random.default_rng(7).random((96, 4), dtype=numpy.float32)
    sums = samples.sum(axis=1, keepdims=True)
    return model.fit(samples, sums, epochs=3, batch_size=32, shuffle=False, verbose=0).history["loss"]


bound = pool_bound()
tell("free", bound)
block = empty(bound // MIB * MIB - MIB)
tell("got", block.shape[0] * 8)
tell("refused", "not asked for more")
del block  # the pool keeps it: what follows has room in the pool, and the libraries have what is beside it

problems = []
generator = numpy.random.default_rng(7)
a, b, image, weights = (generator.random(shape).astype(numpy.float32)
                        for shape in ((512, 512), (512, 512), (2, 64, 64, 3), (5, 5, 3, 8)))
for name, call in (("add", lambda: tf.constant(a) + 1.0), ("matmul", lambda: tf.matmul(a, b)),
                   ("conv2d", lambda: tf.nn.conv2d(image, weights, 1, "SAME"))):
    if not numpy.allclose(*both(call), rtol=1e-2, atol=1e-1):
        problems.append(name)
losses = both(train)
if not numpy.allclose(*losses, rtol=1e-2) or not losses[0][-1] < losses[0][0]:
    problems.append(f"Keras: {losses}")
used = counted()
if used is not None:
    tell("counted", used)
held()  # the libraries hold what they need now
finish(problems)
