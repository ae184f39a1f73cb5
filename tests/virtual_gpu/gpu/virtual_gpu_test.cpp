// Charges of a GPU, and what a refusal leaves of them: a GPU by itself, and two partitions of one.
#include "virtual_gpu/gpu/virtual_gpu.h"

#include <memory>
#include <vector>

#include "tests/catch.h"
#include "virtual_gpu/gpu/gpu_state.h"

using namespace cuslice;

namespace {

constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30, kUnit = Budget::kUnit, kHeadroom = 16 * kMiB;

/// Caches that keep so many bytes of the GPU that is asked, and write down what is asked of them.
class Kept : public MemoryReclaimer {
  public:
    std::uint64_t trim(VirtualGpu& gpu, std::uint64_t bytes, const ContextCache* but) override {
        asked.push_back(bytes);
        except = but;
        const std::uint64_t given = std::min(bytes, kept);
        kept -= given;
        gpu.budget().release(given);
        return given;
    }
    std::uint64_t unused(const VirtualGpu&) const override { return kept; }

    std::uint64_t kept = 0;
    std::vector<std::uint64_t> asked;
    const ContextCache* except = nullptr;
};

Kept the_caches;
unsigned looked_for_ended = 0;

Slice slice(std::uint64_t limit, const char* origin) {
    Slice made;
    made.limited = true;
    made.limit = limit;
    made.own_headroom = true;
    made.headroom = kHeadroom;
    made.origin.assign(origin);
    return made;
}

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
    std::uint64_t used() { return gpu->budget().used(); }
    void take(std::uint64_t bytes) {
        REQUIRE(gpu->reserve(bytes, nullptr));
        gpu->budget().commit();
    }
    /// Refused; nothing is charged for it or in flight.
    LimitError refused(std::uint64_t bytes) {
        const std::uint64_t before = used(), room = gpu->room();
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

std::shared_ptr<PhysicalGpu> split_gpu(const Slice& whole, std::uint64_t limits_of_parts) {
    auto gpu = std::make_shared<PhysicalGpu>();
    gpu->open({}, 2 * kGiB);
    gpu->split(whole, limits_of_parts, false);
    return gpu;
}

/// Two parts of a GPU.
struct Parts {
    Parts(std::uint64_t each, std::uint64_t whole)
        : one(split_gpu(slice(whole, "whole"), 2 * each), slice(each, "parts"), 0),
          other(one.whole, slice(each, "parts"), 1) {}
    Gpu one, other;
};

}  // namespace

TEST_CASE("a GPU's slice is had to its last unit, less headroom, and a refusal charges nothing") {
    Gpu gpu(slice(kGiB, "limit"));
    CHECK(gpu.gpu->room() == kGiB - kHeadroom);
    gpu.take(kGiB - kHeadroom - kUnit);
    const LimitError why = gpu.refused(2 * kUnit);
    CHECK(why.requested == 2 * kUnit);
    CHECK(why.used == kGiB - kHeadroom - kUnit);
    CHECK(why.ceiling == kGiB - kHeadroom);
    CHECK(why.limit == kGiB);
    CHECK(why.of == LimitOf::process);
    CHECK(gpu.gpu->origin_of(why.of, why.limit) == "limit");
    CHECK(gpu.gpu->room() == kUnit);
    gpu.take(kUnit);
    CHECK(gpu.gpu->room() == 0);
    gpu.refused(1);
    gpu.refused(~0ull);
}

TEST_CASE("a limit is never more than what the GPU has") {
    Gpu gpu(slice(16 * kGiB, "limit"));
    CHECK(gpu.gpu->limit() == 2 * kGiB);
    CHECK(gpu.refused(2 * kGiB).limit == 2 * kGiB);
}

TEST_CASE("what is charged as a fact may be over the limit, which is then seen and said") {
    Gpu gpu(slice(kGiB, "limit"));
    gpu.take(kGiB - kHeadroom);
    CHECK(gpu.gpu->within_limit(nullptr));
    gpu.gpu->budget().adjust(0, kHeadroom);
    LimitError why;
    CHECK(gpu.gpu->within_limit(&why));  // the headroom is there for it
    gpu.gpu->budget().adjust(0, kUnit);
    REQUIRE_FALSE(gpu.gpu->within_limit(&why));
    CHECK(why.used == kGiB + kUnit);
    CHECK(why.limit == kGiB);
    CHECK(gpu.gpu->room() == 0);
    gpu.refused(0);
}

TEST_CASE("two parts that are more than their GPU's slice together get no more than that") {
    Parts parts(kGiB, 1200 * kMiB);
    parts.one.take(800 * kMiB);
    CHECK(parts.other.gpu->room() == 400 * kMiB - kHeadroom);
    const LimitError why = parts.other.refused(400 * kMiB - kHeadroom + kUnit);
    CHECK(why.requested == 400 * kMiB - kHeadroom + kUnit);
    CHECK(why.used == 800 * kMiB);
    CHECK(why.ceiling == 1200 * kMiB - kHeadroom);
    CHECK(why.limit == 1200 * kMiB);
    CHECK(why.of == LimitOf::whole_gpu);
    CHECK(parts.other.gpu->origin_of(why.of, why.limit) == "whole");
    CHECK(parts.other.gpu->origin_of(LimitOf::process, 0) == "parts");
    // A refused part refuses no less than before, and the other one no more.
    parts.other.take(400 * kMiB - kHeadroom);
    CHECK(parts.other.used() == 400 * kMiB - kHeadroom);
    CHECK(parts.one.refused(kUnit).of == LimitOf::whole_gpu);
    parts.other.gpu->budget().release(kMiB);
    parts.one.take(kMiB);
}

TEST_CASE("a part's own limit is refused as its own, and charges neither it nor the whole GPU") {
    Parts parts(kGiB, 1200 * kMiB);
    const LimitError why = parts.one.refused(kGiB - kHeadroom + kUnit);
    CHECK(why.of == LimitOf::process);
    CHECK(why.limit == kGiB);
    CHECK(parts.other.gpu->room() == kGiB - kHeadroom);
}

TEST_CASE("two parts that fit their GPU's slice together don't take from each other") {
    Parts parts(600 * kMiB, 1200 * kMiB);
    parts.one.take(600 * kMiB - kHeadroom);
    CHECK(parts.other.gpu->room() == 600 * kMiB - kHeadroom);
    parts.other.take(600 * kMiB - kHeadroom);
    CHECK(parts.other.refused(kUnit).of == LimitOf::process);
}

TEST_CASE("before a GPU with caches refuses it has them give memory back, and one without them doesn't ask") {
    Slice growth = slice(kGiB, "limit");
    growth.allocator = AllocatorMode::growth;
    Gpu gpu(growth);
    gpu.take(kGiB - kHeadroom);
    the_caches.kept = 100 * kMiB;
    const unsigned looked = looked_for_ended;
    gpu.take(60 * kMiB);
    CHECK(the_caches.asked == std::vector<std::uint64_t>{60 * kMiB});
    CHECK(looked_for_ended == looked + 1);
    CHECK(gpu.used() == kGiB - kHeadroom);
    LimitError why;
    CHECK_FALSE(gpu.gpu->reserve(60 * kMiB, &why));
    CHECK(why.of == LimitOf::process);
    CHECK(why.limit == kGiB);
    CHECK(gpu.used() == kGiB - kHeadroom - 40 * kMiB);  // what was given back stays so
    Gpu direct(slice(kGiB, "limit"));
    the_caches.kept = kGiB;
    direct.refused(kGiB);
    CHECK(the_caches.asked.empty());
}

TEST_CASE("a cache that needs a segment is asked for none of its own memory") {
    Slice growth = slice(kGiB, "limit");
    growth.allocator = AllocatorMode::growth;
    Gpu gpu(growth);
    gpu.take(kGiB - kHeadroom);
    char place = 0;
    const auto* cache = reinterpret_cast<const ContextCache*>(&place);
    LimitError why;
    CHECK_FALSE(gpu.gpu->reserve_segment(2 * kMiB, *cache, &why));
    CHECK(why.limit == kGiB);
    CHECK(the_caches.except == cache);
    CHECK(gpu.used() == kGiB - kHeadroom);
    CHECK(gpu.gpu->budget().settled(gpu.gpu->budget().snapshot()));
    the_caches.kept = 2 * kMiB;
    CHECK(gpu.gpu->reserve_segment(2 * kMiB, *cache, &why));
    gpu.gpu->budget().commit();
    CHECK(gpu.used() == kGiB - kHeadroom);
}

TEST_CASE("what a program is shown is the slice, what its caches keep for it, and no more than there is") {
    Slice growth = slice(kGiB, "limit");
    growth.allocator = AllocatorMode::growth;
    Gpu gpu(growth);
    gpu.take(100 * kMiB);
    the_caches.kept = 30 * kMiB;
    CHECK(gpu.gpu->view(2 * kGiB).free == kGiB - kHeadroom - 70 * kMiB);
    CHECK(gpu.gpu->view(2 * kGiB).total == kGiB);
    CHECK(gpu.gpu->view(kMiB).free == 30 * kMiB);  // in whole segments
    Gpu direct(slice(kGiB, "limit"));
    the_caches.kept = 30 * kMiB;
    CHECK(direct.gpu->view(2 * kGiB).free == kGiB - kHeadroom);
}

TEST_CASE("what another process may still hold stays charged, and what the driver has at a time of its own doesn't") {
    // No figure of the driver's is read here, so nothing would ever say that it is gone.
    Gpu gpu(slice(kGiB, "limit"));
    gpu.take(100 * kMiB);
    gpu.gpu->release_shared(60 * kMiB);
    CHECK(gpu.used() == 100 * kMiB);
    gpu.gpu->release_later(40 * kMiB);
    CHECK(gpu.used() == 60 * kMiB);
}
