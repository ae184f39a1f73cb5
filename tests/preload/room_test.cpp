// SPDX-License-Identifier: Apache-2.0
// Limits and parts that are too small for a context: said by the launcher where it knows, and by the refusal.
#include <algorithm>
#include <cmath>
#include <regex>

#include "tests/preload/device.h"
#include "tests/preload/machine.h"

namespace cuslice::tests {
namespace {

// A context on a laptop-2g takes 300 MiB, and a fifth of that is kept free beside it.
const std::string kContext = "cuslice: GPU 0: a context takes 300.0 MiB, and needs a ";

std::string bytes(uint64_t count) { return std::to_string(count); }

/// Figures in the line of a refusal, in MiB.
struct Figures {
    explicit Figures(const std::string& line) {
        const std::string size = "([0-9.]+) MiB";
        std::smatch found;
        const std::regex all("tried to allocate " + size + "[^;]*; " + size + " of the " + size +
                             " limit.* are in use " + R"((?:by this partition )?\(([^)]*)\))");
        REQUIRE(std::regex_search(line, found, all));
        requested = std::stod(found[1]), used = std::stod(found[2]), limit = std::stod(found[3]);
        const std::string parts = found[4];
        const std::regex one(size);
        for (std::sregex_iterator part(parts.begin(), parts.end(), one); part != std::sregex_iterator(); ++part)
            held += std::stod((*part)[1]);
        if (std::regex_search(line, found, std::regex(size + " by other processes")))
            others = std::stod(found[1]);
        if (std::regex_search(line, found, std::regex(size + " are kept for the driver")))
            headroom = std::stod(found[1]);
    }
    double requested = 0, used = 0, limit = 0, held = 0, others = 0, headroom = 0;
};

}  // namespace

TEST_CASE("a limit that is smaller than a context is said to be so, with the least that would do") {
    const Machine machine("1xlaptop-2g");
    auto small = machine.start({"--limit", "299MiB"});
    REQUIRE(small->code("init") == kSuccess);
    CHECK(small->code("retain 0") == kOutOfMemory);
    CHECK(small->finish() == 0);
    const Words lines = small->complaints();
    REQUIRE(lines.size() == 2);
    CHECK(lines[0] == kContext +
                          "limit of at least 361MiB with its headroom; --limit gives 299.0 MiB, so nothing can be "
                          "allocated; a context that the CUDA runtime makes takes its 300.0 MiB all the same");
    CHECK(lines[1].starts_with("cuslice: out of memory on GPU 0 ("));
    const std::string why =
        "): cuDevicePrimaryCtxRetain failed: a context on this GPU takes 300.0 MiB, more than the limit of 299.0 "
        "MiB from --limit. With 60.0 MiB kept for the driver (headroom), the limit must be at least 361MiB";
    CHECK(lines[1].ends_with(why));

    auto useless = machine.start({"--limit", "360MiB"});
    REQUIRE(useless->code("init") == kSuccess);
    CHECK(useless->code("retain 0") == kSuccess);
    CHECK(useless->code("alloc x 4096") == kOutOfMemory);
    CHECK(useless->finish() == 0);
    CHECK(useless->complaints().at(0).ends_with("--limit gives 360.0 MiB, so nothing else can be allocated"));

    auto enough = machine.start({"--limit", "361MiB"});
    REQUIRE(enough->code("init") == kSuccess);
    CHECK(enough->code("retain 0") == kSuccess);
    CHECK(enough->code("alloc x 4096") == kSuccess);
    CHECK(enough->finish() == 0);
    CHECK(enough->complaints().empty());
}

TEST_CASE("under a limit below a context, one that a runtime makes stays, and nothing is granted in it") {
    const Machine machine("1xlaptop-2g");
    auto guest = machine.start({"--limit", "200MiB"});
    REQUIRE(guest->code("init") == kSuccess);
    REQUIRE(guest->code("hidden 0") == kSuccess);
    CHECK(guest->code("alloc x " + bytes(kMiB)) == kOutOfMemory);
    CHECK(machine.held(*guest, 0).used == 300 * kMiB);
    CHECK(guest->finish() == 0);
    const Words lines = guest->complaints();
    REQUIRE(lines.size() == 2);
    CHECK(
        lines[0].ends_with("--limit gives 200.0 MiB, so nothing can be allocated; a context that the CUDA runtime "
                           "makes takes its 300.0 MiB all the same"));
    CHECK(Figures(lines[1]).used == 300);
}

TEST_CASE("the figures of a refusal add up, whatever the driver has taken and given back for it") {
    struct Case {
        std::string name;
        Words options, before;
        std::string refused;
        double limit;
    };
    const Words full{"alloc a " + bytes(600 * kMiB)}, fuller{"alloc a " + bytes(630 * kMiB)};
    const std::string context = "create own 0", module = "module m " + bytes(96 * kMiB);
    const Case one = GENERATE_COPY(
        Case{"context", {"--limit", "1000MiB"}, full, context, 1000},
        Case{"context, own headroom", {"--limit", "1000MiB", "--headroom", "16MiB"}, full, context, 1000},
        Case{"context, growth", {"--limit", "1000MiB", "--allocator", "growth"}, full, context, 1000},
        Case{"context, group", {"--group", "lab", "--group-limit", "1000MiB"}, full, context, 1000},
        Case{"module", {"--limit", "1000MiB"}, fuller, module, 1000},
        Case{"module, split", {"--split", "0=1000MiB+500MiB"}, {"alloc a " + bytes(740 * kMiB)}, module, 1000},
        Case{"memory", {"--limit", "1000MiB"}, full, "alloc b " + bytes(200 * kMiB), 1000});
    CAPTURE(one.name);
    const Machine machine("1xlaptop-2g");
    auto guest = machine.start(one.options);
    use_device(*guest);
    for (const std::string& call : one.before)
        REQUIRE(guest->code(call) == kSuccess);
    CHECK(guest->code(one.refused) == kOutOfMemory);
    const auto peak = machine.holders().at(0).at("peak").get<uint64_t>() / kMiB;
    const Held held = machine.held(*guest, 0);
    CHECK(guest->finish() == 0);
    const Words lines = guest->complaints();
    REQUIRE(!lines.empty());
    CAPTURE(lines);
    const Figures said(lines[0]);
    CHECK(std::abs(said.used - said.held - said.others) <= 0.2);
    CHECK(said.limit == one.limit);
    CHECK(said.used <= said.limit);
    CHECK(said.requested + said.used + said.headroom > said.limit);
    // Above the limit only what was held there for a moment.
    CHECK(peak <= std::max(static_cast<uint64_t>(one.limit), held.peak / kMiB));
}

TEST_CASE("under LD_PRELOAD alone a limit that is more than the GPU has gets a line where it names the GPU") {
    const Folder books;
    const auto said = [&](const Words& settings) {
        Guest guest(Guest::route("linked"), sliced("1xlaptop-2g", books.path(), settings));
        retain_device(guest);
        REQUIRE(guest.code("create own 0") == kSuccess);
        CHECK(guest.finish() == 0);
        Words lines = guest.complaints();
        std::erase_if(lines, [](const std::string& line) { return line.find("use all of it") == line.npos; });
        return lines;
    };
    const Words named = said({"CUSLICE_LIMIT=0=20GiB"});
    REQUIRE(named.size() == 1);
    CHECK(
        named[0].starts_with("cuslice: GPU 0 (NVIDIA GeForce 940MX): CUSLICE_LIMIT sets a limit of 20.0 GiB, and it "
                             "has only "));
    CHECK(named[0].ends_with(", so the program may use all of it"));
    // Written once for machines of several sizes.
    CHECK(said({"CUSLICE_LIMIT=20GiB"}).empty());
    CHECK(said({"CUSLICE_LIMIT=20GiB", "CUSLICE_LOG=info"}).size() == 1);
    CHECK(said({"CUSLICE_LIMIT=0=1GiB", "CUSLICE_LOG=info"}).empty());
    CHECK(said({"CUSLICE_LIMIT=20GiB", "CUSLICE_SPLIT=0=2", "CUSLICE_LOG=info"}).empty());
}

TEST_CASE("parts that have no room for their shares of a context are said to be so before the program starts") {
    const Machine machine("1xlaptop-2g");
    const auto said = [&](const std::string& split) {
        return run(machine.launch({"--split", split}, {"/bin/true"}), machine.outside()).err;
    };
    CHECK(said("0=100MiB+200MiB") ==
          "cuslice: GPU 0: a context takes 300.0 MiB, and needs partitions of at least 361MiB with its headroom; its 2 "
          "partitions have 300.0 MiB together, so no program can use them\n");
    CHECK(said("0=100MiB+262MiB").empty());
    CHECK(said("0=8").empty());

    auto small = machine.start({"--split", "0=100MiB+200MiB"});
    REQUIRE(small->code("init") == kSuccess);
    CHECK(small->code("retain 1") == kOutOfMemory);
    CHECK(small->finish() == 0);
    const Words lines = small->complaints();
    REQUIRE(lines.size() == 2);
    CHECK(
        lines[1].ends_with("cuDevicePrimaryCtxRetain failed: a context on this GPU takes 200.0 MiB of this partition, "
                           "which has 200.0 MiB from --split. With 40.0 MiB kept for the driver (headroom), the "
                           "partition must have at least 241MiB"));
}

TEST_CASE("devices shows what a program then finds free, of a limit and of parts") {
    const Machine machine("1xlaptop-2g");
    for (const Words& options : {Words{"--limit", "1GiB"}, Words{"--split", "0=3"},
                                 Words{"--split", "0=500MiB+1GiB", "--headroom", "40MiB"}}) {
        CAPTURE(options);
        const Words command = joined({kLaunch, "devices", "--json", "--fake", machine.fake}, options);
        const Outcome listed = run(command, machine.outside());
        REQUIRE(listed.exit_code == 0);
        const Json devices = Json::parse(listed.out).at("devices");
        auto guest = machine.start(options);
        REQUIRE(guest->code("init") == kSuccess);
        REQUIRE(guest->number("count") == devices.size());
        for (size_t i = 0; i < devices.size(); ++i) {
            CHECK(devices[i].at("context_known") == true);
            REQUIRE(guest->code("retain " + std::to_string(i)) == kSuccess);
            REQUIRE(guest->code("current " + std::to_string(i)) == kSuccess);
            // Shares are rounded differently here and there.
            const auto left = devices[i].at("left").get<int64_t>();
            CHECK(std::abs(left - static_cast<int64_t>(guest->number("info"))) <= 64 << 10);
        }
        CHECK(guest->finish() == 0);
    }
}

}  // namespace cuslice::tests
