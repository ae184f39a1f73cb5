// SPDX-License-Identifier: Apache-2.0
#pragma once
// The contents of one GPU's memory. The addresses that programs see are one PROT_NONE range, so that host code which
// dereferences a device pointer faults. The bytes are in a sparse memfd of the same shape, which this class alone has
// mapped, elsewhere; a block's bytes lie at its address's offset, so there is no mapping per block. Large uniform
// fills are kept as a value per page: filling 139 GiB writes a table, not memory.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fake/driver/sync.h"
#include "fake/units.h"

namespace cuslice::fake {

using Address = unsigned long long;  // a CUdeviceptr

constexpr size_t kPageBytes = size_t{2} << 20;

class MemorySpace {
  public:
    /// Reserves addresses for at least `least` bytes, more if there is room (up to `wanted`). False: no address space.
    /// `high`: programs see them by 2^49 higher, as where the kernel has page tables of five levels.
    bool open(size_t least, size_t wanted, bool high = false);
    /// The same below 4 GiB, for the 32-bit pointers of the oldest functions.
    bool open_low();
    /// The same, but host code may touch the addresses (managed memory): then the contents lie at the addresses.
    bool open_shared(size_t least, size_t wanted);

    Address base() const { return base_; }
    size_t size() const { return size_.load(std::memory_order_acquire); }
    /// Any thread, also while another one opens it: nothing is in it until it is open.
    bool contains(Address at) const {
        const size_t size = this->size();
        return size != 0 && at - base_ < size;
    }

    /// The ranges below must lie inside; nothing is checked. Any thread; a race over the same bytes is the program's.
    void read(Address from, void* to, size_t size);
    void write(Address to, const void* from, size_t size);
    void copy(Address to, MemorySpace& source, Address from, size_t size);
    /// Repeats the 4-byte pattern, aligned to the address, over the range. A narrower value is repeated by the caller.
    void fill(Address to, uint32_t pattern, size_t size);
    /// Bytes of host memory that writing the range would take; filling it; copying to it.
    size_t write_takes(Address to, size_t size) const;
    size_t fill_takes(Address to, uint32_t pattern, size_t size) const;
    size_t copy_takes(Address to, const MemorySpace& source, Address from, size_t size) const;
    /// Forgets the contents of whole pages and gives their memory back; the edges stay.
    void discard(Address from, size_t size);

    /// From now on the contents of whole pages are always in the file, where another process may map them.
    void lend(Address from, size_t size);
    int file() const { return file_; }
    /// Whole pages get the bytes of another file for their contents, from the offset on; and their own again, zeros.
    bool adopt(Address from, size_t size, int file, size_t offset);
    void give_up(Address from, size_t size);

  private:
    // A page's state: clean (zeros, nothing stored), stored (its bytes are in the memfd), lent (the same, and so they
    // stay: other processes see them), or uniform: pattern << 32 | 2.
    static constexpr uint64_t kClean = 0, kStored = 1, kUniform = 2, kLent = 3;

    bool reserve(size_t least, size_t wanted, bool low, bool shared, Address shift = 0);
    bool back(size_t size);
    /// So many bytes as are left of the page.
    size_t within_page(Address address, size_t size) const {
        return std::min<size_t>(size, kPageBytes - (address - base_) % kPageBytes);
    }
    unsigned char* at(Address address) const { return contents_ + (address - base_); }
    std::atomic<uint64_t>& page_of(Address address) const { return pages_[(address - base_) / kPageBytes]; }
    /// Where the host writes too, a page's bytes are always in the memfd, whatever the table says.
    uint64_t state_of(Address address) const {
        return shared_ ? kStored : page_of(address).load(std::memory_order_acquire);
    }
    bool map_contents(Address from, size_t size, int file, size_t offset);
    void make_stored(Address address);
    void punch(Address from, size_t size);
    void set_pages(Address first, size_t count, uint64_t state);

    Address base_ = 0;
    std::atomic<size_t> size_{0};  // set last: with it everything else is
    int file_ = -1;
    bool shared_ = false;
    unsigned char* contents_ = nullptr;
    std::atomic<uint64_t>* pages_ = nullptr;
    SpinLock lock_;  // changes of page states
};

}  // namespace cuslice::fake
