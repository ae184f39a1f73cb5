// SPDX-License-Identifier: Apache-2.0
#include "fake/time/figures.h"

#include <memory>

#include "tests/catch.h"

using namespace cuslice::fake;

namespace {

constexpr Time kMs = 1'000'000;

/// An empty file. Most of it is never touched.
struct Scene {
    std::unique_ptr<TimeFile> file{new TimeFile()};
    TimeFigures figures{*file};
    const BusySpans& gpu() const { return file->gpus[0].busy[static_cast<size_t>(Engine::compute)]; }
};

}  // namespace

TEST_CASE("busy time is a context's and a GPU's") {
    Scene scene;
    scene.file->contexts[3].gpu = 0;
    scene.figures.add(3, Engine::compute, 50 * kMs, 250 * kMs);
    scene.figures.add(3, Engine::copy_in, 0, 10 * kMs);
    CHECK(scene.file->contexts[3].busy[static_cast<size_t>(Engine::compute)] == 200 * kMs);
    CHECK(scene.file->contexts[3].busy[static_cast<size_t>(Engine::copy_in)] == 10 * kMs);
    CHECK(busy_within(scene.gpu(), 300 * kMs, 300 * kMs) == 200 * kMs);
    CHECK(busy_within(scene.gpu(), 200 * kMs, 100 * kMs) == 100 * kMs);
    CHECK(busy_within(scene.gpu(), 300 * kMs, 100 * kMs) == 50 * kMs);
}

TEST_CASE("spans that are long past don't count, whatever lies in their place") {
    Scene scene;
    scene.figures.add(0, Engine::compute, 0, kTimeSpan);
    const Time later = (kTimeSpans + 5) * kTimeSpan;
    CHECK(busy_within(scene.gpu(), later, 10 * kTimeSpan) == 0);
    scene.figures.add(0, Engine::compute, kTimeSpans * kTimeSpan, kTimeSpans * kTimeSpan + 1);
    CHECK(busy_within(scene.gpu(), later, 10 * kTimeSpan) == 1);
}

TEST_CASE("a context's turn is one, however often it is told") {
    Scene scene;
    scene.figures.add(0, Engine::compute, 0, kMs);
    scene.figures.add(0, Engine::compute, kMs, 3 * kMs);
    scene.figures.add(1, Engine::compute, 3 * kMs, 4 * kMs);
    scene.figures.add(0, Engine::compute, 5 * kMs, 6 * kMs);
    CHECK(scene.file->header.turns == 2);
    scene.figures.flush();
    REQUIRE(scene.file->header.turns == 3);
    CHECK(scene.file->turn[0].begin == 0);
    CHECK(scene.file->turn[0].end == 3 * kMs);
    CHECK(scene.file->turn[1].context == 1);
    CHECK(scene.file->turn[2].begin == 5 * kMs);
    scene.figures.flush();
    CHECK(scene.file->header.turns == 3);
}
