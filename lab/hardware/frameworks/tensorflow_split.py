# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow sees of a GPU that is split in two, and whether MirroredStrategy adds up over the parts without NCCL,
which sees one physical GPU behind them."""
import sys

import numpy
import tensorflow as tf

PARTS = 2

devices = [device.name for device in tf.config.list_logical_devices("GPU")]
wrong = len(devices) != PARTS
print(f"{len(devices)} devices, TensorFlow {tf.__version__}")
for how in tf.distribute.HierarchicalCopyAllReduce, tf.distribute.ReductionToOneDevice:
    strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=how())
    with strategy.scope():
        variable = tf.Variable(numpy.arange(4, dtype=numpy.float32))

    @tf.function
    def step():
        def one():
            context = tf.distribute.get_replica_context()
            share = variable + tf.cast(context.replica_id_in_sync_group, tf.float32)
            return context.all_reduce("SUM", share)
        return strategy.run(one)

    sums = [numpy.asarray(value) for value in strategy.experimental_local_results(step())]
    want = PARTS * numpy.arange(4) + sum(range(PARTS))
    same = len(sums) == PARTS and all(numpy.allclose(value, want) for value in sums)
    wrong |= not same
    print(f"{how.__name__}: {[value.tolist() for value in sums]}, {'right' if same else 'WRONG'}")
sys.exit(1 if wrong else 0)
