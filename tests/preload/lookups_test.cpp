// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress under cuslice: the driver's own status for every look-up, its own pointer for what isn't hooked,
// ours for what is, and for what is checked where memory is cached. On the fake driver and, where its packages could be
// had, on NVIDIA's.
#include "tests/preload/lookups.h"

#include <cstdio>
#include <filesystem>

#include "tests/catch.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

struct Counted {
    unsigned found = 0, hooked = 0;
};

// One pointer: the driver's own, to the byte, or our hook of the same name where one stands before it.
bool right_pointer(const Place& given, const Place& drivers, const std::set<std::string>& hooked, Counted& counted) {
    const bool is_hooked = hooked.count(drivers.symbol) != 0;
    counted.found += !drivers.symbol.empty();
    counted.hooked += is_hooked;
    return is_hooked ? given.file == "libcuslice.so" && given.symbol == drivers.symbol : given == drivers;
}

void compare(const std::vector<LookUp>& look_ups, const std::vector<Answer>& raw_answers,
             const std::vector<Answer>& answers, const std::set<std::string>& hooked, Counted& counted) {
    REQUIRE(hooked.size() > 30);
    for (size_t i = 0; i < look_ups.size(); ++i) {
        const Answer &expected = raw_answers[i], &answer = answers[i];
        CAPTURE(look_ups[i].text(), answer.v1_pointer.file, answer.v2_pointer.file, expected.v2_pointer.symbol);
        CHECK(answer.v1 == expected.v1);
        CHECK(answer.v2 == expected.v2);
        CHECK(answer.status == expected.status);
        CHECK(right_pointer(answer.v1_pointer, expected.v1_pointer, hooked, counted));
        CHECK(right_pointer(answer.v2_pointer, expected.v2_pointer, hooked, counted));
        CHECK(answer.more == expected.more);
    }
}

std::vector<LookUp> all_look_ups() {
    std::vector<LookUp> all = of_typedefs();
    REQUIRE(all.size() > 1500);
    const std::vector<LookUp> runtime = of_runtime();
    REQUIRE(runtime.size() == 440);
    all.insert(all.end(), runtime.begin(), runtime.end());
    // Versions too low, ahead of their time or senseless, flags that there aren't, names that there aren't.
    for (const std::string name : {"cuMemAlloc", "cuMemAllocAsync", "cuLaunchKernel", "cuGetProcAddress"})
        for (const int version : {-1, 0, 1, 1999, 2000, 3019, 3020, 11019, 11020, 12999, 20000, 2147483647})
            for (const unsigned long flags : {0ul, 1ul, 2ul, 3ul, 4ul, ~0ul})
                all.push_back({name, version, flags});
    for (const std::string name : {"cuMemAlloc_v2", "cuMemAlloc_v3", "cuNoSuchFunction", "CUMEMALLOC", "nvmlInit_v2"})
        all.push_back({name, 13000, 0});
    return all;
}

void hold_against(const Words& raw_environment, const Words& environment, bool after_init, const char* what,
                  const std::set<std::string>& hooked = hooked_symbols()) {
    const std::vector<LookUp> look_ups = all_look_ups();
    Counted counted;
    std::string err;
    const auto expected = ask(look_ups, raw_environment, after_init);
    const auto answers = ask(look_ups, environment, after_init, &err);
    compare(look_ups, expected, answers, hooked, counted);
    CHECK(err == "");
    std::printf("  %s: %zu look-ups in two forms; %u pointers, %u of them to hooks\n", what, look_ups.size(),
                counted.found, counted.hooked);
    CHECK(counted.found > 2000);
    CHECK(counted.hooked > 200);
    CHECK(counted.hooked < counted.found / 2);
}

TEST_CASE("look-ups on the fake driver are the driver's own") {
    const bool after_init = GENERATE(false, true);
    const std::string setting = GENERATE("CUSLICE_LIMIT=1GiB", "CUSLICE_LOG=warn", "CUSLICE_ALLOCATOR=direct");
    CAPTURE(after_init, setting);
    const Folder books;
    hold_against(raw("1xa100-40g", books.path()), sliced("1xa100-40g", books.path(), {setting}), after_init,
                 "fake driver");
}

TEST_CASE("where memory may be cached, the functions that copy and fill are ours as well, also before cuInit") {
    const bool after_init = GENERATE(false, true);
    const std::string setting =
        GENERATE("CUSLICE_ALLOCATOR=growth", "CUSLICE_ALLOCATOR=prealloc", "CUSLICE_ALLOCATOR=0=direct,1=growth");
    CAPTURE(after_init, setting);
    const Folder books;
    std::set<std::string> ours = hooked_symbols(), checked = checked_symbols();
    REQUIRE(checked.size() == 80);
    ours.insert(checked.begin(), checked.end());
    hold_against(raw("2xa100-40g", books.path()), sliced("2xa100-40g", books.path(), {setting}), after_init,
                 "fake driver, caching", ours);
}

