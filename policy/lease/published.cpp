// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/published.h"

namespace cuslice::lease {

namespace {

// `current` has the buffer in its lowest bits, and the value's number above.
constexpr unsigned kIndexBits = 8;
constexpr uint64_t kIndexMask = (1u << kIndexBits) - 1;
static_assert(kBuffers <= kIndexMask);

constexpr size_t kWords = sizeof(State) / sizeof(uint64_t);

// A value may be written over while it is read. The copy is then thrown away, but no word of it may be undefined. A
// word that has its value is left alone, as most of a buffer has from earlier: its cache lines stay with those who read
// them. Whoever meets a word of a later value sees that `current` has changed: the writer had seen that before it
// stored the word, and the reader asks for it after it loaded the word.
void copy(const State& from, State* to) {
    const auto* source = reinterpret_cast<const uint64_t*>(&from);
    auto* target = reinterpret_cast<uint64_t*>(to);
    for (size_t i = 0; i < kWords; i++) {
        const uint64_t word = __atomic_load_n(source + i, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(target + i, __ATOMIC_RELAXED) != word)
            __atomic_store_n(target + i, word, __ATOMIC_RELEASE);
    }
}

bool is_same(const State& a, const State& b) {
    const auto* first = reinterpret_cast<const uint64_t*>(&a);
    const auto* second = reinterpret_cast<const uint64_t*>(&b);
    for (size_t i = 0; i < kWords; i++)
        if (__atomic_load_n(first + i, __ATOMIC_ACQUIRE) != __atomic_load_n(second + i, __ATOMIC_RELAXED))
            return false;
    return true;
}

// True if no other value has become current since it was `seen`, so that nobody has written over it.
bool still_is(const File& file, uint64_t seen) { return file.current.load(std::memory_order_relaxed) == seen; }

bool take(Buffer& buffer, uint64_t from, uint64_t self) {
    return buffer.owner.load(std::memory_order_relaxed) == from && buffer.owner.compare_exchange_strong(from, self);
}

void give_back(Buffer& buffer, uint64_t self) { buffer.owner.compare_exchange_strong(self, 0); }

// One that is taken is written over by nobody else, and becomes current through its owner alone. So one that is not
// current after it was taken stays so.
bool take_spare(File& file, uint32_t index, uint64_t from, uint64_t self) {
    if (!take(file.buffers[index], from, self))
        return false;
    if ((file.current.load() & kIndexMask) != index)
        return true;
    give_back(file.buffers[index], self);
    return false;
}

uint32_t take_free(File& file, uint64_t self) {
    uint32_t index = 0;
    while (index < kBuffers && !take_spare(file, index, 0, self))
        index++;
    return index;
}

// A process has one at most: another one of its own it left when it was killed at this number's first life.
uint32_t take_from_dead(File& file, uint64_t self, Surroundings& surroundings) {
    for (uint32_t index = 0; index < kBuffers; index++) {
        const uint64_t owner = file.buffers[index].owner.load();
        const bool ended = owner == self || (owner != 0 && surroundings.has_ended(owner));
        if (ended && take_spare(file, index, owner, self))
            return index;
    }
    return kBuffers;
}

}  // namespace

void publish_first(File& file, const State& state) {
    copy(state, &file.buffers[0].state);
    file.current.store(1u << kIndexBits);
}

bool read_current(const File& file, State* into, uint64_t* seen) {
    constexpr unsigned kTries = 1000;
    for (unsigned i = 0; i < kTries; i++) {
        *seen = file.current.load(std::memory_order_acquire);
        const uint64_t index = *seen & kIndexMask;
        if (index >= kBuffers)
            return false;
        copy(file.buffers[index].state, into);
        if (still_is(file, *seen))
            return true;
    }
    return false;
}

bool is_current(const File& file, uint64_t seen, const State& state) {
    return is_same(file.buffers[(seen & kIndexMask) % kBuffers].state, state) && still_is(file, seen);
}

Replaced replace_current(File& file, const State& next, uint64_t seen, uint64_t self, Surroundings& surroundings) {
    uint32_t index = take_free(file, self);
    if (index == kBuffers)
        index = take_from_dead(file, self, surroundings);
    if (index == kBuffers)
        return Replaced::no_buffer;
    copy(next, &file.buffers[index].state);
    const uint64_t number = (seen >> kIndexBits) + 1;
    const bool done = file.current.compare_exchange_strong(seen, number << kIndexBits | index);
    give_back(file.buffers[index], self);
    return done ? Replaced::yes : Replaced::no;
}

}  // namespace cuslice::lease
