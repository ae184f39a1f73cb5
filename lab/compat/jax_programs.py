# SPDX-License-Identifier: Apache-2.0
"""JAX as its pages show it, as programs that know nothing of cuslice:

  jax_programs.py COMMAND [WORD…]      COMMAND is a function below that is named after it

Each writes what it saw to stdout, as lines of JSON. jax_rows.py runs them.
"""

import sys

import jax
import jax.numpy as jnp
import numpy

from telling import MIB, books, first_words, tell


def put(mib, device):
    """A block on a device. It is written, as all of JAX's are."""
    block = jax.device_put(numpy.empty(mib * MIB, numpy.uint8), device)
    block.block_until_ready()
    return block


def take(*_):
    """Nothing set at all: the pool of each GPU, which JAX takes with the first block there."""
    devices = jax.devices("gpu")
    kept = [put(1, device) for device in devices]
    tell(
        devices=len(kept),
        pool=books()[1],
        limits=[(device.memory_stats() or {}).get("bytes_limit", 0) / MIB for device in devices],
    )


def steps(*sizes):
    """Blocks of these sizes on the first GPU, then all deleted: what is held after each."""
    device = jax.devices("gpu")[0]
    tell(put=0, held=books()[0])
    kept = []
    for size in sizes:
        try:
            kept.append(put(int(size), device))
        except Exception as error:  # pylint: disable=broad-except
            tell(error=first_words(error))
            break
        tell(put=int(size), held=books()[0])
    for block in kept:
        block.delete()
    tell(deleted=len(kept), held=books()[0])


def everything(step="64"):
    """Blocks until one is refused."""
    device, kept = jax.devices("gpu")[0], []
    try:
        while True:
            kept.append(put(int(step), device))
    except Exception as error:  # pylint: disable=broad-except
        tell(got=len(kept) * int(step), held=books()[0], error=first_words(error))


def operations(*_):
    """One operation of each kind: which end, and how the others don't."""
    ones = numpy.ones
    calls = {
        "jit": lambda: jax.jit(lambda x: x * 2 + 1)(ones(4, numpy.float32)),
        "jit of x @ w + 1": lambda: jax.jit(lambda x: x @ x + 1)(ones((256, 256), numpy.float32)),
        "jit of 256 x 256": lambda: jax.jit(lambda x: x * 2 + 1)(ones((256, 256), numpy.float32)),
        "sum": lambda: jnp.sum(jnp.asarray(ones(8, numpy.float32))),
        "sort": lambda: jnp.sort(jnp.asarray(ones(8, numpy.float32))),
        "random": lambda: jax.random.normal(jax.random.key(0), (8,)),
        "dot": lambda: jnp.dot(
            jnp.asarray(ones((256, 256), numpy.float32)), jnp.asarray(ones((256, 256), numpy.float32))
        ),
        "grad": lambda: jax.grad(lambda w: jnp.sum((w * 3 - 1) ** 2))(jnp.asarray(ones(8, numpy.float32))),
        "conv": lambda: jax.lax.conv(jnp.ones((1, 1, 8, 8)), jnp.ones((1, 1, 3, 3)), (1, 1), "SAME"),
        "fft": lambda: jnp.fft.fft(jnp.asarray(ones(8, numpy.complex64))),
        "inv": lambda: jnp.linalg.inv(jnp.eye(4)),
    }
    for name, call in calls.items():
        try:
            jax.block_until_ready(call())
            tell(operation=name, error="")
        except Exception as error:  # pylint: disable=broad-except
            tell(operation=name, error=first_words(error))


def train(steps="20"):
    """A small network, trained by hand: jit, value_and_grad, and parameters that are replaced in each step."""
    widths = (16, 64, 64, 1)
    keys = jax.random.split(jax.random.key(0), len(widths))
    parameters = [
        (jax.random.normal(key, (inwards, outwards)) * 0.1, jnp.zeros(outwards))
        for key, inwards, outwards in zip(keys, widths, widths[1:])
    ]
    data = jnp.asarray(numpy.ones((128, 16), numpy.float32)), jnp.asarray(numpy.ones((128, 1), numpy.float32))

    def loss(parameters, inputs, wanted):
        for weight, bias in parameters[:-1]:
            inputs = jax.nn.relu(inputs @ weight + bias)
        weight, bias = parameters[-1]
        return jnp.mean((inputs @ weight + bias - wanted) ** 2)

    @jax.jit
    def step(parameters, inputs, wanted):
        value, gradients = jax.value_and_grad(loss)(parameters, inputs, wanted)
        return jax.tree.map(lambda old, gradient: old - 0.01 * gradient, parameters, gradients), value

    try:
        for _ in range(int(steps)):
            parameters, _ = step(parameters, *data)
        jax.block_until_ready(parameters)
        tell(steps=int(steps), held=books()[0])
    except Exception as error:  # pylint: disable=broad-except
        tell(error=first_words(error))


def parallel(*_):
    """pmap and shard_map over all GPUs: an elementwise function, then one that sums over them."""
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    devices = jax.devices("gpu")
    count = len(devices)
    tell(devices=count)
    mesh = Mesh(numpy.array(devices), ("gpu",))
    sent = numpy.arange(count * 4, dtype=numpy.float32).reshape(count, 4)
    placed = jax.device_put(sent, NamedSharding(mesh, PartitionSpec("gpu")))
    tell(shards=len(placed.addressable_shards), same=bool(numpy.array_equal(numpy.asarray(placed), sent)))
    shard_map = getattr(jax, "shard_map", None)
    calls = {
        "pmap": lambda: jax.pmap(lambda x: x * 2)(sent),
        "shard_map": lambda: jax.jit(
            shard_map(lambda x: x * 2, mesh=mesh, in_specs=PartitionSpec("gpu"), out_specs=PartitionSpec("gpu"))
        )(placed),
        "psum": lambda: jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(sent),
    }
    for name, call in calls.items():
        try:
            jax.block_until_ready(call())
            tell(operation=name, error="")
        except Exception as error:  # pylint: disable=broad-except
            tell(operation=name, error=first_words(error))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
