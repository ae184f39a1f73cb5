// SPDX-License-Identifier: Apache-2.0
#include "policy/base/kernel_memory.h"

#include <sys/mman.h>

#include <cerrno>

#include "policy/base/cancellation.h"

namespace cuslice {

namespace {

[[gnu::cold, gnu::noinline]] void report(size_t bytes, int error) {
    const auto listener = report_no_kernel_memory.load(std::memory_order_relaxed);
    if (!listener)
        return;
    const DisableCancellation in_its_calls;
    listener(bytes, error);
}

}  // namespace

void* map_kernel_memory(size_t bytes) {
    const int saved_errno = errno;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        report(bytes, errno);
    errno = saved_errno;
    return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace cuslice
