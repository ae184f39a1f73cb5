# SPDX-License-Identifier: Apache-2.0
"""PyTorch in a slice of each of two GPUs: what it lists, allocates, copies, waits for, and is refused.

  torch_slice.py CACHE MIB MIB      the size of the slice of each GPU; CACHE is PyTorch's own: native, expandable, async, none
  torch_slice.py sharing MIB MIB    only what two processes share, in a slice of which no cache has taken what the other needs
"""
import gc
import os
import subprocess
import sys
import threading

import numpy

from checks import check, finish

CACHES = {"native": {}, "sharing": {}, "none": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
          "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
          "async": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}}
os.environ.update(CACHES[sys.argv[1]])  # PyTorch reads it when it is imported

import torch  # noqa: E402
import torch.multiprocessing  # noqa: E402

MIB = 1 << 20
GPU_MIB = 15109  # a whole T4: what is refused fits into the GPU, so that only the limit can refuse it

cuda = torch.cuda


def bytes_of(count):
    """`count` random bytes on the host."""
    return torch.from_numpy(numpy.random.default_rng(count).integers(0, 256, count, dtype=numpy.uint8))


def device_bytes(mib, device="cuda"):
    """So many MiB of a device, as nobody has written them."""
    return torch.empty(mib * MIB, dtype=torch.uint8, device=device)


def refused(call):
    """What `call` raises, or nothing."""
    try:
        call()
    except Exception as error:  # pylint: disable=broad-except
        return error
    return None


def first_line(error):
    """An error's kind and the first line of its text."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


def check_same(what, *pairs):
    """Whether what came back is what was sent, for each pair of tensors on the host."""
    wrong = sum(not torch.equal(came, sent) for came, sent in pairs)
    check(wrong == 0, what, "the same contents" if wrong == 0 else f"{wrong} of {len(pairs)} differ")


def give_back():
    """Everything that nobody holds goes back to the driver."""
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()


def check_devices(slices):
    """What PyTorch says of the GPUs."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        fake = any("/fake/libcudart.so." in line for line in maps)
    check(fake and cuda.is_available(), "torch.cuda.is_available(), on the fake GPU's runtime", f"torch {torch.__version__}")
    names = [cuda.get_device_name(i) for i in range(cuda.device_count())]
    check(names == ["Tesla T4"] * 2, "two GPUs by their names", ", ".join(names))
    for ordinal, size in enumerate(slices):
        found = cuda.get_device_properties(ordinal)
        check(found.total_memory == size and (found.major, found.minor) == (7, 5),
              f"GPU {ordinal}: its memory is the slice", f"{found.total_memory / MIB:g} MiB, {found.multi_processor_count} SMs")
        cuda.set_device(ordinal)
        check(cuda.current_device() == ordinal and torch.empty(1, device="cuda").device.index == ordinal,
              f"GPU {ordinal}: set_device", f"current_device() is {cuda.current_device()}")
    cuda.set_device(0)


def check_memory(ordinal, size, cache):
    """A GPU's memory, as PyTorch's own cache takes and gives it."""
    cuda.set_device(ordinal)
    who = f"GPU {ordinal}"
    give_back()
    free, total = cuda.mem_get_info()
    check(total == size and 0 < free < total, f"{who}: mem_get_info() is of the slice", f"{free / MIB:g} of {total / MIB:g} MiB free")

    block = device_bytes(64)
    taken = free - cuda.mem_get_info()[0]
    held = cuda.memory_allocated(), cuda.memory_reserved()
    right = held == (0, 0) if cache == "none" else held[0] == 64 * MIB <= held[1] <= 84 * MIB
    check(right and taken >= 64 * MIB, f"{who}: 64 MiB are allocated, and in PyTorch's figures",
          f"allocated {held[0] / MIB:g}, reserved {held[1] / MIB:g}, free is {taken / MIB:g} MiB less")

    error = refused(lambda: device_bytes(GPU_MIB - 1024))
    kind = torch.AcceleratorError if cache == "none" else cuda.OutOfMemoryError
    says = "out of memory" if cache == "none" else f"{size / (1 << 30):.2f} GiB"
    check(isinstance(error, kind) and says in str(error), f"{who}: more than the slice is refused, as {says}",
          f"{first_line(error)[:110]}…")
    if cache in ("native", "expandable"):
        check(cuda.memory_stats()["num_ooms"] == 1, f"{who}: memory_stats() counts it", f"num_ooms {cuda.memory_stats()['num_ooms']}")

    del block
    give_back()
    half = free // 2 // MIB - 32
    parts = [device_bytes(half) for _ in range(2)]
    error = refused(lambda: device_bytes(128))
    check(isinstance(error, kind), f"{who}: what is free can be had in two parts, and then no more", f"2 x {half} MiB, {first_line(error)[:60]}…")
    del parts
    give_back()
    after = cuda.mem_get_info()[0]
    check(after >= free - 2 * MIB and cuda.memory_reserved() == 0, f"{who}: empty_cache() gives it back", f"{after / MIB:g} MiB free")

    if cache != "none":  # it isn't looked at there
        cuda.set_per_process_memory_fraction(0.25, ordinal)
        quarter = size // 4 // MIB
        error = refused(lambda: device_bytes(quarter + 64))
        check(isinstance(error, cuda.OutOfMemoryError), f"{who}: PyTorch's own fraction of the slice holds", first_line(error)[:60])
        part = device_bytes(quarter - 64)
        cuda.set_per_process_memory_fraction(1.0, ordinal)
        check(part.numel() == (quarter - 64) * MIB, f"{who}: and less can be had", f"{quarter - 64} MiB")
        del part
    give_back()


