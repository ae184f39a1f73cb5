// SPDX-License-Identifier: Apache-2.0
// Two parts of a GPU whose limits are shared with other processes: each has accounts of its own, within the GPU's.
#include <memory>
#include <string>

#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"
#include "tests/virtual_gpu/gpu/measured_gpu.h"
#include "virtual_gpu/gpu/driver_steps.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

GpuIdentity named(const std::string& uuid) {
    GpuIdentity identity;
    uuid.copy(identity.uuid, sizeof identity.uuid - 1);
    return identity;
}

Slice slice(uint64_t limit) {
    Slice made;
    made.limited = made.own_headroom = true;
    made.limit = made.job_limit = limit;
    return made;
}

/// A GPU of 16 GiB in two parts of 8 GiB, in a job. The ledger of the second part is the one of tests/policy/ledger.
struct Parts {
    explicit Parts(const LedgerFolder& folder) : folder_(folder) {
        GpuState& state = gpu_state();
        kept_of_gpus = {};
        state.reclaimer = &kept_of_gpus;
        state.start_nvml = [] { return false; };
        state.look_for_ended = [](VirtualGpu&) {};
        state.sharing.folder.assign(folder.path);
        state.sharing.jobs[0].assign("job");
        state.sharing.job_count = 1;
        physical->open(named(kWhole), kCapacity);
        physical->split(slice(kCapacity), kCapacity, false);
        one->open(0, named(kOne), *physical, "made up", slice(8 * kGiB));
        other->open(1, named(kUuid), *physical, "made up", slice(8 * kGiB));
    }
    ~Parts() {
        gpu_state().sharing.folder.clear();
        gpu_state().sharing.job_count = 0;
    }
    static bool take(VirtualGpu& part, uint64_t bytes) {
        LimitError why;
        const bool taken = part.reserve(bytes, &why);
        if (taken)
            part.budget().commit();
        CHECK(why.no_place == !taken);
        return taken;
    }
    /// Bytes that the job's account holds in the ledger of this UUID.
    uint64_t held(const char* uuid) const {
        GpuSharing watcher;
        auto watched = std::make_unique<ledger::Watched>();
        return watcher.watch(gpu_state().sharing, uuid, watched.get()) ? watched->used : 0;
    }

    static constexpr const char *kWhole = "GPU-00000000-1111-2222-3333-555555555555",
                                *kOne = "GPU-00000000-1111-2222-3333-666666666666";
    std::unique_ptr<PhysicalGpu> physical = std::make_unique<PhysicalGpu>();
    std::unique_ptr<VirtualGpu> one = std::make_unique<VirtualGpu>(), other = std::make_unique<VirtualGpu>();

  private:
    const LedgerFolder& folder_;
};

// Steps of a forked child.
struct ForkedStep {
    static constexpr char forget_sharing = 'f';
    static constexpr char reserve_in_one = '1';
    static constexpr char reserve_in_other = '2';
};

}  // namespace

TEST_CASE("where one part's place is refused no part goes on, and later all of them do") {
    const LedgerFolder folder;
    Parts parts(folder);
    // Something is charged that nobody had to ask for.
    parts.one->budget().adjust(0, 8 * kMiB);
    {
        // Others are promised 12 of the second partition's 16 GiB.
        Child others(member(folder, 12 * kGiB, 12 * kGiB));
        REQUIRE(others.ask(Step::join) == Answer::joined);
        for (int i = 0; i < 2; i++) {
            CHECK_FALSE(parts.take(*parts.one, kMiB));
            CHECK_FALSE(parts.take(*parts.other, kMiB));
        }
        CHECK(parts.one->budget().used() == 8 * kMiB);
        CHECK(parts.other->budget().used() == 0);
    }
    CHECK(parts.take(*parts.one, kMiB));
    CHECK(parts.take(*parts.other, 2 * kMiB));
    // Each is charged once in its own account, and both in the GPU's.
    CHECK(parts.held(Parts::kOne) == 9 * kMiB);
    CHECK(parts.held(kUuid) == 2 * kMiB);
    CHECK(parts.held(Parts::kWhole) == 11 * kMiB);
}

