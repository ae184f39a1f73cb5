// SPDX-License-Identifier: Apache-2.0
#include "tests/policy/allocator/model/shadow.h"

#include <sys/mman.h>

#include <new>

namespace cuslice::model {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// Zeros, of which only what is written to is there.
template <typename T>
T* take(uint64_t count) {
    void* memory =
        mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        throw std::bad_alloc();
    return static_cast<T*>(memory);
}

}  // namespace

Shadow::Shadow(Findings& findings, Work& work)
    : findings_(findings), work_(work), units_(take<Unit>(kUnits)), uses_(take<Uses>(kMaxUses)) {}

Shadow::~Shadow() {
    munmap(units_, kUnits * sizeof *units_);
    munmap(uses_, kMaxUses * sizeof *uses_);
}

template <typename F>
void Shadow::each(uint64_t address, uint64_t bytes, F f) {
    if (address < kBase || bytes > kBytes || address - kBase > kBytes - bytes)
        return findings_.note("an address that no segment can have", address, bytes);
    for (uint64_t at = address / kUnit * kUnit; at < address + bytes; at += kUnit)
        f(at, unit(at));
}

void Shadow::begin_segment(uint64_t address, uint64_t bytes, unsigned context) {
    each(address, bytes, [&](uint64_t at, Unit& u) {
        findings_.expect(u.context.exchange(static_cast<uint8_t>(context + 1), kRelaxed) == 0,
                         "the model hands out a segment twice", at);
        u.owner.store(kNobody, kRelaxed);
        u.uses.store(0, kRelaxed);
    });
}

void Shadow::end_segment(uint64_t address, uint64_t bytes, bool dead) {
    each(address, bytes, [&](uint64_t at, Unit& u) {
        const uint32_t owner = u.owner.load(kRelaxed);
        findings_.expect(dead || owner == kNobody || owner == kNever, "a segment with a block in it is given back", at,
                         owner);
        findings_.expect(u.context.exchange(0, kRelaxed) != 0, "a segment is given back twice", at);
    });
}

bool Shadow::in_segment(uint64_t address, unsigned context) const {
    return address >= kBase && address < kBase + kBytes && unit(address).context.load(kRelaxed) == context + 1;
}

void Shadow::hand_out(uint64_t address, uint64_t bytes, unsigned context, uint32_t id) {
    uint32_t seen = 0;  // mostly the units of a block were of one block before, too
    each(address, bytes, [&](uint64_t at, Unit& u) {
        findings_.expect(u.context.load(kRelaxed) == context + 1, "a block outside its context's segments", at);
        const uint32_t owner = u.owner.exchange(id, kRelaxed), uses = u.uses.load(kRelaxed);
        findings_.expect(owner != kNever, "memory that others may still have is handed out", at);
        findings_.expect(owner == kNobody || owner == kNever, "memory is handed out twice", at, owner);
        if (uses == seen)
            return;
        seen = uses;
        Work::Points points{};
        for (unsigned s = 0; s < Work::kStreams; s++)
            points[s] = uses_[uses].points[s].load(kRelaxed);
        findings_.expect(work_.past(points), "memory is handed out while a stream may still use it", at);
    });
}

void Shadow::free(uint64_t address, uint64_t bytes, uint32_t id, const Work::Points& uses, bool never) {
    const uint32_t place = last_uses_.fetch_add(1, kRelaxed) + 1;
    if (place >= kMaxUses)
        return findings_.note("the model has no place for so many frees");
    for (unsigned s = 0; s < Work::kStreams; s++)
        uses_[place].points[s].store(uses[s], kRelaxed);
    each(address, bytes, [&](uint64_t at, Unit& u) {
        u.uses.store(place, kRelaxed);
        findings_.expect(u.owner.exchange(never ? kNever : kNobody, kRelaxed) == id,
                         "a block was another's when it was freed", at);
    });
}

void Shadow::keep(uint64_t address, uint64_t bytes, uint32_t id) {
    each(address, bytes, [&](uint64_t at, Unit& u) {
        const uint32_t owner = u.owner.exchange(id, kRelaxed);
        findings_.expect(owner == kNobody || owner == kNever, "a block whose free was refused was handed out", at);
    });
}

void Shadow::look(uint64_t address, uint64_t bytes, uint32_t id) {
    for (const uint64_t at : {address, address + bytes / 2, address + bytes - 1})
        findings_.expect(unit(at).owner.load(kRelaxed) == id, "a block is another's while it is used", at);
}

}  // namespace cuslice::model