def check_copies():
    """Bytes that go somewhere and come back."""
    host = bytes_of(5 * MIB + 13)
    there = host.to("cuda:0")
    check_same("5 MiB to the device and back", (there.cpu(), host))
    second = there.to("cuda:1")
    third = torch.empty_like(second).copy_(second)
    back = torch.empty_like(there).copy_(third)
    places = [str(tensor.device) for tensor in (there, second, third, back)]
    check(places == ["cuda:0", "cuda:1", "cuda:1", "cuda:0"], "from one GPU to the other, on it, and back", ", ".join(places))
    check_same("and the bytes of each", (second.cpu(), host), (third.cpu(), host), (back.cpu(), host))
    peers = cuda.can_device_access_peer(0, 1)
    check(peers, "can_device_access_peer", peers)
    check_same("a piece of a tensor", (there[1000:2000].cpu(), host[1000:2000]))
    there.zero_()
    check(int(there.cpu().max()) == 0, "zero_() is a memset, and happens", f"the largest byte is {int(there.cpu().max())}")
    module = torch.nn.Linear(64, 64)
    weights = module.weight.detach().clone()
    check_same("a module's weights", (module.to("cuda:1").weight.detach().cpu(), weights))


def check_pinned():
    """Host memory that the device can reach."""
    host = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
    host.copy_(bytes_of(MIB))
    back = torch.empty_like(host).pin_memory()
    back.copy_(host.to("cuda", non_blocking=True), non_blocking=True)
    cuda.synchronize()
    check(host.is_pinned() and back.is_pinned(), "is_pinned()", f"{host.is_pinned()}, {back.is_pinned()}")
    check_same("from and to pinned memory without blocking", (back, host))
    loader = torch.utils.data.DataLoader(torch.arange(100.0), batch_size=10, pin_memory=True)
    total = sum(float(batch.to("cuda", non_blocking=True).cpu().sum()) for batch in loader)
    check(total == 4950, "a DataLoader with pin_memory", f"the sum is {total:g}")


def check_streams():
    """Streams, events, threads and graphs."""
    host = bytes_of(MIB)
    stream, begin, end = cuda.Stream(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with cuda.stream(stream):
        begin.record()
        there = host.to("cuda", non_blocking=True)
        end.record()
    end.synchronize()
    cuda.current_stream().wait_event(end)
    stream.synchronize()
    there.record_stream(cuda.current_stream())
    reached = begin.query(), end.query(), stream.query()
    check(all(reached), "two events and their stream are reached", reached)
    check(begin.elapsed_time(end) >= 0, "elapsed_time", f"{begin.elapsed_time(end):.3f} ms")
    check_same("a copy on a stream of its own", (there.cpu(), host))
    check(cuda.Stream(priority=-1).priority == -1, "a stream's priority", cuda.Stream(priority=-1).priority)

    wrong = []

    def work(number):
        with cuda.device(number % 2):
            for count in range(1000, 1020):
                mine = torch.full((count + number,), number, dtype=torch.uint8)
                if not torch.equal(mine.cuda().cpu(), mine):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not wrong, "eight threads on two GPUs", f"{len(wrong)} wrong copies")

    source, target = host.cuda(), torch.zeros_like(host, device="cuda")
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        target.copy_(source)
    before = int(target.cpu().max())
    graph.replay()
    cuda.synchronize()
    check(before == 0, "a copy that is captured in a graph doesn't happen yet", f"the largest byte is {before}")
    check_same("but at the graph's replay", (target.cpu(), host))


