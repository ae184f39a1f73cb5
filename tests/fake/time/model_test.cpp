// SPDX-License-Identifier: Apache-2.0
#include "fake/time/model.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/catch.h"

using namespace cuslice::fake;

namespace {

constexpr Time kMs = 1'000'000;
constexpr uint32_t kWide = 100;

struct Span {
    uint32_t context;
    Engine engine;
    Time begin, end;
    bool operator==(const Span&) const = default;
};

/// One GPU with 100 multiprocessors, slices of 2 ms and free context switches, and notes of what happened there.
struct Scene : TimeListener {
    explicit Scene(const GpuTiming& timing = {.multiprocessors = kWide}) { model.add_gpu(0, timing); }

    void on_reached(StreamPoint point, Time when) override { ends[{point.stream, point.ticket}] = when; }
    void on_busy(uint32_t context, Engine engine, Time begin, Time end) override {
        if (!spans.empty() && spans.back().context == context && spans.back().engine == engine &&
            spans.back().end == begin)
            spans.back().end = end;
        else
            spans.push_back({context, engine, begin, end});
        busy[{context, engine}] += end - begin;
    }

    void streams_of(uint32_t context, std::vector<uint32_t> numbers) {
        model.add_context(context, 0);
        for (const uint32_t number : numbers)
            model.add_stream(number, context);
    }
    void kernel(uint32_t stream, Time duration, uint32_t width = kWide, StreamPoint after = {}) {
        submit(stream, {.engine = Engine::compute, .multiprocessors = width, .duration = duration, .after = after});
    }
    void submit(uint32_t stream, Work work) {
        work.submitted = model.now();
        model.submit(stream, work);
    }
    Time end(uint32_t stream, uint64_t ticket) const {
        const auto found = ends.find({stream, ticket});
        return found == ends.end() ? kNever : found->second;
    }

    TimeModel model{*this};
    std::map<std::pair<uint32_t, uint64_t>, Time> ends;
    std::vector<Span> spans;
    std::map<std::pair<uint32_t, Engine>, Time> busy;
};

}  // namespace

TEST_CASE("work of a stream runs one after the other") {
    Scene scene;
    scene.streams_of(0, {0});
    scene.kernel(0, 3 * kMs, 1);
    scene.kernel(0, 4 * kMs, 1);
    CHECK(scene.model.earliest({0, 2}) == 7 * kMs);
    scene.model.advance(5 * kMs);
    CHECK(scene.end(0, 1) == 3 * kMs);
    CHECK(scene.end(0, 2) == kNever);
    CHECK_FALSE(scene.model.reached({0, 2}));
    scene.model.advance(7 * kMs);
    CHECK(scene.end(0, 2) == 7 * kMs);
    CHECK(scene.model.idle());
    CHECK(scene.spans == std::vector<Span>{{0, Engine::compute, 0, 7 * kMs}});
}

TEST_CASE("work starts when it is submitted, although that is seen later") {
    Scene scene;
    scene.streams_of(0, {0});
    scene.model.advance(2 * kMs);
    scene.model.submit(0, {.engine = Engine::compute, .duration = kMs, .submitted = 3 * kMs});
    scene.model.advance(10 * kMs);
    CHECK(scene.end(0, 1) == 4 * kMs);
}

TEST_CASE("kernels of a context run beside each other as far as there are multiprocessors") {
    Scene scene;
    scene.streams_of(0, {0, 1, 2});
    scene.kernel(0, 4 * kMs, 60);
    scene.kernel(1, 4 * kMs, 60);
    scene.kernel(2, 4 * kMs, 30);
    scene.model.advance(20 * kMs);
    CHECK(scene.end(0, 1) == 4 * kMs);
    CHECK(scene.end(1, 1) == 8 * kMs);
    CHECK(scene.end(2, 1) == 8 * kMs);  // it came later than one that waits
    CHECK(scene.busy[{0, Engine::compute}] == 8 * kMs);
}

