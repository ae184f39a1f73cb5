// SPDX-License-Identifier: Apache-2.0
// After a refusal everything is as before: what is current, the thread's stack of contexts, its device, what the call
// would have put somewhere, and the bytes that the process holds.
#include "tests/catch.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

/// Two GPUs with contexts of 300 MiB.
std::string two_gpus(const Folder& folder) {
    const std::string gpu = "[[gpu]]\nprofile = \"laptop-2g\"\ncompute-capability = \"9.0\"\ncontext = \"300MiB\"\n";
    return folder.write("gpus.toml", gpu + gpu);
}

/// No context fits on the program's GPU 1.
Words settings(const std::string& mode) {
    if (mode == "split")
        return {"CUSLICE_LIMIT=0=1200MiB", "CUSLICE_SPLIT=1=100MiB+100MiB", "CUSLICE_HEADROOM=16MiB"};
    return {"CUSLICE_LIMIT=0=1200MiB,1=200MiB", "CUSLICE_HEADROOM=16MiB", "CUSLICE_ALLOCATOR=" + mode};
}

const Words kContexts{"cuCtxCreate",    "cuCtxCreate_v2",           "cuCtxCreate_v3",
                      "cuCtxCreate_v4", "cuDevicePrimaryCtxRetain", "cuGreenCtxCreate"};
const Words kMemory{"cuMemAlloc",      "cuMemAlloc_v2",           "cuMemAllocPitch_v2", "cuMemAllocManaged",
                    "cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemCreate"};
const Words kNoted{"cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemCreate"};
const Words kMeasured{"cuModuleLoadData", "cuModuleLoadDataEx", "cuArrayCreate_v2", "cuArray3DCreate_v2",
                      "cuMipmappedArrayCreate"};

struct Place {
    Place(const std::string& mode, const std::string& stack)
        : caches(mode == "growth"),
          guest({std::string(CUSLICE_TEST_GUESTS) + "/guest_refusals", stack, "1"},
                sliced(two_gpus(folder), folder.path(), settings(mode))) {}
    /// Where memory is cached, the books say what is held, whoever has it.
    void check_refused(const std::string& call) {
        const Held before = all_books_of(folder.path(), guest.pid());
        CHECK(guest.code(call) == kOutOfMemory);
        const Held after = all_books_of(folder.path(), guest.pid());
        if (!caches)
            CHECK(after.used == before.used);
        CHECK(after.contexts == before.contexts);
    }

    bool caches;
    Folder folder;
    Guest guest;
};

TEST_CASE("after a refused context the thread's stack, its current context and its GPU's memory are as before") {
    const std::string mode = GENERATE("direct", "growth", "split"), stack = GENERATE("stacked", "bare");
    Place place(mode, stack);
    for (int round = 0; round < 2; round++)
        for (const std::string& call : kContexts) {
            CAPTURE(mode, stack, round, call);
            place.check_refused(call);
        }
}

TEST_CASE("after refused memory the thread and its books are as before") {
    const std::string mode = GENERATE("direct", "growth", "split");
    Place place(mode, "stacked");
    for (int round = 0; round < 2; round++)
        for (const std::string& call : kMemory) {
            CAPTURE(mode, round, call);
            place.check_refused(call);
        }
}

TEST_CASE("memory that there is no host memory to note is refused, and the thread and its books are as before") {
    if (!kSanitizer.empty())
        return skip("the guest's mmap would take the place of the sanitizer's");
    const std::string mode = GENERATE("direct", "split");
    Place place(mode, "stacked");
    for (int round = 0; round < 2; round++)
        for (const std::string& call : kNoted) {
            CAPTURE(mode, round, call);
            place.check_refused("unnoted " + call);
        }
}

TEST_CASE("after refused modules and arrays the thread's contexts and its free memory are as before") {
    const std::string mode = GENERATE("direct", "growth", "split");
    Place place(mode, "stacked");
    for (int round = 0; round < 2; round++)
        for (const std::string& call : kMeasured) {
            CAPTURE(mode, round, call);
            const std::string answer = place.guest.ask(call);
            CHECK(answer == "2");
        }
}

}  // namespace
}  // namespace cuslice::tests