def check_kernels():
    """What isn't there: results of kernels, and libraries that carry NVIDIA's runtime."""
    ones = torch.ones(4, 4).cuda()
    weight = torch.nn.Parameter(ones.clone())
    adam = torch.optim.Adam([weight])
    for what, call in (("kernels are", lambda: (torch.ones(4, device="cuda").fill_(3) + 1, ones.sum())),
                       ("kernels of CUB are", lambda: (ones.sort(), ones.cumsum(0), ones.argsort())),
                       ("those of backward() and of Adam are", lambda: ((weight * 2).sum().backward(), adam.step())),
                       ("products of cuBLAS are", lambda: (ones @ ones, torch.bmm(ones[None], ones[None]), ones @ ones[0]))):
        error = refused(lambda: (call(), cuda.synchronize()))
        check(error is None, f"{what} checked and skipped", first_line(error) if error else "no error")
    for kind in torch.float32, torch.bfloat16, torch.float16:
        error = refused(lambda kind=kind: (train(kind), cuda.synchronize()))
        check(error is None, f"two nn.Linear train for five steps in {kind}", first_line(error) if error else "no error")
    for what, says, call in (("cuBLAS without a result on the GPU", "CUBLAS_STATUS_NOT_SUPPORTED", lambda: ones[0].dot(ones[0])),
                             ("cuDNN", "CUDNN_STATUS_NOT_SUPPORTED", lambda: torch.nn.functional.conv2d(ones[None, None], ones[None, None])),
                             ("cuFFT", "CUFFT_INTERNAL_ERROR", lambda: torch.fft.fft(ones)),
                             ("cuSOLVER", "CUSOLVER_STATUS_NOT_INITIALIZED", lambda: torch.linalg.inv(torch.eye(8).cuda())),
                             ("cuSPARSE", "cusparseCreate", lambda: torch.sparse.mm(torch.eye(4).to_sparse_csr().cuda(), ones))):
        error = refused(call)
        check(isinstance(error, RuntimeError) and says in str(error), f"{what} fails by itself", first_line(error)[:110])
    host = bytes_of(4096)
    check_same("and copies go on after that", (host.cuda().cpu(), host))


def train(kind):
    """nn.Linear, forwards and backwards, and SGD."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to("cuda", kind)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, wanted = torch.ones(128, 32).to("cuda", kind), torch.ones(128, 1).to("cuda", kind)
    for _ in range(5):
        optimiser.zero_grad()
        ((model(inputs) - wanted) ** 2).mean().backward()
        optimiser.step()


def check_end():
    """What a process that trained says at its end."""
    # A thread of autograd's may ask for Python's lock as that ends, and aborts (Python 3.11, PyTorch 2.15).
    program = ("import torch; torch.autograd.set_multithreading_enabled(False); m = torch.nn.Linear(4, 4).cuda(); "
               "m(torch.ones(4, 4).cuda()).sum().backward(); print('ended')")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    said = [line for line in ended.stderr.splitlines() if "results were not computed" in line]
    check(ended.stdout == "ended\n" and ended.returncode == 0 and len(said) == 1,
          "a process that trained says that nothing was computed", said or ended.stderr)


def take(inbox, outbox):
    """The child: says what it was given, writes to it, and lets it go."""
    given = inbox.get()
    outbox.put(given.cpu().tolist())
    given.copy_(given.cpu() + 1)
    cuda.synchronize()
    del given
    outbox.put("done")


def check_sharing():
    """A tensor that another process gets by its handle."""
    context = torch.multiprocessing.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    child = context.Process(target=take, args=(inbox, outbox))
    child.start()
    tensor = torch.arange(8).cuda()
    inbox.put(tensor)
    seen, _ = outbox.get(timeout=120), outbox.get(timeout=120)
    child.join()
    check(seen == list(range(8)) and tensor.cpu().tolist() == list(range(1, 9)), "a tensor is shared with another process",
          f"it saw {seen}, and left {tensor.cpu().tolist()}")


def main():
    """All of it, in one process."""
    cache = sys.argv[1]
    slices = [int(word) * MIB for word in sys.argv[2:]]
    check_devices(slices)
    if cache == "sharing":
        check_sharing()
        return finish()
    if cache == "native":
        check_end()
    backend = "cudaMallocAsync" if cache == "async" else "native"
    check(cuda.get_allocator_backend() == backend, "PyTorch's allocator", f"{cuda.get_allocator_backend()}, {cache}")
    for ordinal, size in enumerate(slices):
        check_memory(ordinal, size, cache)
    cuda.set_device(0)
    check_copies()
    check_pinned()
    check_streams()
    check_kernels()
    return finish()


if __name__ == "__main__":  # the child of check_sharing() imports this file
    main()
