// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "tests/policy/allocator/model/findings.h"
#include "tests/policy/allocator/model/work.h"

namespace cuslice::model {

// State of each 512 bytes of the GPUs' addresses: the context of their segment, the owner of their block, and the work
// that may still use them.
class Shadow {
  public:
    static constexpr uint64_t kBase = 1ull << 41, kBytes = 8ull << 30, kUnit = 512;
    static constexpr uint32_t kNobody = 0, kNever = ~0u;  // kNever: no program may have it again

    Shadow(Findings& findings, Work& work);
    ~Shadow();
    Shadow(const Shadow&) = delete;
    Shadow& operator=(const Shadow&) = delete;

    // The driver hands out a segment, and takes one back, whose blocks must all be free; `dead`: its context has ended.
    void begin_segment(uint64_t address, uint64_t bytes, unsigned context);
    void end_segment(uint64_t address, uint64_t bytes, bool dead);
    bool in_segment(uint64_t address, unsigned context) const;

    // A block is handed out; it is freed after the work of `uses`; its free was refused.
    void hand_out(uint64_t address, uint64_t bytes, unsigned context, uint32_t id);
    void free(uint64_t address, uint64_t bytes, uint32_t id, const Work::Points& uses, bool never);
    void keep(uint64_t address, uint64_t bytes, uint32_t id);
    // The block is still what it was.
    void look(uint64_t address, uint64_t bytes, uint32_t id);

    // With no segments left.
    void forget_uses() { last_uses_.store(0, std::memory_order_relaxed); }

  private:
    static constexpr uint64_t kUnits = kBytes / kUnit, kMaxUses = 1 << 22;
    struct Unit {
        std::atomic<uint32_t> owner, uses;  // of whoever had it last: a place in uses_
        std::atomic<uint8_t> context;       // and 1; 0: no segment
    };
    struct Uses {
        std::atomic<uint32_t> points[Work::kStreams];
    };
    Unit& unit(uint64_t address) const { return units_[(address - kBase) / kUnit]; }
    template <typename F>
    void each(uint64_t address, uint64_t bytes, F f);

    Findings& findings_;
    Work& work_;
    Unit* units_;
    Uses* uses_;
    std::atomic<uint32_t> last_uses_{0};
};

}  // namespace cuslice::model
