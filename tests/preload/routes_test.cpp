// SPDX-License-Identifier: Apache-2.0
// Every way by which a program comes to the driver is caught: each row allocates within its limit and is refused one
// allocation past it, by the driver's own error, and the books of the GPU never showed more than the limit.
#include <cstdio>
#include <iostream>

#include "tests/catch.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

constexpr uint64_t kBlock = 64 * kMiB;

struct Route {
    const char* name;
    Words words;
    Words before;           // said first, for instance to fork
    std::string fill = "";  // how it allocates
    Words environment = {};
    uint64_t limit = 1024 * kMiB;
    Words setup = {}, take = {};  // instead of `fill`: what takes the nth block, # being n
    bool afterwards = false;      // only the driver knows its size: it is given back when it is too much
};

Words guest(const std::string& route) { return Guest::route(route); }

std::vector<Route> routes() {
    const std::string linked = kGuests + "/guest_linked linked";
    std::vector<Route> all = {
        {"linked", guest("linked"), {}},
        {"dlopen by name", guest("dlopen=libcuda.so.1"), {}},
        {"dlopen libcuda.so", guest("dlopen=libcuda.so"), {}},
        {"dlopen by absolute path", guest("dlopen=" + kFakeDriver), {}},
        {"RTLD_DEEPBIND by SONAME", guest("deepbind=" + kGuests + "/libguest_module.so"), {}},
        {"look-up v1", guest("v1"), {}},
        {"look-up v2", guest("v2"), {}},
        {"nested look-up", guest("nested"), {}},
        // Its addresses have 32 bits, of which the fake driver has half a GiB to give.
        {"old ABI (32 bits)", guest("linked"), {}, "old", {}, 768 * kMiB},
        {"_ptsz by dlsym", guest("dlopen=libcuda.so.1"), {}, "ptsz"},
        {"_ptsz by flag 2", guest("flag2"), {}, "ptsz"},
        {"child: shell, fork, exec", {"/bin/sh", "-c", "printf ''; " + linked + "; exit $?"}, {}},
        {"child: fork before cuInit", guest("dlopen=libcuda.so.1"), {"fork"}},
        {"thread", guest("linked"), {}, "thread"},
        {"managed", guest("linked"), {}, "managed"},
        {"pitch", guest("linked"), {}, "pitch"},
        {"async", guest("linked"), {}, "async"},
        {"explicit pool", guest("linked"), {}, "", {}, kGiB, {"pool mine 0"}, {"alloc # 67108864 pool=mine"}},
        {"cuMemCreate", guest("linked"), {}, "", {}, kGiB, {}, {"piece # 67108864", "map # 67108864"}},
        {"graph's memory", guest("linked"), {}, "", {}, kGiB, {}, {"graph # 67108864 1 leave", "launch #"}},
        {"array", guest("linked"), {}, "", {}, kGiB, {}, {"array # 2048 2048 0"}, true},
        {"mipmap", guest("linked"), {}, "", {}, kGiB, {}, {"mipmap # 3500 3500 0 1"}, true},
        {"child: look-up, then fork", guest("v2"), {"fork"}},
    };
    if (!kPython.empty())
        all.push_back({"ctypes", {kPython, kSources + "/guest/ctypes_guest.py"}, {}});
    for (const auto& [name, major] :
         {std::pair{"shared runtime 11", "11"}, {"shared runtime 12", "12"}, {"shared runtime 13", "13"}})
        all.push_back({name,
                       {kGuests + "/guest_runtime" + std::string(major)},
                       {},
                       "runtime",
                       {"LD_LIBRARY_PATH=" + kFakeFolder}});
    return all;
}

// Takes one block after the other by commands; the refusal and how many there were, as `fill` answers.
Words take(Guest& guest, const Route& route) {
    for (const char* line : {"init", "retain 0"})
        if (guest.code(line) != kSuccess)
            return {line, "failed"};
    for (const std::string& line : route.setup)
        if (guest.code(line) != kSuccess)
            return {line, "failed"};
    for (int n = 0;; n++)
        for (std::string line : route.take) {
            line.replace(line.find('#'), 1, "b" + std::to_string(n));
            if (const int code = guest.code(line))
                return {std::to_string(code), std::to_string(n)};
        }
}

