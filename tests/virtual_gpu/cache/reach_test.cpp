// SPDX-License-Identifier: Apache-2.0
// Contexts whose work can touch a context's memory. Ordinals start at 10: other test files make lower ones siblings, as
// partitions of a split GPU.
#include "virtual_gpu/cache/reach.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/rounds.h"
#include "tests/virtual_gpu/made_up_driver.h"
#include "tests/virtual_gpu/split/made_up_split.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr CUdeviceptr kAddress = CUdeviceptr{1} << 42;

/// A context on each of three GPUs; the first one is current in this thread.
struct Scene {
    Scene() {
        for (size_t i = 0; i < all.size(); i++)
            driver.make(all[i], static_cast<CUdevice>(10 + i));
        MadeUpDriver::stack() = {all[0]};
    }
    std::vector<CUcontext> of(CUcontext context, size_t most = Reach::kMaxContexts) {
        std::vector<CUcontext> into(Reach::kMaxContexts + 1, kUntouched);
        const size_t count = reach->list(gpu_state().contexts, context, kAddress, into.data(), most);
        CHECK(MadeUpDriver::stack() == std::vector<CUcontext>{all[0]});
        CHECK(std::all_of(into.begin() + static_cast<long>(std::min(count, most)), into.end(),
                          [](CUcontext one) { return one == kUntouched; }));
        into.resize(std::min(count, most));
        std::sort(into.begin(), into.end());
        found = count;
        return into;
    }
    unsigned asked() { return driver.calls_of("cuDeviceCanAccessPeer"); }

    using List = std::vector<CUcontext>;
    static inline const CUcontext kUntouched = context(0xdead);
    const List all{context(1), context(2), context(3)};
    size_t found = 0;
    MadeUpDriver driver;
    std::unique_ptr<Reach> reach = std::make_unique<Reach>();
};

}  // namespace

TEST_CASE("memory is in the reach of its own GPU's contexts alone, where no access can be given") {
    Scene scene;
    const CUcontext beside = context(4);
    scene.driver.make(beside, 10);
    CHECK(scene.of(scene.all[0]) == Scene::List{scene.all[0], beside});
    CHECK(scene.of(beside) == Scene::List{scene.all[0], beside});
    CHECK(scene.of(scene.all[1]) == Scene::List{scene.all[1]});
}

TEST_CASE("another GPU's context reaches memory as long as the driver lets its kernels use the address") {
    Scene scene;
    scene.driver.peers = {{11, 10}};
    CHECK(scene.of(scene.all[0]) == Scene::List{scene.all[0]});
    scene.driver.reaches = {scene.all[1], scene.all[2]};
    CHECK(scene.of(scene.all[0]) == Scene::List{scene.all[0], scene.all[1]});
    CHECK(scene.of(scene.all[1]) == Scene::List{scene.all[1]});  // the other way no access can be given
    scene.driver.reaches.clear();
    CHECK(scene.of(scene.all[0]) == Scene::List{scene.all[0]});
}

TEST_CASE("whether access can be given is asked once for each two GPUs, and again if the driver didn't say") {
    Scene scene;
    scene.driver.peers = {{11, 10}};
    scene.driver.say["cuDeviceCanAccessPeer"] = CUDA_ERROR_UNKNOWN;
    scene.driver.reaches = {scene.all[1], scene.all[2]};
    CHECK(scene.of(scene.all[0]) == scene.all);  // what isn't known counts as yes
    const unsigned before = scene.asked();
    CHECK(before == 2);
    scene.driver.say.clear();
    CHECK(scene.of(scene.all[0]) == Scene::List{scene.all[0], scene.all[1]});
    CHECK(scene.asked() == before + 2);
    CHECK(scene.of(scene.all[0]) == Scene::List{scene.all[0], scene.all[1]});
    CHECK(scene.asked() == before + 2);
}

TEST_CASE("a context whose access can't be asked about counts as one that has it") {
    Scene scene;
    scene.driver.peers = {{11, 10}};
    SECTION("the driver says something else") { scene.driver.say["cuPointerGetAttribute"] = CUDA_ERROR_UNKNOWN; }
    SECTION("it is ending and can't be entered") { scene.driver.say["cuCtxPushCurrent"] = CUDA_ERROR_INVALID_CONTEXT; }
    CHECK(scene.of(scene.all[0]) == Scene::List{scene.all[0], scene.all[1]});
}

