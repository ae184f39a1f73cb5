// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest/reuse/host_ring.h"

namespace reuse {

HostRing::HostRing(size_t buffers, Memory kind) {
    const size_t bytes = buffers * kWords * sizeof(uint32_t);
    void* memory = nullptr;
    CUdeviceptr managed = 0;
    if (kind == Memory::locked)
        REUSE_MUST(cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE));
    else
        REUSE_MUST(cuMemAllocManaged(&managed, bytes, CU_MEM_ATTACH_GLOBAL));
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is what managed memory is
    if (managed)
        memory = reinterpret_cast<void*>(managed);
    for (size_t i = 0; i < buffers; i++) {
        Buffer buffer;
        buffer.words = static_cast<uint32_t*>(memory) + i * kWords;
        buffers_.push_back(buffer);
    }
}

HostRing::Buffer& HostRing::take() {
    Buffer& buffer = buffers_[next_++ % buffers_.size()];
    look(buffer);
    return buffer;
}

void HostRing::finish() {
    for (Buffer& buffer : buffers_)
        look(buffer);
}

void HostRing::look(Buffer& buffer) {
    if (buffer.done == nullptr)
        return;
    REUSE_MUST(cuEventSynchronize(buffer.done));
    REUSE_MUST(cuEventDestroy(buffer.done));
    buffer.done = nullptr;
    for (size_t i = 0; i < buffer.read; i++)
        wrong_ += buffer.words[i] != buffer.expected;
    looked_at_ += buffer.read;
    buffer.read = 0;
}

}  // namespace reuse
