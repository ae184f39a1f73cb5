// SPDX-License-Identifier: Apache-2.0
#pragma once
// One process's access to the books of one GPU: claim a slot, charge and release bytes, read what everybody holds.

#include <bit>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fake/books/layout.h"
#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

/// The folder of the books: CUSLICE_FAKE_DIR, else /dev/shm/cuslice-fake-<uid>.
std::string books_folder();
/// Makes it if need be. False, and why: it can't be made, or the usual one is another user's.
bool make_books_folder(std::string& error);

/// Raises a number that several processes raise.
inline void raise(std::atomic<uint32_t>& number, uint32_t to) {
    uint32_t now = number;
    while (now < to && !number.compare_exchange_weak(now, to)) {
    }
}

/// A process's figures in the books.
struct Holder {
    int pid = 0;
    int pid_here = 0;  // in the pid namespace of whoever asks; 0: it is not visible there, or has ended
    bool live = false;
    uint64_t used = 0;  // for an ended one: when it ended
    uint64_t peak = 0;
    /// Physical memory that it made, exported and released, as long as somebody keeps it on the GPU: no process is
    /// listed with it, and it is in no `used`.
    uint64_t unlisted = 0;
    uint64_t context_bytes = 0, module_bytes = 0;
    unsigned contexts = 0;
    uint64_t order = 0;          // of ended ones: the higher, the later
    std::vector<int> ancestors;  // the parent first
};

class Books {
  public:
    /// Maps the books of a GPU, creating them if need be. Takes no slot. On failure false and why in `error`.
    bool open(const GpuSpec& gpu, std::string& error);
    /// Maps an existing books file to read it.
    bool open_existing(const std::string& path, std::string& error);

    /// Takes a slot for this process; ends those of the dead. Once, before any charge.
    bool claim_slot(std::string& error);
    /// Gives the slot back at the end of the process. Its last figures stay readable until the slot is reused.
    void end_slot();

    /// Charges bytes to this process if all processes together stay within the capacity; else false and nothing is
    /// charged. The caller holds the GPU's lock: within a process one thread at a time. No system call while there is
    /// room.
    bool charge(uint64_t bytes) {
        const uint64_t mine = used_ + bytes;
        const Claim pending = claim(mine);  // published before the others' claims are read
        if (claimed() > capacity_ || !confirm(pending)) [[unlikely]] {
            withdraw();
            return charge_last(bytes);
        }
        commit(mine);
        return true;
    }
    /// Releases bytes that were charged; the same lock.
    void release(uint64_t bytes) {
        used_ -= bytes;
        slot_->used.store(used_, std::memory_order_relaxed);
        slot_->claim.store(Claim::committed(used_), std::memory_order_release);
    }
    /// Says which part of what is charged are contexts and modules; the same lock.
    void note_contexts(int64_t bytes, int contexts) {
        slot_->context_bytes.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
        slot_->contexts.fetch_add(static_cast<unsigned>(contexts), std::memory_order_relaxed);
    }
    /// This process's contexts.
    unsigned contexts() const { return slot_ != nullptr ? slot_->contexts.load(std::memory_order_relaxed) : 0; }
    void note_modules(int64_t bytes) {
        slot_->module_bytes.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
    }

    // Memory that other processes can hold too. Whoever made it pays as long as it has it, then whoever else holds it.
    // Physical memory has no heirs: it stays on the GPU until its last holder and its last descriptor are gone, and
    // after its maker nobody pays (seen on an H200 with driver 580.159.04, 2026-11-27). The same lock; `id` is a
    // number that nobody else chooses.

    /// This process's own bytes, charged already, can be held by others from now on. False: no room for one more.
    bool share(uint64_t id, uint64_t bytes, bool physical = false);
    /// Holds another's memory too; false if the one who made it has it no more.
    bool hold_from_owner(uint64_t id);
    /// Holds another's physical memory too. What is on the GPU no more takes its room again; false if there is none.
    bool hold_physical(uint64_t id, uint64_t bytes);
    /// Holds it no more. Who pays for it passes it on to another holder, if `pass_on`; an owner releases its own
    /// charge.
    void drop(uint64_t id, bool pass_on);

    // The files of physical memory that can be exported (memory_files.cpp).

    /// A new file for the memory of that number, or -1 with errno. It is this process's own until it is forgotten.
    int make_memory_file(uint64_t id);
    /// A descriptor of that file to hand out: the memory stays on the GPU as long as it, or a copy of it, is open
    /// anywhere. -1 where there is no such file, or its system has no locks of open files.
    int hand_out_memory_file(uint64_t id);
    /// A descriptor for a holder's own use, or -1.
    int open_memory_file(uint64_t id);
    /// For memory that was never shared.
    void remove_memory_file(uint64_t id);

