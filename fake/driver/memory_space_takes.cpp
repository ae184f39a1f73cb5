// Computes how much of the host's memory a write to a GPU's memory would take.

#include <sys/mman.h>

#include <algorithm>

#include "fake/driver/memory_space.h"

namespace cuslice::fake {
namespace {

constexpr std::size_t host_page = 4096;

/// Bytes of the host pages in a range that nothing has been written to yet.
std::size_t absent(const unsigned char* from, std::size_t size) {
    const auto start = reinterpret_cast<std::uintptr_t>(from) / host_page * host_page;
    const std::size_t pages = (reinterpret_cast<std::uintptr_t>(from) + size - start + host_page - 1) / host_page;
    unsigned char present[page_bytes / host_page + 1];
    if (mincore(reinterpret_cast<void*>(start), pages * host_page, present) != 0) return size;
    return host_page * static_cast<std::size_t>(
                           std::count_if(present, present + pages, [](unsigned char page) { return (page & 1) == 0; }));
}

}  // namespace

std::size_t MemorySpace::write_takes(Address to, std::size_t size) const {
    std::size_t bytes = 0;
    while (size > 0) {
        const std::size_t part = std::min(size, page_bytes - (to - base_) % page_bytes);
        // A page that holds a pattern is written out as a whole.
        bytes += (state_of(to) & 3) == uniform ? page_bytes : absent(at(to), part);
        to += part;
        size -= part;
    }
    return bytes;
}

std::size_t MemorySpace::fill_takes(Address to, std::uint32_t pattern, std::size_t size) const {
    if (shared_) return pattern == 0 ? 0 : write_takes(to, size);
    // Whole pages keep the pattern alone, unless other processes see them; and what is there already is left as it is.
    const std::uint64_t wanted = pattern == 0 ? clean : static_cast<std::uint64_t>(pattern) << 32 | uniform;
    std::size_t bytes = 0;
    while (size > 0) {
        const std::size_t part = std::min(size, page_bytes - (to - base_) % page_bytes);
        const std::uint64_t state = state_of(to);
        if (state != wanted && (part < page_bytes || state == lent)) bytes += write_takes(to, part);
        to += part;
        size -= part;
    }
    return bytes;
}

std::size_t MemorySpace::copy_takes(Address to, const MemorySpace& source, Address from, std::size_t size) const {
    std::size_t bytes = 0;
    while (size > 0) {
        const std::size_t left =
            std::min(page_bytes - (to - base_) % page_bytes, page_bytes - (from - source.base_) % page_bytes);
        const std::size_t part = std::min(size, left);
        const std::uint64_t state = source.state_of(from);
        const bool pattern = state == clean || ((state & 3) == uniform && from % 4 == to % 4);
        bytes += pattern ? fill_takes(to, static_cast<std::uint32_t>(state >> 32), part) : write_takes(to, part);
        to += part;
        from += part;
        size -= part;
    }
    return bytes;
}

}  // namespace cuslice::fake
