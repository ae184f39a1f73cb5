// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/readable.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fake/driver/host_page.h"

namespace cuslice::fake {
namespace {

constexpr size_t kPagesAtOnce = 256;

}  // namespace

bool is_readable(const void* memory, uint64_t size) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    if (size == 0)
        return true;
    if (begin == 0 || size > UINTPTR_MAX - begin)
        return false;
    // A byte of each page.
    unsigned char bytes[kPagesAtOnce];
    iovec pages[kPagesAtOnce];
    const iovec into{bytes, sizeof bytes};
    for (uintptr_t at = begin; at < begin + size;) {
        size_t count = 0;
        for (; count < kPagesAtOnce && at < begin + size; at = (at / kHostPage + 1) * kHostPage)
            pages[count++] = {reinterpret_cast<void*>(at), 1};
        const ssize_t got = process_vm_readv(getpid(), &into, 1, pages, count, 0);
        if (got < 0 && errno != EFAULT)
            return true;
        if (got != static_cast<ssize_t>(count))
            return false;
    }
    return true;
}

size_t readable_length(const char* text, bool& ended) {
    size_t length = 0;
    for (ended = false; !ended;) {
        const size_t to_page_end = kHostPage - reinterpret_cast<uintptr_t>(text + length) % kHostPage;
        if (!is_readable(text + length, to_page_end))
            break;
        const size_t here = strnlen(text + length, to_page_end);
        ended = here < to_page_end;
        length += here;
    }
    return length;
}

}  // namespace cuslice::fake
