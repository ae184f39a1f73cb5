# SPDX-License-Identifier: Apache-2.0
"""TensorFlow: tensors that nobody writes, in the pool that TensorFlow takes of each GPU, and a product of matrices."""

from filling import attempt, fill, main, tell


def body():
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    names = [tf.config.experimental.get_device_details(gpu).get("device_name") for gpu in gpus]
    tell(gpus=[{"name": name} for name in names])
    for gpu, device in enumerate(tf.config.list_logical_devices("GPU")):

        def take(size):
            with tf.device(device.name):
                return tf.raw_ops.Empty(shape=[size // 8], dtype=tf.float64, init=False)

        # InternalError: "Dst tensor is not initialized", which is what TensorFlow says of a copy without memory.
        fill(gpu, take, lambda error: isinstance(error, (tf.errors.ResourceExhaustedError, tf.errors.InternalError)))
        with tf.device(device.name):
            attempt("tf.matmul", lambda: tf.linalg.matmul(tf.zeros([64, 64]), tf.zeros([64, 64])))


main(body)