TEST_CASE("GPUs that have copied among each other reach each other's memory from then on, and no other GPU's") {
    Scene scene;
    scene.reach->copied_among(Reach::bit(10) | Reach::bit(12));
    CHECK(scene.of(scene.all[0]) == Scene::List{scene.all[0], scene.all[2]});
    CHECK(scene.of(scene.all[2]) == Scene::List{scene.all[0], scene.all[2]});
    CHECK(scene.of(scene.all[1]) == Scene::List{scene.all[1]});
    scene.reach->copied_among(Reach::bit(10) | Reach::bit(11));
    CHECK(scene.of(scene.all[0]) == scene.all);
    CHECK(scene.of(scene.all[2]) == Scene::List{scene.all[0], scene.all[2]});
}

TEST_CASE("a GPU with an ordinal beyond 64 may be any of them, and reaches everything") {
    CHECK(Reach::bit(0) == 1);
    CHECK(Reach::bit(63) == 1ull << 63);
    CHECK(Reach::bit(64) == ~0ull);
    CHECK(Reach::bit(-1) == ~0ull);
    Scene scene;
    const CUcontext last = context(4), beyond = context(5);
    scene.driver.make(last, 63);
    CHECK(scene.of(scene.all[0]) == Scene::List{scene.all[0]});
    scene.driver.make(beyond, 64);
    CHECK(scene.of(scene.all[0]) == Scene::List{scene.all[0], beyond});
    CHECK(scene.of(beyond).size() == 5);
}

TEST_CASE("memory of a context that is not known is in everybody's reach") {
    Scene scene;
    CHECK(scene.of(context(99)) == scene.all);
}

TEST_CASE("more contexts than there is room for are counted, and no more are written than asked for") {
    Scene scene;
    for (uintptr_t i = 0; i < 5; i++)
        scene.driver.make(context(20 + i), 10);
    CHECK(scene.of(scene.all[0], 2).size() == 2);
    CHECK(scene.found == 6);
    CHECK(scene.of(scene.all[0], 0).empty());
    CHECK(scene.found == 6);
}

TEST_CASE("a process with more contexts than can be looked at is told of them all, and nothing is written") {
    Scene scene;
    for (uintptr_t i = 0; i < Reach::kMaxContexts - 3; i++)
        scene.driver.make(context(20 + i), 10);
    CHECK(scene.of(scene.all[1]) == Scene::List{scene.all[1]});
    scene.driver.make(context(500), 10);
    std::vector<CUcontext> into(Reach::kMaxContexts, Scene::kUntouched);
    CHECK(scene.reach->list(gpu_state().contexts, scene.all[1], kAddress, into.data(), into.size()) ==
          Reach::kMaxContexts + 1);
    CHECK(into == std::vector<CUcontext>(Reach::kMaxContexts, Scene::kUntouched));
}

TEST_CASE("parts of one GPU reach each other's memory without a question") {
    split_gpus();
    Scene scene;
    const CUcontext one = context(4), other = context(5), beside = context(6);
    scene.driver.make(one, 0);
    scene.driver.make(other, 1);
    scene.driver.make(beside, 2);
    CHECK(scene.of(one) == Scene::List{one, other});
    CHECK(scene.of(beside) == Scene::List{beside});
}

TEST_CASE("copies that threads note at once are all known, and a list among them has its own context at least") {
    Scene scene;
    std::atomic<unsigned> wrong{0};
    on_threads(4, [&](unsigned t) {
        MadeUpDriver::stack() = {scene.all[0]};
        for (unsigned gpu = 20 + t; gpu < 60; gpu += 4) {
            scene.reach->copied_among(Reach::bit(10) | Reach::bit(static_cast<CUdevice>(gpu)));
            CUcontext into[Reach::kMaxContexts];
            const size_t count =
                scene.reach->list(gpu_state().contexts, scene.all[0], kAddress, into, Reach::kMaxContexts);
            if (count != 1 || into[0] != scene.all[0])
                wrong++;
        }
    });
    CHECK(wrong == 0);
    for (CUdevice gpu = 20; gpu < 60; gpu++)
        scene.driver.make(context(static_cast<uintptr_t>(100 + gpu)), gpu);
    CHECK(scene.of(scene.all[0]).size() == 41);
}
