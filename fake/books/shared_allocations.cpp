// SPDX-License-Identifier: Apache-2.0
// Memory that several processes hold: who they are, and which of them pays.

#include "fake/books/books.h"
#include "fake/books/file_lock.h"

namespace cuslice::fake {
namespace {

std::atomic<uint64_t>& holders_word(SharedAllocation& shared, uint32_t number) { return shared.holders[number / 64]; }
constexpr uint64_t kBeingMade = 1ULL << 63;  // in an id: its other bits are its maker's slot
bool is_made(uint64_t id) { return id != 0 && (id & kBeingMade) == 0; }
constexpr uint64_t holder_bit(uint32_t number) { return 1ULL << number % 64; }

/// The first that holds it, or kBooksSlots.
uint32_t first_holder(const SharedAllocation& shared) {
    for (uint32_t word = 0; word < kBooksSlots / 64; word++) {
        const uint64_t bits = shared.holders[word];
        if (bits != 0)
            return word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
    }
    return kBooksSlots;
}

}  // namespace

SharedAllocation* Books::find_shared(uint64_t id) const {
    for (SharedAllocation& shared : used_shared()) {
        if (shared.id.load() == id)
            return &shared;
    }
    return nullptr;
}

bool Books::new_shared(uint64_t id, uint64_t bytes, uint32_t payer, bool physical) {
    SharedAllocation* const end = file_->shared + kBooksShared;
    SharedAllocation* shared = file_->shared;
    for (;; shared++) {
        if (shared == end)
            return false;
        uint64_t free = 0;
        if (shared->id.compare_exchange_strong(free, kBeingMade | own_number()))
            break;
        // Somebody was killed while making one.
        const bool left =
            (free & kBeingMade) != 0 && file_->slots[free & ~kBeingMade].phase.load().state() != SlotState::Live;
        if (left && shared->id.compare_exchange_strong(free, kBeingMade | own_number()))
            break;
    }
    for (auto& word : shared->holders)
        word = 0;
    holders_word(*shared, own_number()) = holder_bit(own_number());
    shared->bytes = bytes;
    shared->payer = payer;
    shared->maker = own_number();
    shared->maker_owner = slot_->phase.load().owner();
    shared->physical = physical;
    const auto number = static_cast<uint32_t>(shared - file_->shared);
    raise(file_->header.shared_high, number + 1);
    shared->id = id;  // last: from here on it counts
    return true;
}

bool Books::share(uint64_t id, uint64_t bytes, bool physical) {
    const FileLock lock(lock_file_);
    return new_shared(id, bytes, own_number(), physical);
}

bool Books::hold_from_owner(uint64_t id) {
    const FileLock lock(lock_file_);
    end_the_dead();
    SharedAllocation* shared = find_shared(id);
    if (shared == nullptr || (shared->payer & kPayerInherited) != 0)
        return false;
    holders_word(*shared, own_number()) |= holder_bit(own_number());
    return true;
}

bool Books::hold_physical(uint64_t id, uint64_t bytes) {
    {
        const FileLock lock(lock_file_);
        end_the_dead();
        if (SharedAllocation* shared = find_shared(id)) {
            holders_word(*shared, own_number()) |= holder_bit(own_number());
            return true;
        }
    }
    // Everybody who held it is gone, and the descriptor that kept the contents isn't seen to (hand_out_memory_file).
    if (!charge(bytes))
        return false;
    const FileLock lock(lock_file_);
    const bool made = new_shared(id, bytes, kPayerNobody, true);
    release(bytes);
    return made;
}

void Books::drop(uint64_t id, bool pass_on) {
    const FileLock lock(lock_file_);
    if (SharedAllocation* shared = find_shared(id))
        drop_shared(*shared, own_number(), pass_on);
}

void Books::drop_shared(SharedAllocation& shared, uint32_t number, bool pass_on) {
    holders_word(shared, number) &= ~holder_bit(number);
    uint32_t payer = shared.payer;
    if (shared.physical != 0) {
        if (payer == number)
            shared.payer = kPayerNobody;
        return end_undescribed();
    }
    if ((payer & ~kPayerInherited) != number)
        return;
    const uint32_t heir = pass_on ? first_holder(shared) : kBooksSlots;
    if (heir == kBooksSlots) {
        shared.id = 0;
    } else {
        shared.payer.compare_exchange_strong(payer, heir | kPayerInherited);
    }
}

void Books::drop_all(uint32_t number, SlotPhase phase) {
    for (SharedAllocation& shared : used_shared()) {
        if (file_->slots[number].phase.load() != phase)
            return;  // others have done it meanwhile
        if (is_made(shared.id) && (holders_word(shared, number) & holder_bit(number)) != 0)
            drop_shared(shared, number, true);
    }
}

uint64_t Books::inherited(uint32_t number) const {
    uint64_t sum = 0;
    for (const SharedAllocation& shared : used_shared()) {
        const uint32_t payer = shared.payer;
        const bool counts =
            number == kBooksSlots ? (payer & kPayerInherited) != 0 : payer == (number | kPayerInherited);
        if (is_made(shared.id) && counts)
            sum += shared.bytes;
    }
    return sum;
}

uint64_t Books::unlisted(uint32_t number, SlotPhase phase) const {
    uint64_t sum = 0;
    for (const SharedAllocation& shared : used_shared()) {
        const bool its_own = shared.maker == number && shared.maker_owner == phase.owner();
        if (is_made(shared.id) && shared.payer == kPayerNobody && its_own)
            sum += shared.bytes;
    }
    return sum;
}

uint32_t Books::find_described(uint32_t from) const {
    const uint32_t high = file_->header.shared_high;
    for (uint32_t i = from; i < high; i++) {
        const SharedAllocation& shared = file_->shared[i];
        if (is_made(shared.id) && shared.payer == kPayerNobody && first_holder(shared) == kBooksSlots)
            return i;
    }
    return kBooksShared;
}

void Books::end_undescribed() {
    for (uint32_t i = find_described(0); i != kBooksShared; i = find_described(i + 1)) {
        SharedAllocation& shared = file_->shared[i];
        uint64_t id = shared.id;
        if (!is_made(id) || is_handed_out(id))
            continue;
        remove_memory_file(id);
        shared.id.compare_exchange_strong(id, 0);
    }
}

}  // namespace cuslice::fake
