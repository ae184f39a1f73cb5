// SPDX-License-Identifier: Apache-2.0
#pragma once
// The books: one file per fake GPU in CUSLICE_FAKE_DIR, named by its UUID, that every process with a fake driver maps.
// A process's slot is the only truth of what it holds; nothing else has to be right after a kill. Beside it lies a lock
// file: byte 1 + n is held for as long as the owner of slot n lives. Byte 0 only keeps processes out of each other's
// way while slots and shared allocations change hands: a process that is stopped there holds up nobody, since all
// others go on without it after a moment.

#include <atomic>
#include <cstdint>

namespace cuslice::fake {

constexpr uint64_t kBooksMagic = 0x736b6f6f62756647ULL;
constexpr uint32_t kBooksVersion = 4;
constexpr uint32_t kBooksSlots = 1024;
/// So many ended slots are kept readable before the least recently ended one is reused.
constexpr uint32_t kBooksKeptEnded = 64;

/// So many ancestors of a process are noted, so that a watcher knows whose child it was after it has ended.
constexpr uint32_t kBooksAncestors = 16;

/// So many allocations can be shared between processes at a time.
constexpr uint32_t kBooksShared = 4096;

enum class SlotState : uint32_t { Free = 0, Live = 1, Ended = 2 };

/// A slot's state, and the number of its owner: one exchange ends a slot, and never that of its next owner.
class SlotPhase {
  public:
    constexpr SlotPhase() = default;
    constexpr SlotPhase(SlotState state, uint32_t owner) : word_(owner << 2 | static_cast<uint32_t>(state)) {}
    constexpr SlotState state() const { return static_cast<SlotState>(word_ & 3); }
    constexpr uint32_t owner() const { return word_ >> 2; }
    constexpr SlotPhase as(SlotState state) const { return {state, owner()}; }
    constexpr bool operator==(const SlotPhase&) const = default;

  private:
    uint32_t word_ = 0;
};

/// A slot's claim, in bytes. One that its owner hasn't committed to yet may be cancelled by others; a number makes
/// it differ from the owner's earlier ones.
class Claim {
  public:
    constexpr Claim() = default;
    static constexpr Claim committed(uint64_t bytes) { return Claim(bytes & kBytes); }
    static constexpr Claim pending(uint64_t bytes, uint64_t number) {
        return Claim(kPending | (number << kByteBits & ~kPending) | (bytes & kBytes));
    }
    constexpr uint64_t bytes() const { return word_ & kBytes; }
    constexpr bool is_pending() const { return (word_ & kPending) != 0; }
    constexpr bool operator==(const Claim&) const = default;

  private:
    static constexpr unsigned kByteBits = 48;
    static constexpr uint64_t kBytes = (1ULL << kByteBits) - 1, kPending = 1ULL << 63;
    explicit constexpr Claim(uint64_t word) : word_(word) {}
    uint64_t word_ = 0;
};

/// One process on one GPU. Written by its owner alone, except that anybody may end a dead one's, and cancel a claim.
struct alignas(256) Slot {
    // Fields that an allocation touches, on one cache line.
    std::atomic<Claim> claim;    // used, or what it will be if the others leave room: published before the check
    std::atomic<uint64_t> used;  // bytes charged now, everything included; stays after the end
    std::atomic<uint64_t> peak;  // highest `used`; stays after the end
    std::atomic<SlotPhase> phase;
    std::atomic<uint32_t> contexts;
    std::atomic<uint64_t> context_bytes, module_bytes;  // parts of used

    // Identity of the owner, by which others check that it still lives.
    std::atomic<int32_t> pid;
    std::atomic<uint64_t> start_time;   // field 22 of /proc/PID/stat
    std::atomic<uint64_t> mapped_at;    // where the owner maps this file: an exec drops the mapping but not the pid
    std::atomic<uint64_t> ended_order;  // counts up with every end
    std::atomic<int32_t> ancestors[kBooksAncestors];  // its parent, that one's parent, …; 0 ends the list
};
static_assert(sizeof(Slot) == 256);

/// The owner's bytes: those that it has committed to, also where it stands still before it has written that to `used`.
inline uint64_t held_bytes(const Slot& slot) {
    const Claim claim = slot.claim.load(std::memory_order_relaxed);
    return claim.is_pending() ? slot.used.load(std::memory_order_relaxed) : claim.bytes();
}

/// Memory that several processes can hold. Written under byte 0, or after a moment without it; `payer` is the only
/// truth of who pays, so that no kill leaves it between two.
struct SharedAllocation {
    std::atomic<uint64_t> id;  // 0: free
    std::atomic<uint64_t> bytes;
    std::atomic<uint32_t> payer;        // the slot of its maker, who has charged it; or an heir's and kPayerInherited
    std::atomic<uint32_t> maker;        // of physical memory: its maker's slot, also when that one pays no more
    std::atomic<uint32_t> maker_owner;  // and the number of the slot's owner then
    std::atomic<uint32_t> physical;     // 1: of cuMemCreate, in a file of its own (memory_files.cpp); else 0
    std::atomic<uint64_t> holders[kBooksSlots / 64];
};
constexpr uint32_t kPayerInherited = 1U << 31;
/// Physical memory that its maker has released: it is on the GPU, and no process is listed with it.
constexpr uint32_t kPayerNobody = ~0U;

struct BooksHeader {
    uint64_t magic;
    uint32_t version, slots;
    uint64_t capacity;
    char uuid[48];
    char name[96];
    int32_t index;
    std::atomic<uint64_t> ended;  // source of ended_order
    /// One bit for each live slot, so that a sum reads no more slots than there are processes. A slot that has just
    /// ended may still have one.
    alignas(128) std::atomic<uint64_t> live[kBooksSlots / 64];
    std::atomic<uint32_t> live_words;   // words [0, live_words) have ever had a bit set
    std::atomic<uint32_t> shared_high;  // allocations [0, shared_high) have ever been used
};

struct BooksFile {
    BooksHeader header;
    Slot slots[kBooksSlots];
    SharedAllocation shared[kBooksShared];
};

}  // namespace cuslice::fake
