// SPDX-License-Identifier: Apache-2.0
// Computes how much of the host's memory a write to a GPU's memory would take.

#include <sys/mman.h>

#include <algorithm>

#include "fake/driver/host_page.h"
#include "fake/driver/memory_space.h"

namespace cuslice::fake {
namespace {

/// Bytes of the host pages in a range that nothing has been written to yet.
size_t absent(const unsigned char* from, size_t size) {
    const auto start = reinterpret_cast<uintptr_t>(from) / kHostPage * kHostPage;
    const size_t pages = (reinterpret_cast<uintptr_t>(from) + size - start + kHostPage - 1) / kHostPage;
    unsigned char present[kPageBytes / kHostPage + 1];
    if (mincore(reinterpret_cast<void*>(start), pages * kHostPage, present) != 0)
        return size;
    return kHostPage * static_cast<size_t>(
                           std::count_if(present, present + pages, [](unsigned char page) { return (page & 1) == 0; }));
}

}  // namespace

size_t MemorySpace::write_takes(Address to, size_t size) const {
    size_t bytes = 0;
    while (size > 0) {
        const size_t part = within_page(to, size);
        // A page that holds a pattern is written out as a whole.
        bytes += (state_of(to) & 3) == kUniform ? kPageBytes : absent(at(to), part);
        to += part;
        size -= part;
    }
    return bytes;
}

size_t MemorySpace::fill_takes(Address to, uint32_t pattern, size_t size) const {
    if (shared_)
        return pattern == 0 ? 0 : write_takes(to, size);
    // Whole pages keep the pattern alone, unless other processes see them; and what is there already is left as it is.
    const uint64_t wanted = pattern == 0 ? kClean : static_cast<uint64_t>(pattern) << 32 | kUniform;
    size_t bytes = 0;
    while (size > 0) {
        const size_t part = within_page(to, size);
        const uint64_t state = state_of(to);
        if (state != wanted && (part < kPageBytes || state == kLent))
            bytes += write_takes(to, part);
        to += part;
        size -= part;
    }
    return bytes;
}

size_t MemorySpace::copy_takes(Address to, const MemorySpace& source, Address from, size_t size) const {
    size_t bytes = 0;
    while (size > 0) {
        const size_t part = source.within_page(from, within_page(to, size));
        const uint64_t state = source.state_of(from);
        const bool pattern = state == kClean || ((state & 3) == kUniform && from % 4 == to % 4);
        bytes += pattern ? fill_takes(to, static_cast<uint32_t>(state >> 32), part) : write_takes(to, part);
        to += part;
        from += part;
        size -= part;
    }
    return bytes;
}

}  // namespace cuslice::fake