TEST_CASE("a kernel that is wider than the GPU has all of it") {
    Scene scene;
    scene.streams_of(0, {0});
    scene.kernel(0, kMs, 5 * kWide);
    scene.model.advance(kMs);
    CHECK(scene.end(0, 1) == kMs);
}

TEST_CASE("work waits for what another stream has to reach first") {
    Scene scene;
    scene.streams_of(0, {0, 1});
    scene.kernel(0, 5 * kMs, 10);
    scene.kernel(1, kMs, 10, {0, 1});
    scene.model.advance(4 * kMs);
    CHECK(scene.model.next_event() == 5 * kMs);
    scene.model.advance(9 * kMs);
    CHECK(scene.end(1, 1) == 6 * kMs);
}

TEST_CASE("contexts take turns") {
    Scene scene;
    scene.streams_of(0, {0});
    scene.streams_of(1, {1});
    scene.kernel(0, 5 * kMs);
    scene.kernel(1, 3 * kMs);
    scene.model.advance(20 * kMs);
    CHECK(scene.spans == std::vector<Span>{{0, Engine::compute, 0, 2 * kMs},
                                           {1, Engine::compute, 2 * kMs, 4 * kMs},
                                           {0, Engine::compute, 4 * kMs, 6 * kMs},
                                           {1, Engine::compute, 6 * kMs, 7 * kMs},
                                           {0, Engine::compute, 7 * kMs, 8 * kMs}});
    CHECK(scene.end(0, 1) == 8 * kMs);
    CHECK(scene.end(1, 1) == 7 * kMs);
}

TEST_CASE("a change of contexts takes time, in which nothing runs") {
    Scene scene({.multiprocessors = kWide, .slice = 2 * kMs, .context_switch = kMs});
    scene.streams_of(0, {0});
    scene.streams_of(1, {1});
    scene.kernel(0, 3 * kMs);
    scene.kernel(1, kMs);
    scene.model.advance(20 * kMs);
    CHECK(scene.spans == std::vector<Span>{{0, Engine::compute, 0, 2 * kMs},
                                           {1, Engine::compute, 3 * kMs, 4 * kMs},
                                           {0, Engine::compute, 5 * kMs, 6 * kMs}});
}

TEST_CASE("slices are longer or shorter by the spread at most, and as long in the mean") {
    constexpr Time kSlices = 1000;
    Scene scene({.multiprocessors = kWide, .slice = 2 * kMs, .slice_spread = 50});
    scene.streams_of(0, {0});
    scene.streams_of(1, {1});
    scene.kernel(0, kSlices * 2 * kMs);
    scene.kernel(1, kSlices * 2 * kMs);
    scene.model.advance(kSlices * 2 * kMs);
    REQUIRE(scene.spans.size() > 2);
    scene.spans.pop_back();  // goes on
    Time least = kNever, most = 0;
    for (const Span& span : scene.spans) {
        least = std::min(least, span.end - span.begin);
        most = std::max(most, span.end - span.begin);
    }
    CHECK(least >= kMs);
    CHECK(least < kMs + kMs / 10);
    CHECK(most <= 3 * kMs);
    CHECK(most > 3 * kMs - kMs / 10);
    CHECK(scene.spans.back().end / scene.spans.size() > 2 * kMs - kMs / 20);
    CHECK(scene.spans.back().end / scene.spans.size() < 2 * kMs + kMs / 20);
}

TEST_CASE("whoever comes late waits for the end of a slice, and an idle GPU for nobody") {
    Scene scene;
    scene.streams_of(0, {0});
    scene.streams_of(1, {1});
    scene.kernel(0, 100 * kMs);
    scene.model.advance(5 * kMs);
    scene.kernel(1, kMs);
    scene.model.advance(50 * kMs);
    CHECK(scene.end(1, 1) == 7 * kMs);  // slices end at 2, 4 and 6
    scene.model.advance(200 * kMs);
    CHECK(scene.end(0, 1) == 101 * kMs);
    scene.model.advance(300 * kMs);
    scene.kernel(1, kMs);
    scene.model.advance(400 * kMs);
    CHECK(scene.end(1, 2) == 301 * kMs);
}