TEST_CASE("one part's first allocation makes all parts members, within the job's limit of each") {
    const LedgerFolder folder;
    Parts parts(folder);
    REQUIRE(parts.take(*parts.one, kMiB));
    CHECK(parts.other->siblings().sharing().joined());
    CHECK(parts.physical->sharing().joined());
    CHECK(parts.other->limit() == 8 * kGiB);
    CHECK(parts.other->room() == 8 * kGiB);
    LimitError why;
    CHECK_FALSE(parts.one->reserve(8 * kGiB, &why));
    CHECK(why.of == LimitOf::job);
    CHECK(parts.held(Parts::kOne) == kMiB);
    CHECK(parts.held(Parts::kWhole) == kMiB);
    CHECK(parts.take(*parts.one, 8 * kGiB - kMiB));
    CHECK(parts.one->room() == 0);
    CHECK(parts.other->room() == 8 * kGiB);
}

TEST_CASE("a forked child's parts are members of their own, and the parent keeps its places") {
    const LedgerFolder folder;
    Parts parts(folder);
    REQUIRE(parts.take(*parts.one, kMiB));
    Child child([&](char step) {
        if (step == ForkedStep::forget_sharing) {
            for (VirtualGpu* part : {parts.one.get(), parts.other.get()})
                part->forget_sharing();
            return parts.one->siblings().sharing().joined() ? Answer::refused : Answer::done;
        }
        VirtualGpu& part = step == ForkedStep::reserve_in_one ? *parts.one : *parts.other;
        if (!part.reserve(4 * kMiB, nullptr))
            return Answer::refused;
        part.budget().commit();
        return Answer::reserved;
    });
    REQUIRE(child.ask(ForkedStep::forget_sharing) == Answer::done);
    REQUIRE(child.ask(ForkedStep::reserve_in_one) == Answer::reserved);
    REQUIRE(child.ask(ForkedStep::reserve_in_other) == Answer::reserved);
    CHECK(parts.held(kUuid) == 4 * kMiB);
    CHECK(parts.held(Parts::kOne) >= 5 * kMiB);
    child.end();
    CHECK(parts.take(*parts.one, kMiB));
    CHECK(parts.one->siblings().sharing().budget().limit() == 8 * kGiB);
}

TEST_CASE("what others of the group hold on a GPU is not taken for what an unseen context took") {
    const LedgerFolder folder;
    MeasuredMachine nvml;
    machine.listed = false;
    PhysicalGpu physical;
    physical.open(named(kUuid), kCapacity);
    const auto gpu = std::make_unique<VirtualGpu>();
    Slice shared = measured_slice(8 * kGiB, 0);
    shared.group_limit = 8 * kGiB;
    gpu->open(0, named(kUuid), physical, "made up", shared);
    gpu_state().sharing.folder.assign(folder.path);
    gpu_state().sharing.group.assign("lab");
    Child others(member(folder));
    REQUIRE(others.ask(Step::join) == Answer::joined);
    REQUIRE(others.ask(Step::reserve_5_gib) == Answer::reserved);
    machine.all = 5 * kGiB + 300 * kMiB;
    DriverSteps(*gpu).charge_unseen_context();
    CHECK(gpu->driver_footprint() == 300 * kMiB);
    // Memory that others give back in the same instant is not deducted from the context, which is still there.
    machine.all -= 200 * kMiB;
    DriverSteps(*gpu).charge_unseen_context();
    CHECK(gpu->driver_footprint() == 300 * kMiB);
    // With them, and with its own, it is within the group's limit.
    REQUIRE(gpu->reserve(kGiB, nullptr));
    gpu->budget().commit();
    CHECK(gpu->room() == 2 * kGiB - 300 * kMiB);
    LimitError why;
    CHECK_FALSE(gpu->reserve(2 * kGiB, &why));
    CHECK(why.of == LimitOf::group);
    CHECK(why.others == 5 * kGiB);
    gpu_state().sharing.folder.clear();
    gpu_state().sharing.group.clear();
}