    /// Bytes that all processes hold together. Any thread. Ends the slots of dead processes first. Makes no system
    /// call while no other process has a slot, unless there is memory that a descriptor alone may keep.
    uint64_t used_by_all() {
        bool alone = !any_described();
        each_live([&](const Slot& slot, uint32_t) { alone = alone && &slot == slot_; });
        if (!alone || slot_ == nullptr)
            return used_with_others();
        return slot_->used.load(std::memory_order_relaxed) + inherited_by_all();
    }
    uint64_t capacity() const { return capacity_; }

    /// Everybody whose figures are still readable, the living checked. `known`: false if it couldn't be seen of each
    /// whether it lives; such a one counts as living.
    std::vector<Holder> holders(bool* known = nullptr);
    /// Holder::unlisted of a slot.
    uint64_t unlisted(uint32_t number, SlotPhase phase) const;
    const BooksHeader& header() const { return file_->header; }

  private:
    /// Calls f(slot, number) for every live slot. The state is on the cache line that f reads anyway.
    template <typename F>
    void each_live(F&& f) const {
        const uint32_t words = file_->header.live_words.load(std::memory_order_relaxed);
        for (uint32_t word = 0; word < words; word++) {
            uint64_t bits = file_->header.live[word].load(std::memory_order_relaxed);
            for (; bits != 0; bits &= bits - 1) {
                const auto number = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
                Slot& slot = file_->slots[number];
                if (slot.phase.load(std::memory_order_relaxed).state() == SlotState::Live)
                    f(slot, number);
            }
        }
    }
    uint64_t claimed() const {
        uint64_t sum = 0;
        each_live([&](const Slot& slot, uint32_t) { sum += slot.claim.load(std::memory_order_relaxed).bytes(); });
        return sum + inherited_by_all();
    }
    uint32_t own_number() const { return static_cast<uint32_t>(slot_ - file_->slots); }
    /// The allocations that have ever been used.
    std::span<SharedAllocation> used_shared() const { return {file_->shared, file_->header.shared_high}; }
    SharedAllocation* find_shared(uint64_t id) const;
    bool new_shared(uint64_t id, uint64_t bytes, uint32_t payer, bool physical);
    void drop_shared(SharedAllocation& shared, uint32_t number, bool pass_on);
    /// For the slot of `phase`, which ends.
    void drop_all(uint32_t number, SlotPhase phase);
    /// Bytes that a process pays for without having charged them itself; kBooksSlots: those of all processes.
    uint64_t inherited(uint32_t number) const;
    uint64_t inherited_by_all() const {
        return file_->header.shared_high.load(std::memory_order_relaxed) == 0 ? 0 : inherited(kBooksSlots);
    }
    bool any_described() const {
        return file_->header.shared_high.load(std::memory_order_relaxed) != 0 && find_described(0) != kBooksShared;
    }
    /// The first from there on of physical memory that nobody holds and a descriptor may keep; kBooksShared: none.
    uint32_t find_described(uint32_t from) const;
    /// Ends such memory that no descriptor keeps.
    void end_undescribed();
    std::string memory_file_path(uint64_t id) const;
    bool is_handed_out(uint64_t id) const;
    void remove_stray_files() const;
    Claim claim(uint64_t mine) {
        const Claim pending = Claim::pending(mine, ++claims_);
        slot_->claim.store(pending, std::memory_order_seq_cst);
        return pending;
    }
    /// False: somebody has cancelled it.
    bool confirm(Claim pending) {
        return slot_->claim.compare_exchange_strong(pending, Claim::committed(pending.bytes()),
                                                    std::memory_order_seq_cst);
    }
    void withdraw() { slot_->claim.store(Claim::committed(used_), std::memory_order_seq_cst); }
    void commit(uint64_t mine) {
        used_ = mine;
        slot_->used.store(mine, std::memory_order_relaxed);
        if (mine > slot_->peak.load(std::memory_order_relaxed))
            slot_->peak.store(mine, std::memory_order_relaxed);
    }
    bool charge_last(uint64_t bytes);
    bool map(const std::string& path, bool create, const GpuSpec* gpu, std::string& error);
    void cancel_claims_of_others();
    uint64_t used_with_others();
    uint64_t used_now() const;
    uint32_t choose_slot(const std::bitset<kBooksSlots>& taken) const;
    /// Ends the slots of the dead; false if it couldn't be seen of each whether it is.
    bool end_the_dead();
    void end(Slot& slot, uint32_t number, SlotPhase phase);

    std::string path_;
    BooksFile* file_ = nullptr;
    Slot* slot_ = nullptr;
    uint64_t used_ = 0;    // slot_->used, where no other process's reads disturb it
    uint64_t claims_ = 0;  // so many were published
    uint64_t capacity_ = 0;
    uint64_t inode_ = 0;
    int lock_file_ = -1;  // never closed: closing any descriptor of it would drop the slot's lock
};

}  // namespace cuslice::fake