TEST_CASE("copies run beside kernels of any context, one at a time in each direction") {
    Scene scene;
    scene.streams_of(0, {0, 1, 2});
    scene.streams_of(1, {3});
    scene.kernel(3, 10 * kMs);
    scene.submit(0, {.engine = Engine::copy_in, .duration = 3 * kMs});
    scene.submit(1, {.engine = Engine::copy_in, .duration = 3 * kMs});
    scene.submit(2, {.engine = Engine::copy_out, .duration = 4 * kMs});
    scene.model.advance(20 * kMs);
    CHECK(scene.end(0, 1) == 3 * kMs);
    CHECK(scene.end(1, 1) == 6 * kMs);
    CHECK(scene.end(2, 1) == 4 * kMs);
    CHECK(scene.end(3, 1) == 10 * kMs);
    CHECK(scene.busy[{0, Engine::copy_in}] == 6 * kMs);
}

TEST_CASE("a GPU with one copy engine copies in one direction at a time, and one without beside no kernel") {
    const auto [engines, in_ends, out_ends, kernel_ends] =
        GENERATE(std::tuple{1U, 3 * kMs, 6 * kMs, 2 * kMs}, std::tuple{0U, 5 * kMs, 8 * kMs, 2 * kMs});
    Scene scene({.multiprocessors = kWide, .copy_engines = engines});
    scene.streams_of(0, {0, 1, 2});
    scene.kernel(0, 2 * kMs);
    scene.submit(1, {.engine = Engine::copy_in, .multiprocessors = kWide, .duration = 3 * kMs});
    scene.submit(2, {.engine = Engine::copy_out, .multiprocessors = kWide, .duration = 3 * kMs});
    scene.model.advance(20 * kMs);
    CHECK(scene.end(0, 1) == kernel_ends);
    CHECK(scene.end(1, 1) == in_ends);
    CHECK(scene.end(2, 1) == out_ends);
}

TEST_CASE("held work goes on until it is released, and what is behind it waits") {
    Scene scene;
    scene.streams_of(0, {0});
    scene.submit(0, {.held = true});
    scene.kernel(0, kMs);
    CHECK(scene.model.earliest({0, 2}) == kNever);
    scene.model.advance(10 * kMs);
    CHECK(scene.model.next_event() == kNever);
    scene.model.release({0, 1}, 12 * kMs);
    scene.model.advance(20 * kMs);
    CHECK(scene.end(0, 1) == 12 * kMs);
    CHECK(scene.end(0, 2) == 13 * kMs);
}

TEST_CASE("work that was released before it begins ends when it begins") {
    Scene scene;
    scene.streams_of(0, {0});
    scene.kernel(0, 5 * kMs);
    scene.submit(0, {.held = true});
    scene.model.release({0, 2}, kMs);
    scene.model.advance(9 * kMs);
    CHECK(scene.end(0, 2) == 5 * kMs);
}

TEST_CASE("a held kernel keeps its turn while it is alone, and gives it up when it isn't") {
    Scene scene;
    scene.streams_of(0, {0});
    scene.streams_of(1, {1});
    scene.submit(0, {.engine = Engine::compute, .held = true, .multiprocessors = kWide});
    scene.kernel(1, 3 * kMs);
    scene.model.advance(20 * kMs);
    CHECK(scene.end(1, 1) == 7 * kMs);  // 2 to 4, 6 to 7
    scene.model.release({0, 1}, 20 * kMs);
    scene.model.advance(21 * kMs);
    CHECK(scene.end(0, 1) == 20 * kMs);
    CHECK(scene.busy[{0, Engine::compute}] == 17 * kMs);
}

