// SPDX-License-Identifier: Apache-2.0
// Shares of a GPU that together are the whole of it fit beside each other, on every profile and however many GPUs there
// are: what the driver keeps for itself is in nobody's share.
#include <algorithm>
#include <filesystem>

#include "tests/catch.h"
#include "tests/preload/device.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"

namespace cuslice::tests {
namespace {

Words profiles() {
    Words names;
    for (const auto& file : std::filesystem::directory_iterator(kFakeFolder + "/profiles"))
        names.push_back(file.path().stem());
    REQUIRE(names.size() >= 12);
    return names;
}

// So many jobs with that fraction each, at the same time: each has a context on each of these GPUs, and some memory.
void fit_together(const Machine& machine, int jobs, const std::string& fraction, const std::vector<size_t>& gpus) {
    CAPTURE(machine.fake, jobs, fraction);
    std::vector<std::unique_ptr<Guest>> all;
    for (int i = 0; i < jobs; ++i) {
        all.push_back(machine.start({"--fraction", fraction}, {"CUDA_DEVICE_ORDER=PCI_BUS_ID"}));
        Guest& guest = *all.back();
        REQUIRE(guest.code("init") == kSuccess);
        for (const size_t gpu : gpus) {
            CAPTURE(i, gpu);
            CHECK(guest.code("retain " + std::to_string(gpu)) == kSuccess);
            CHECK(guest.code("alloc m" + std::to_string(gpu) + " " + std::to_string(16 * kMiB)) == kSuccess);
        }
    }
    for (const auto& guest : all) {
        CHECK(guest->finish() == 0);
        CHECK(guest->complaints().empty());
    }
}

void all_shares_fit(const Machine& machine, const std::vector<size_t>& gpus) {
    fit_together(machine, 1, "1", gpus);
    fit_together(machine, 2, "0.5", gpus);
    fit_together(machine, 3, "0.3333", gpus);
    fit_together(machine, 4, "0.25", gpus);
}

// `copies` of each of these profiles, in one machine.
void on_machine_of(const Words& names, size_t copies) {
    std::string list;
    std::vector<size_t> gpus;
    for (const std::string& name : names) {
        list += (list.empty() ? "" : ",") + std::to_string(copies) + "x" + name;
        // The first and the last of each.
        gpus.push_back(gpus.size() / 2 * copies);
        gpus.push_back(gpus.back() + copies - 1);
    }
    all_shares_fit(Machine(list), gpus);
}

}  // namespace

TEST_CASE("two halves, three thirds, four quarters and a whole fit on one GPU of every profile") {
    for (const std::string& name : profiles())
        all_shares_fit(Machine("1x" + name), {0});
}

TEST_CASE("two halves, three thirds, four quarters and a whole fit on two GPUs of every profile") {
    on_machine_of(profiles(), 2);
}

TEST_CASE("two halves, three thirds, four quarters and a whole fit on eight GPUs of every profile") {
    const Words names = profiles();
    for (size_t at = 0; at < names.size(); at += 8)
        on_machine_of(Words(names.begin() + at, names.begin() + std::min(at + 8, names.size())), 8);
}

TEST_CASE("memory that is held outside is in nobody's share, with one GPU and with several") {
    const std::string fake = GENERATE("1xt4", "2xt4");
    const Machine machine(fake);
    Guest outside(Guest::route("linked"), raw(fake, machine.books.path()));
    retain_device(outside);
    const uint64_t total = outside.number("total 0"),
                   left = total - books_of(machine.books.path(), outside.pid(), machine.uuids[0]).used;
    const auto fits = [&](uint64_t size) {
        const auto guest = machine.start({"--limit", std::to_string(size / 1024) + "KiB"});
        return guest->code("init") == kSuccess && guest->code("retain 0") == kSuccess;
    };
    CHECK(fits(left));
    CHECK_FALSE(fits(left + 1024));
}

}  // namespace cuslice::tests