TEST_CASE("where time is shared, the functions that start work are ours as well, also before cuInit") {
    const bool after_init = GENERATE(false, true);
    const std::string setting = GENERATE("CUSLICE_SHARE=30%", "CUSLICE_SHARE=1=30%");
    CAPTURE(after_init, setting);
    const Folder books;
    std::set<std::string> ours = hooked_symbols(), gated = gated_symbols();
    REQUIRE(gated.count("cuLaunchKernel") == 1);
    ours.insert(gated.begin(), gated.end());
    hold_against(raw("2xa100-40g", books.path()), sliced("2xa100-40g", books.path(), {setting}), after_init,
                 "fake driver, time shared", ours);
}

// scripts/test.sh fetches the drivers, with the packages that this system's own sources have. The first is Debian 12's
// own.
TEST_CASE("look-ups on NVIDIA's own driver are the driver's own") {
    const std::string version = GENERATE("driver-535", "driver-550", "driver-555");
    const std::string file = genuine(version, "libcuda.so.1");
    if (!std::filesystem::exists(file)) {
        skip("there is no " + file + " (lab/genuine/fetch.py brings it)");
        return;
    }
    const std::string path = "LD_LIBRARY_PATH=" + std::filesystem::path(file).parent_path().string();
    const std::string found = GENERATE("by the search path", "by CUSLICE_DRIVER");
    Words environment = plain({"LD_PRELOAD=" + preload_list()});
    environment.push_back(found == "by CUSLICE_DRIVER" ? "CUSLICE_DRIVER=" + file : path);
    hold_against(plain({path}), environment, false, ("genuine " + version + ", found " + found).c_str());
}

TEST_CASE("a function that only a newer driver has reaches programs") {
    const Folder books;
    const std::vector<LookUp> look_ups{{"cuFakeNewerDriverFunction", 13000, 0},
                                       {"cuFakeNewerDriverFunction", 13000, 2}};
    const Words newer{"CUSLICE_FAKE_NEWER=1"};
    const auto expected = ask(look_ups, raw("1xt4", books.path(), newer), true);
    const auto answers = ask(look_ups, sliced("1xt4", books.path(), {newer[0], "CUSLICE_LIMIT=1GiB"}), true);
    for (size_t i = 0; i < look_ups.size(); ++i) {
        CHECK(expected[i].more == " effect 20130");
        CHECK(answers[i].more == " effect 20130");
        CHECK(answers[i].v1_pointer == expected[i].v1_pointer);
        CHECK(answers[i].v2_pointer == expected[i].v2_pointer);
    }
}

TEST_CASE("a newer form of a checked function is no way round the limit, and reaches programs") {
    const Folder books;
    const std::vector<LookUp> look_ups{{"cuMemcpyDtoD", 14000, 0}, {"cuMemcpyDtoD", 13000, 0}};
    const std::string setting = GENERATE("CUSLICE_LIMIT=1GiB", "CUSLICE_ALLOCATOR=growth");
    CAPTURE(setting);
    std::string err;
    const auto expected = ask(look_ups, raw("1xt4", books.path(), {"CUSLICE_FAKE_NEWER=1"}), true);
    const auto answers = ask(look_ups, sliced("1xt4", books.path(), {"CUSLICE_FAKE_NEWER=1", setting}), true, &err);
    REQUIRE(expected[0].v2_pointer.symbol == "cuMemcpyDtoD_v3");
    CHECK(answers[0].v1_pointer == expected[0].v1_pointer);
    CHECK(answers[0].v2_pointer == expected[0].v2_pointer);
    CHECK(answers[1].v2_pointer.symbol == "cuMemcpyDtoD_v2");
    CHECK((answers[1].v2_pointer == expected[1].v2_pointer) == (setting == "CUSLICE_LIMIT=1GiB"));
    CHECK(err == "");
}

TEST_CASE("a newer form of a hooked function is refused by name, as a driver refuses that lacks it") {
    const Folder books;
    const std::vector<LookUp> look_ups{{"cuMemAlloc", 14000, 0}, {"cuMemAlloc", 13000, 0}};
    std::string err;
    const auto expected = ask(look_ups, raw("1xt4", books.path(), {"CUSLICE_FAKE_NEWER=1"}), true);
    const auto answers =
        ask(look_ups, sliced("1xt4", books.path(), {"CUSLICE_FAKE_NEWER=1", "CUSLICE_LIMIT=1GiB"}), true, &err);
    REQUIRE(expected[0].v2_pointer.symbol == "cuMemAlloc_v3");
    CHECK(answers[0].v1 == 500);
    CHECK(answers[0].v1_pointer.file == "untouched");
    CHECK(answers[0].v2 == 0);
    CHECK(answers[0].v2_pointer.file == "null");
    CHECK(answers[0].status == 1);
    CHECK(answers[1].v2_pointer.symbol == "cuMemAlloc_v2");
    CHECK(answers[1].v2_pointer.file == "libcuslice.so");
    const Words said = split_lines(err);
    REQUIRE(said.size() >= 1);
    CHECK(said[0] ==
          "cuslice: the driver has a form of cuMemAlloc for CUDA version 14000 that this version of cuslice does not "
          "know; it is refused, as it would bypass the limit. Update cuslice, or run without it");
    CHECK(said.size() == 1);  // once, however often it is asked for
}

}  // namespace
}  // namespace cuslice::tests
