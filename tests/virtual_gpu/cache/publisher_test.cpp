// SPDX-License-Identifier: Apache-2.0
// Figures that a process publishes about its caches: all of one moment, and none where there is no file.
#include "virtual_gpu/cache/publisher.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/catch.h"
#include "tests/policy/rounds.h"
#include "tests/virtual_gpu/cache/stats_file.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

/// Caches of a GPU that say so many bytes, of everything.
struct Scene {
    Scene() {
        char name[] = "/tmp/cuslice-test-XXXXXX";
        folder = mkdtemp(name);
        physical->open({}, 1 << 30);
        Slice slice;
        slice.allocator = AllocatorMode::growth;
        GpuIdentity identity{};
        std::strcpy(identity.uuid, "GPU-made-up");
        gpu->open(3, identity, *physical, "made up", slice);
    }
    ~Scene() { std::filesystem::remove_all(folder); }
    Publisher::Source source() {
        return {this, [](const void* self, const VirtualGpu&, unsigned* count) {
                    const Scene& scene = *static_cast<const Scene*>(self);
                    scene.reads++;
                    if (scene.meanwhile)
                        scene.meanwhile();
                    *count = scene.contexts;
                    Statistics statistics;
                    statistics.reserved.current = statistics.reserved.peak = scene.bytes;
                    return statistics;
                }};
    }
    void changed() { publisher->changed(source(), *gpu); }

    std::string folder;
    std::unique_ptr<PhysicalGpu> physical = std::make_unique<PhysicalGpu>();
    std::unique_ptr<VirtualGpu> gpu = std::make_unique<VirtualGpu>();
    std::unique_ptr<Publisher> publisher = std::make_unique<Publisher>();
    std::atomic<uint64_t> bytes{0};
    unsigned contexts = 0;
    mutable std::atomic<unsigned> reads{0};
    std::function<void()> meanwhile;
};

}  // namespace

TEST_CASE("a file that can't be had is told of once, and nothing is read or written without one") {
    Scene scene;
    CHECK(scene.publisher->failure() == nullptr);  // it was not asked for yet
    const std::string file = scene.folder + "/file";
    std::FILE* plain = std::fopen(file.c_str(), "w");
    REQUIRE(plain);
    std::fclose(plain);
    errno = 4711;
    scene.publisher->open(file.c_str());
    CHECK(errno == 4711);
    scene.changed();
    CHECK(scene.reads == 0);
    const stats::LedgerError* failure = scene.publisher->failure();
    REQUIRE(failure);
    CHECK(std::string(failure->text).find(file) != std::string::npos);
    CHECK(scene.publisher->failure() == nullptr);
    scene.publisher->open(scene.folder.c_str());  // once
    scene.changed();
    CHECK(scene.reads == 0);
}

TEST_CASE("what has changed is in the file, with the GPU that it is of, and no other GPU's is touched") {
    Scene scene;
    scene.publisher->open(scene.folder.c_str());
    CHECK(scene.publisher->failure() == nullptr);
    const OwnStatsFile file(scene.folder);
    REQUIRE(file.get());
    CHECK(file.get()->gpus[3].sequence == 0);
    scene.bytes = 77;
    scene.contexts = 2;
    scene.changed();
    const stats::Gpu& gpu = file.get()->gpus[3];
    CHECK(gpu.sequence == 2);
    CHECK(std::string(gpu.uuid) == "GPU-made-up");
    CHECK(std::string(gpu.name) == "made up");
    CHECK(gpu.mode == static_cast<uint32_t>(AllocatorMode::growth));
    CHECK(gpu.contexts == 2);
    CHECK(gpu.statistics.reserved.current == 77);
    CHECK(gpu.written != 0);
    scene.bytes = 78;
    scene.changed();
    CHECK(gpu.sequence == 4);
    CHECK(gpu.statistics.reserved.current == 78);
    for (unsigned i = 0; i < stats::kGpus; i++)
        if (i != 3)
            CHECK(file.get()->gpus[i].sequence == 0);
}

TEST_CASE("a change that comes while the figures are read is in the file in the end") {
    Scene scene;
    scene.publisher->open(scene.folder.c_str());
    const OwnStatsFile file(scene.folder);
    REQUIRE(file.get());
    scene.meanwhile = [&] {
        scene.meanwhile = nullptr;
        scene.changed();  // another thread's, which leaves it to this one
        CHECK(scene.reads == 1);
        scene.bytes = 79;
    };
    scene.changed();
    CHECK(scene.reads == 2);
    CHECK(file.get()->gpus[3].statistics.reserved.current == 79);
}

TEST_CASE("a thread doesn't write for ever though others go on changing, and the next change is written again") {
    Scene scene;
    scene.publisher->open(scene.folder.c_str());
    scene.meanwhile = [&] {
        const std::function<void()> again = std::exchange(scene.meanwhile, nullptr);
        scene.changed();
        scene.meanwhile = again;
    };
    scene.changed();
    const unsigned rounds = scene.reads;
    CHECK(rounds > 1);
    scene.meanwhile = nullptr;
    scene.changed();
    CHECK(scene.reads == rounds + 1);
}

TEST_CASE("a forked child writes nothing into its parent's file, and can have one of its own") {
    Scene scene;
    scene.publisher->open(scene.folder.c_str());
    const OwnStatsFile file(scene.folder);
    REQUIRE(file.get());
    scene.bytes = 77;
    scene.changed();
    const pid_t child = fork();
    if (child == 0) {
        scene.publisher->forget();
        scene.bytes = 78;
        scene.changed();
        if (scene.reads != 1)
            _exit(1);
        scene.publisher->open(scene.folder.c_str());
        scene.changed();
        const OwnStatsFile own(scene.folder);
        _exit(own.get() && own.get()->gpus[3].statistics.reserved.current == 78 ? 0 : 2);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(file.get()->gpus[3].statistics.reserved.current == 77);
    scene.bytes = 80;
    scene.changed();
    CHECK(file.get()->gpus[3].statistics.reserved.current == 80);
}

TEST_CASE(
    "whoever reads an even number twice has read figures of one moment, and the last change is there in the end") {
    Scene scene;
    scene.publisher->open(scene.folder.c_str());
    const OwnStatsFile file(scene.folder);
    REQUIRE(file.get());
    std::atomic<unsigned> backwards{0};
    on_threads(4, [&](unsigned t) {
        for (int i = 0; i < 500; i++) {
            if (t != 0) {
                scene.bytes++;
                scene.changed();
                continue;
            }
            const uint64_t one = file.get()->gpus[3].sequence, other = file.get()->gpus[3].sequence;
            if (other < one)
                backwards++;
        }
    });
    CHECK(backwards == 0);
    CHECK(file.get()->gpus[3].sequence % 2 == 0);
    scene.changed();
    CHECK(file.get()->gpus[3].statistics.reserved.current == 1500);
}
