// SPDX-License-Identifier: Apache-2.0
// GPUs with a slice, by themselves or in partitions, and caches that keep memory of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice::tests {

inline constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30, kUnit = Budget::kUnit, kHeadroom = 16 * kMiB;

/// Caches that keep so many bytes of the GPU that is asked, and write down what is asked of them.
class Kept : public MemoryReclaimer {
  public:
    uint64_t trim(VirtualGpu& gpu, uint64_t bytes, const ContextCache* but) override {
        asked.push_back(bytes);
        except = but;
        const uint64_t given = std::min(bytes, kept);
        kept -= given;
        gpu.budget().release(given);
        return given;
    }
    uint64_t unused(const VirtualGpu&) const override { return kept; }

    uint64_t kept = 0;
    std::vector<uint64_t> asked;
    const ContextCache* except = nullptr;
};

inline Kept the_caches;
inline unsigned looked_for_ended = 0;

/// A slice of so many bytes with 16 MiB of headroom.
inline Slice slice(uint64_t limit, const char* origin) {
    Slice made;
    made.limited = true;
    made.limit = limit;
    made.own_headroom = true;
    made.headroom = kHeadroom;
    made.origin.assign(origin);
    return made;
}

/// A GPU of 2 GiB of which the driver's footprint can't be read.
struct Gpu {
    explicit Gpu(Slice made) : whole(std::make_shared<PhysicalGpu>()) {
        whole->open({}, 2 * kGiB);
        open(made, 0);
    }
    /// A part of a GPU.
    Gpu(std::shared_ptr<PhysicalGpu> physical, Slice made, int ordinal) : whole(std::move(physical)) {
        open(made, ordinal);
    }
    void open(const Slice& made, int ordinal) {
        GpuState& state = gpu_state();
        state.reclaimer = &the_caches;
        state.start_nvml = [] { return false; };
        state.look_for_ended = [](VirtualGpu&) { looked_for_ended++; };
        the_caches.kept = 0;
        the_caches.asked.clear();
        gpu->open(ordinal, {}, *whole, "made up", made);
    }
    uint64_t used() { return gpu->budget().used(); }
    std::string_view origin_of(LimitOf limit, uint64_t bytes) const {
        return gpu->slice().origin_of(limit, bytes, whole->whole_slice());
    }
    void take(uint64_t bytes) {
        REQUIRE(gpu->reserve(bytes, nullptr));
        gpu->budget().commit();
    }
    /// Refused; nothing is charged for it or in flight.
    LimitError refused(uint64_t bytes) {
        const uint64_t before = used(), room = gpu->room();
        LimitError why;
        CHECK_FALSE(gpu->reserve(bytes, &why));
        CHECK_FALSE(gpu->reserve(bytes, nullptr));
        CHECK_FALSE(gpu->reserve_at_once(bytes));
        CHECK(used() == before);
        CHECK(gpu->room() == room);
        CHECK(gpu->budget().settled(gpu->budget().snapshot()));
        return why;
    }

    std::shared_ptr<PhysicalGpu> whole;
    std::unique_ptr<VirtualGpu> gpu = std::make_unique<VirtualGpu>();
};

inline std::shared_ptr<PhysicalGpu> split_gpu(const Slice& whole, uint64_t limits_of_parts) {
    auto gpu = std::make_shared<PhysicalGpu>();
    gpu->open({}, 2 * kGiB);
    gpu->split(whole, limits_of_parts, false);
    return gpu;
}

/// Two parts of a GPU.
struct Parts {
    Parts(uint64_t each, uint64_t whole)
        : one(split_gpu(slice(whole, "whole"), 2 * each), slice(each, "parts"), 0),
          other(one.whole, slice(each, "parts"), 1) {}
    Gpu one, other;
};

}  // namespace cuslice::tests
