// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/managed.h"

#include <algorithm>
#include <atomic>

#include "fake/driver/host_room.h"

namespace cuslice::fake {
namespace {

/// Bytes of managed memory, of all GPUs in this process, that lie on the host.
std::atomic<uint64_t> on_host{0};

bool take_from_host(uint64_t bytes) {
    static const uint64_t most = machine_memory();
    uint64_t now = on_host.load(std::memory_order_relaxed);
    do {
        if (bytes > most || now > most - bytes)
            return false;
    } while (!on_host.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
    return true;
}

void give_to_host(uint64_t bytes) { on_host.fetch_sub(bytes, std::memory_order_relaxed); }

uint64_t room_of(Books& books) {
    const uint64_t used = books.used_by_all();
    return books.capacity() - std::min(used, books.capacity());
}

}  // namespace

bool ManagedMemory::take(Books& books, uint64_t bytes, bool may_exceed) {
    if (books.charge(bytes)) {
        total_ += bytes;
        resident_ += bytes;
        return true;
    }
    if (!may_exceed)
        return false;
    uint64_t fits = std::min(bytes, room_of(books));
    if (fits != 0 && !books.charge(fits))
        fits = 0;  // another process was faster
    if (!take_from_host(bytes - fits)) {
        if (fits != 0)
            books.release(fits);
        return false;
    }
    total_ += bytes;
    resident_ += fits;
    return true;
}

void ManagedMemory::give_back(Books& books, uint64_t bytes) {
    const uint64_t before = total_ - resident_, leaves = resident_ - std::min(resident_, total_ - bytes);
    total_ -= bytes;
    resident_ -= leaves;
    if (leaves != 0)
        books.release(leaves);
    give_to_host(before - (total_ - resident_));
}

bool ManagedMemory::make_room(Books& books, uint64_t bytes) {
    const uint64_t room = room_of(books), missing = bytes - std::min(bytes, room);
    if (missing > resident_ || !take_from_host(missing))
        return false;
    resident_ -= missing;
    if (missing != 0)
        books.release(missing);
    return true;
}

}  // namespace cuslice::fake