// Allocates until it is refused; the answer.
Words fill(Guest& guest, const std::string& how) {
    if (how == "runtime")
        return split_words(guest.ask("fill"));
    for (const char* line : {"init", "retain 0"})
        if (guest.code(line) != kSuccess)
            return {line, "failed"};
    // A pitched row of one byte takes 512.
    const uint64_t bytes = how == "pitch" ? kBlock / 512 : kBlock;
    const std::string line = "fill " + std::to_string(bytes) + (how == "thread" ? "" : " " + how);
    return split_words(guest.ask(how == "thread" ? "thread " + line : line));
}

void print_row(const Route& route, const Words& answer, const Held& held) {
    std::printf("  %-28s %8s %8s %9.1f %9.1f %9.1f\n", route.name, answer.size() > 1 ? answer[1].c_str() : "?",
                answer.empty() ? "?" : answer[0].c_str(), static_cast<double>(held.used) / kMiB,
                static_cast<double>(held.peak) / kMiB, static_cast<double>(route.limit) / kMiB);
    std::fflush(stdout);
}

void run_route(const Route& route, bool limited) {
    INFO(route.name);
    const std::string gpu = "1xlaptop-2g";
    Folder books;
    Words settings;
    if (limited)
        settings.push_back("CUSLICE_LIMIT=" + std::to_string(route.limit / kMiB) + "MiB");
    settings.insert(settings.end(), route.environment.begin(), route.environment.end());
    Guest guest(route.words, limited ? sliced(gpu, books.path(), settings) : raw(gpu, books.path(), settings));
    for (const std::string& line : route.before)
        REQUIRE(guest.code(line) == kSuccess);
    const Words answer = route.take.empty() ? fill(guest, route.fill) : take(guest, route);
    INFO("stderr: " << guest.err());
    CHECK(answer.size() == 2);
    if (answer.size() != 2)
        return;
    const Held held = books_of(books.path(), guest.pid());
    print_row(route, answer, held);
    CHECK(answer[0] == std::to_string(kOutOfMemory));
    CHECK(std::stoi(answer[1]) > 0);
    CHECK(held.known);
    if (!limited) {
        CHECK(held.used > route.limit);  // otherwise the rows above show nothing
        return;
    }
    CHECK(held.used <= route.limit);
    if (!route.afterwards)
        CHECK(held.peak <= route.limit);
    // It was refused for its limit and not before: one more block wouldn't have fit, with what is kept for the driver.
    CHECK(held.used + kBlock + route.limit / 10 > route.limit);
    const Words said = guest.complaints();
    CHECK(said.size() == 1);
    if (said.size() != 1)
        return;
    CHECK(said[0].rfind("cuslice: out of memory on GPU ", 0) == 0);
    CHECK(said[0].find("(NVIDIA GeForce 940MX): cu") != std::string::npos);
    CHECK(said[0].find("of the " + std::to_string(route.limit / kMiB) + ".0 MiB limit are in use") !=
          std::string::npos);
}

TEST_CASE("route table: each is refused one allocation past its limit") {
    std::printf("\n  %-28s %8s %8s %9s %9s %9s\n", "route", "granted", "refused", "used MiB", "peak MiB", "limit MiB");
    for (const Route& route : routes()) {
        if (!kSanitizer.empty() && route.words.size() > 1 && route.words[1].rfind("deepbind", 0) == 0) {
            skip(std::string(route.name) + ", which a sanitizer's runtime refuses");
            continue;
        }
        run_route(route, true);
    }
    // The control: the same guest without cuslice takes the whole GPU.
    Route control{"(without cuslice: linked)", guest("linked"), {}};
    run_route(control, false);
    if (kPython.empty())
        skip("ctypes, as there is no python3 here");
}

TEST_CASE("a guest on the shared runtime has the version that it was linked to") {
    for (const std::string major : {"11", "12", "13"}) {
        Folder books;
        Guest guest({kGuests + "/guest_runtime" + major},
                    sliced("1xt4", books.path(), {"CUSLICE_LIMIT=1GiB", "LD_LIBRARY_PATH=" + kFakeFolder}));
        CHECK(guest.ask("version").substr(0, 2) == major);
    }
}

}  // namespace
}  // namespace cuslice::tests