TEST_CASE("a context that ends takes its work with it, and nobody waits for that") {
    Scene scene;
    scene.streams_of(0, {0, 1});
    scene.streams_of(1, {2});
    scene.kernel(0, 50 * kMs);
    scene.kernel(0, kMs);
    scene.submit(1, {.engine = Engine::copy_in, .duration = 50 * kMs});
    scene.kernel(2, 2 * kMs, kWide, {0, 2});
    scene.model.advance(3 * kMs);
    scene.model.end_context(0);
    scene.model.advance(10 * kMs);
    CHECK(scene.end(0, 2) == 3 * kMs);
    CHECK(scene.end(2, 1) == 5 * kMs);
    CHECK(scene.busy[{0, Engine::compute}] == 3 * kMs);
    CHECK(scene.busy[{0, Engine::copy_in}] == 3 * kMs);
    CHECK(scene.model.idle());
}

TEST_CASE("numbers come again, and tickets go on") {
    Scene scene;
    scene.streams_of(0, {0});
    scene.kernel(0, kMs);
    scene.model.advance(kMs);
    scene.model.end_context(0);
    scene.model.add_context(0, 0);
    scene.model.add_stream(0, 0, 1);
    scene.kernel(0, kMs);
    scene.model.advance(3 * kMs);
    CHECK(scene.end(0, 2) == 2 * kMs);
}

TEST_CASE("what is busy can be told while it goes on, and adds up") {
    Scene scene;
    scene.streams_of(0, {0, 1});
    scene.kernel(0, 10 * kMs);
    scene.submit(1, {.engine = Engine::copy_out, .duration = 10 * kMs});
    for (Time at = 0; at < 12; at++) {
        scene.model.advance(at * kMs);
        scene.model.tell_all_busy();
    }
    CHECK(scene.busy[{0, Engine::compute}] == 10 * kMs);
    CHECK(scene.busy[{0, Engine::copy_out}] == 10 * kMs);
}

// However time is cut into steps, and whatever is submitted, the same happens, no engine has two at a time, and a GPU
// isn't idle while a kernel could run.
TEST_CASE("random work takes the same time however often anybody looks, and engines are never shared or idle") {
    const auto seed = GENERATE(range(0U, 200U));
    CAPTURE(seed);
    const auto run = [&](unsigned steps_seed) {
        std::mt19937 random(seed), steps(steps_seed);
        auto scene = std::make_unique<Scene>(GpuTiming{.multiprocessors = kWide, .slice = 2 * kMs});
        for (uint32_t context = 0; context < 3; context++)
            scene->streams_of(context, {2 * context, 2 * context + 1});
        std::map<uint32_t, uint64_t> tickets;
        Time submitted = 0;
        for (int i = 0; i < 60; i++) {
            const auto stream = static_cast<uint32_t>(random() % 6), other = static_cast<uint32_t>(random() % 6);
            Work work{.engine = static_cast<Engine>(random() % kEngines)};
            work.multiprocessors = static_cast<uint32_t>(1 + random() % kWide);
            work.duration = random() % 5'000'000;
            work.submitted = submitted += random() % 2'000'000;
            if (random() % 4 == 0 && other != stream)
                work.after = {other, tickets[other]};
            tickets[stream]++;
            while (steps() % 4 != 0)
                scene->model.advance(std::min(submitted, scene->model.now() + steps() % 1'000'000));
            scene->model.submit(stream, work);
        }
        scene->model.advance(1000 * kMs);
        return scene;
    };
    const auto one = run(1), other = run(2);
    CHECK(one->ends == other->ends);
    CHECK(one->busy == other->busy);
    CHECK(one->model.idle());
    for (const Engine engine : {Engine::compute, Engine::copy_in, Engine::copy_out}) {
        std::vector<std::pair<Time, Time>> spans;
        for (const Span& span : one->spans)
            if (span.engine == engine)
                spans.emplace_back(span.begin, span.end);
        std::ranges::sort(spans);
        for (size_t i = 1; i < spans.size(); i++)
            CHECK(spans[i - 1].second <= spans[i].first);
    }
}
