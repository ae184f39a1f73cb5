// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/memory_space.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "fake/driver/memory_file.h"

namespace cuslice::fake {
namespace {

void fill_bytes(unsigned char* to, uint32_t pattern, size_t phase, size_t size) {
    unsigned char bytes[4];
    std::memcpy(bytes, &pattern, 4);
    if (bytes[0] == bytes[1] && bytes[0] == bytes[2] && bytes[0] == bytes[3]) {
        std::memset(to, bytes[0], size);
        return;
    }
    size_t i = 0;
    for (; i < size && (phase + i) % 4 != 0; i++)
        to[i] = bytes[(phase + i) % 4];
    for (; i + 4 <= size; i += 4)
        std::memcpy(to + i, &pattern, 4);
    for (; i < size; i++)
        to[i] = bytes[(phase + i) % 4];
}

constexpr int kRoomFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Addresses below 2 GiB, for devices whose pointers have 32 bits.
void* map_low(size_t size) {
#if defined(MAP_32BIT)
    return mmap(nullptr, size, PROT_NONE, kRoomFlags | MAP_32BIT, -1, 0);
#else
    constexpr Address kStep = Address{64} << 20, kEnd = Address{2} << 30;
    for (Address at = kStep; at + size <= kEnd; at += kStep) {
        void* range = mmap(reinterpret_cast<void*>(at), size, PROT_NONE, kRoomFlags | MAP_FIXED_NOREPLACE, -1, 0);
        if (range == reinterpret_cast<void*>(at))
            return range;
        if (range != MAP_FAILED)
            munmap(range, size);  // a kernel before 4.17 takes the address as a hint
    }
    return MAP_FAILED;
#endif
}

}  // namespace

bool MemorySpace::reserve(size_t least, size_t wanted, bool low, bool shared, Address shift) {
    least = round_up(least, kPageBytes);
    // A sanitizer or a ulimit leaves less room than the machine has: halve until it fits.
    for (size_t size = std::max(least, wanted / kPageBytes * kPageBytes); size >= least; size /= 2) {
        void* range = low ? map_low(size + kPageBytes) : mmap(nullptr, size + kPageBytes, PROT_NONE, kRoomFlags, -1, 0);
        if (range == MAP_FAILED)
            continue;
        const Address base = round_up(reinterpret_cast<Address>(range), kPageBytes);
        const size_t whole = size / kPageBytes * kPageBytes;
        if (back(whole)) {
            void* seen = !shared ? range
                                 : mmap(reinterpret_cast<void*>(base), whole, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file_, 0);
            if (seen != MAP_FAILED) {
                shared_ = shared;
                base_ = base + shift;
                size_.store(whole, std::memory_order_release);
                return true;
            }
        }
        munmap(range, size + kPageBytes);
    }
    return false;
}

bool MemorySpace::back(size_t size) {
    if (file_ < 0)
        file_ = memory_file("cuslice-fake-gpu");
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size)) != 0)
        return false;
    const int flags = MAP_SHARED | MAP_NORESERVE;
    void* contents = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file_, 0);
    const size_t table = size / kPageBytes * sizeof(uint64_t);
    void* pages = mmap(nullptr, table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (contents == MAP_FAILED || pages == MAP_FAILED) {
        if (contents != MAP_FAILED)
            munmap(contents, size);
        if (pages != MAP_FAILED)
            munmap(pages, table);
        return false;
    }
    // A core dump of a sparse terabyte would be no help to anybody.
    madvise(contents, size, MADV_DONTDUMP);
    contents_ = static_cast<unsigned char*>(contents);
    pages_ = static_cast<std::atomic<uint64_t>*>(pages);
    return true;
}

bool MemorySpace::open(size_t least, size_t wanted, bool high) {
    return reserve(least, wanted, false, false, high ? Address{1} << 49 : 0);
}

bool MemorySpace::open_low() { return reserve(size_t{16} << 20, size_t{1} << 30, true, false); }

bool MemorySpace::open_shared(size_t least, size_t wanted) { return reserve(least, wanted, false, true); }

void MemorySpace::make_stored(Address address) {
    std::atomic<uint64_t>& page = page_of(address);
    if (const uint64_t state = state_of(address); state == kStored || state == kLent)
        return;
    const std::lock_guard hold(lock_);
    const uint64_t state = page.load(std::memory_order_relaxed);
    if (state == kLent)
        return;
    if ((state & 3) == kUniform) {
        unsigned char* start = contents_ + (address - base_) / kPageBytes * kPageBytes;
        fill_bytes(start, static_cast<uint32_t>(state >> 32), 0, kPageBytes);
    }
    page.store(kStored, std::memory_order_release);
}

