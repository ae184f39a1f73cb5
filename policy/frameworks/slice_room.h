// SPDX-License-Identifier: Apache-2.0
// Bytes that a limit leaves to a program on each GPU: the limit, less the context and the headroom, or all of a limit
// that the context comes on top of. The launcher and the preloaded library work them out here, so that both tell
// frameworks the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "config/settings.h"
#include "config/split/plan.h"
#include "policy/budget/library_reserve.h"

namespace cuslice {

/// Believed size of a context before there is one, in bytes: 518 MiB on an H200 (docs/results/), other GPUs not
/// measured. Too little would have JAX fill the slice before cuBLAS has its workspace.
inline constexpr uint64_t kBelievedContext = 520ull << 20;

/// One slice, in bytes.
struct SliceRoom {
    /// Something limits it: a limit, a fraction, a group's limit, or a split.
    bool limited = false;
    uint64_t limit = 0;
    /// The GPU's context; for a part, its share of that.
    uint64_t context = 0;
    /// False: `context` is kBelievedContext.
    bool context_known = false;
    uint64_t headroom = 0;
    /// The context comes on top of the limit.
    bool plus_context = false;

    /// Bytes that the program can allocate.
    uint64_t left() const {
        const uint64_t taken = (plus_context ? 0 : context) + headroom;
        return limit > taken ? limit - taken : 0;
    }
    /// Bytes of left() that a framework's pool leaves to CUDA's libraries; nothing where these come on top as well.
    uint64_t libraries() const { return plus_context ? 0 : library_reserve(left()); }
};

/// A physical GPU that a program sees, before there is a context.
struct SeenGpu {
    GpuIdentity identity;
    /// Bytes; 0: not known.
    uint64_t total = 0;
    /// Bytes of a context; known of fake GPUs.
    std::optional<uint64_t> context;
};

/// A part's share of a context on its GPU, in bytes: in proportion to its size, as PhysicalGpu charges it. `all`: the
/// bytes of all parts of that GPU that a program sees.
uint64_t share_of_context(uint64_t context, uint64_t part, uint64_t all);
/// The same of a plan, in which all parts are of one GPU.
uint64_t share_of_context(uint64_t context, const VirtualPart& part, const VirtualParts& parts);

/// The slice of a whole GPU, given its limit. Pure.
SliceRoom room_of(const Settings& settings, const SeenGpu& gpu, uint64_t limit);
/// The same of a part of `gpu`, where `all` is as above. Pure.
SliceRoom room_of_part(const Settings& settings, const SeenGpu& gpu, uint64_t limit, uint64_t all);

/// The slices of one GPU: one for each part of a GPU that is split. About 8 KiB.
class SliceRooms {
  public:
    /// None of a GPU whose memory is not known, or whose split does not fit.
    void find(const Settings& settings, const SeenGpu& gpu);
    std::span<const SliceRoom> view() const { return {rooms_, count_}; }

  private:
    SliceRoom rooms_[VirtualParts::kMax];
    size_t count_ = 0;
    VirtualParts parts_;
};

}  // namespace cuslice