void MemorySpace::read(Address from, void* to, size_t size) {
    auto* out = static_cast<unsigned char*>(to);
    while (size > 0) {
        const size_t part = within_page(from, size);
        const uint64_t state = state_of(from);
        if ((state & 3) == kUniform) {
            fill_bytes(out, static_cast<uint32_t>(state >> 32), from % 4, part);
        } else {
            std::memcpy(out, at(from), part);  // a clean page is a hole and reads as zeros
        }
        from += part;
        out += part;
        size -= part;
    }
}

void MemorySpace::write(Address to, const void* from, size_t size) {
    const auto* in = static_cast<const unsigned char*>(from);
    while (size > 0) {
        const size_t part = within_page(to, size);
        make_stored(to);
        std::memcpy(at(to), in, part);
        to += part;
        in += part;
        size -= part;
    }
}

void MemorySpace::copy(Address to, MemorySpace& source, Address from, size_t size) {
    while (size > 0) {
        const size_t part = source.within_page(from, within_page(to, size));
        const uint64_t state = source.state_of(from);
        if ((state & 3) == kUniform && from % 4 == to % 4) {
            fill(to, static_cast<uint32_t>(state >> 32), part);
        } else if (state == kClean) {
            fill(to, 0, part);
        } else {
            source.make_stored(from);
            make_stored(to);
            std::memmove(at(to), source.at(from), part);
        }
        to += part;
        from += part;
        size -= part;
    }
}

void MemorySpace::fill(Address to, uint32_t pattern, size_t size) {
    const uint64_t wanted = pattern == 0 ? kClean : static_cast<uint64_t>(pattern) << 32 | kUniform;
    while (size > 0) {
        const size_t whole = (to - base_) % kPageBytes == 0 ? size / kPageBytes : 0;
        if (whole > 0 && (shared_ ? pattern == 0 : state_of(to) != kLent)) {
            set_pages(to, whole, wanted);
            to += whole * kPageBytes;
            size -= whole * kPageBytes;
            continue;
        }
        const size_t part = within_page(to, size);
        // The same over what is there already stores nothing.
        if (state_of(to) != wanted) {
            make_stored(to);
            fill_bytes(at(to), pattern, to % 4, part);
        }
        to += part;
        size -= part;
    }
}

void MemorySpace::discard(Address from, size_t size) {
    const Address first = (from - base_ + kPageBytes - 1) / kPageBytes, end = (from - base_ + size) / kPageBytes;
    if (first < end)
        set_pages(base_ + first * kPageBytes, end - first, kClean);
}

void MemorySpace::lend(Address from, size_t size) {
    for (Address page = from; page - from < size; page += kPageBytes) {
        make_stored(page);
        if (!shared_)
            page_of(page).store(kLent, std::memory_order_release);
    }
}

bool MemorySpace::map_contents(Address from, size_t size, int file, size_t offset) {
    void* contents = mmap(at(from), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
                          static_cast<off_t>(offset));
    if (contents == MAP_FAILED)
        return false;
    madvise(contents, size, MADV_DONTDUMP);
    return true;
}

bool MemorySpace::adopt(Address from, size_t size, int file, size_t offset) {
    if (!map_contents(from, size, file, offset))
        return false;
    for (Address page = from; page - from < size; page += kPageBytes) {
        page_of(page).store(kLent, std::memory_order_release);
    }
    return true;
}

void MemorySpace::give_up(Address from, size_t size) {
    map_contents(from, size, file_, from - base_);
    for (Address page = from; page - from < size; page += kPageBytes) {
        page_of(page).store(kClean, std::memory_order_release);
    }
}

void MemorySpace::set_pages(Address first, size_t count, uint64_t state) {
    const std::lock_guard hold(lock_);
    if (shared_) {
        punch(first, count * kPageBytes);
        return;
    }
    std::atomic<uint64_t>* page = &page_of(first);
    for (size_t i = 0; i < count;) {
        // A run of stored pages is given back with one system call.
        size_t run = 0;
        while (i + run < count && (page[i + run].load(std::memory_order_relaxed) == kStored ||
                                   page[i + run].load(std::memory_order_relaxed) == kLent)) {
            page[i + run++].store(state, std::memory_order_release);
        }
        if (run > 0) {
            punch(first + i * kPageBytes, run * kPageBytes);
            i += run;
        } else {
            page[i++].store(state, std::memory_order_release);
        }
    }
}

void MemorySpace::punch(Address from, size_t size) {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from - base_),
              static_cast<off_t>(size));
}

}  // namespace cuslice::fake
