// SPDX-License-Identifier: Apache-2.0
// Figures that are shown add up, and say the same wherever they are shown: ps, top, stats, Prometheus, the refusal, the
// summary, cuMemGetInfo and NVML, held against the fake GPU's own books. Each after the same steps of two programs,
// which share a job or a group or have partitions.
#include <functional>
#include <memory>
#include <regex>
#include <vector>

#include "tests/catch.h"
#include "tests/json.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"

namespace cuslice::tests {
namespace {

const std::string kLaunch = CUSLICE_TEST_LAUNCH, kGpu = "1xt4";
constexpr uint64_t kLimit = 3000 * kMiB;
// For figures in MiB with one decimal.
constexpr double kRounding = 0.051;

struct Shown {
    uint64_t used = 0, together = 0, peak = 0, limit = 0, reserved = 0;
    bool operator==(const Shown&) const = default;
};

struct Pair {
    Pair(const std::string& sharing, const std::string& mode) {
        Words settings{"CUSLICE_HEADROOM=16MiB", "CUSLICE_ALLOCATOR=" + mode, "CUSLICE_SUMMARY=yes"};
        const std::string limit = bytes(kLimit / kMiB) + "MiB";
        if (sharing == "job")
            settings.insert(settings.end(), {"CUSLICE_JOB=shared", "CUSLICE_LIMIT=" + limit});
        if (sharing == "group")
            settings.insert(settings.end(), {"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=" + limit});
        if (sharing == "split")
            settings.insert(settings.end(), {"CUSLICE_JOB=shared", "CUSLICE_SPLIT=0=" + limit + "+2000MiB"});
        for (auto& one : programs) {
            one = std::make_unique<Guest>(Guest::route("linked"), sliced(kGpu, books.path(), settings));
            REQUIRE(one->code("init") == kSuccess);
            REQUIRE(one->code("nvml") == kSuccess);
            enter_device(*one);
        }
    }

    Outcome cuslice(const Words& words) const {
        Words all{kLaunch};
        all.insert(all.end(), words.begin(), words.end());
        all.insert(all.end(), {"--fake", kGpu});
        const Outcome outcome = run(all, plain({"CUSLICE_FAKE_DIR=" + books.path()}));
        CHECK(outcome.err.empty());
        REQUIRE(outcome.exit_code == 0);
        return outcome;
    }

    Folder books;
    std::unique_ptr<Guest> programs[2];
};

// On the GPU that the program has as its first.
Shown shown_of(const Json& processes, Guest& program) {
    const std::string gpu = split_words(program.ask("uuid 0")).at(1);
    Shown shown;
    for (const Json& row : processes)
        if (row["pid"] == program.pid() && row["gpu"] == gpu)
            shown = {row["used"], row["together"], row["peak"], row["limit"], row["reserved"]};
    return shown;
}

// On all its GPUs: of one that is split, on the partitions. The whole has an account, too, which is without a limit.
uint64_t used_in_all(const Json& processes, Guest& program) {
    uint64_t used = 0;
    for (const Json& row : processes)
        if (row["pid"] == program.pid() && !row["limit"].is_null())
            used += row["used"].get<uint64_t>();
    return used;
}

// One gauge's values, in the order of its rows.
std::vector<double> gauges(const std::string& text, const std::string& name) {
    std::vector<double> values;
    for (const std::string& line : split_lines(text))
        if (line.rfind(name + "{", 0) == 0)
            values.push_back(std::stod(line.substr(line.rfind(' ') + 1)));
    return values;
}

// "12.5 MiB" at this place of the text.
double mebibytes(const std::string& text, const std::regex& form) {
    std::smatch found;
    CAPTURE(text);
    REQUIRE(std::regex_search(text, found, form));
    return std::stod(found[1]);
}

uint64_t nvml_adds_up(Guest& program) {
    const Words first = split_words(program.ask("nvmlmemory 0")), second = split_words(program.ask("nvmlmemory2 0"));
    const uint64_t total = std::stoull(first.at(1)), free = std::stoull(first.at(2));
    CHECK(free + std::stoull(first.at(3)) == total);
    CHECK(std::stoull(second.at(1)) == total);
    CHECK(std::stoull(second.at(2)) == free);
    CHECK(free + std::stoull(second.at(3)) + std::stoull(second.at(4)) == total);
    CHECK(total == kLimit);
    return free;
}

void all_figures_add_up(Pair& pair) {
    const Json processes = Json::parse(pair.cuslice({"ps", "--json"}).out)["processes"];
    const Json top = Json::parse(pair.cuslice({"top", "--json"}).out);
    const std::string metrics = pair.cuslice({"ps", "--prometheus"}).out;
    uint64_t used = 0, held = 0;
    for (const auto& program : pair.programs) {
        const Shown shown = shown_of(processes, *program);
        const Held books = books_of(pair.books.path(), program->pid());
        CHECK(shown == shown_of(top["processes"], *program));
        CHECK(used_in_all(processes, *program) == books.used);
        CHECK(shown.used <= shown.together);
        CHECK(shown.together <= shown.peak);
        CHECK(shown.peak <= shown.limit);
        CHECK(shown.limit == kLimit);
        CHECK(program->number("info", 2) == kLimit);
        const uint64_t free = program->number("info");
        CHECK(nvml_adds_up(*program) == free);
        CHECK(free + shown.together - shown.used <= kLimit);
        used += shown.used;
        held += books.used;
    }
    CHECK(used == shown_of(processes, *pair.programs[0]).together);
    // A split GPU comes before its partitions, which are held against the books above.
    const std::vector<double> on_accounts = gauges(metrics, "cuslice_account_used_bytes");
    REQUIRE_FALSE(on_accounts.empty());
    CHECK(on_accounts[0] == static_cast<double>(held));
    CHECK(gauges(metrics, "cuslice_gpu_used_bytes") == on_accounts);
    for (const Json& cache : top["caches"]) {
        const Json live = cache["allocated"]["current"], requested = cache["requested"]["current"];
        CHECK(requested.get<uint64_t>() <= live.get<uint64_t>());
        CHECK(live.get<uint64_t>() <= cache["reserved"]["current"].get<uint64_t>());
        CHECK(live.get<uint64_t>() <= cache["allocated"]["peak"].get<uint64_t>());
        CHECK(cache["allocated"]["allocated"].get<uint64_t>() - cache["allocated"]["freed"].get<uint64_t>() ==
              live.get<uint64_t>());
    }
}

// "X of the Y limit are in use (A 1.0 MiB, B 2.0 MiB in 1 block), Z by other processes": X is the sum of the others.
void refusal_adds_up(const std::string& line) {
    CAPTURE(line);
    const double use = mebibytes(line, std::regex("; ([0-9.]+) MiB of the [0-9.]+ MiB limit")),
                 limit = mebibytes(line, std::regex("of the ([0-9.]+) MiB limit")),
                 others = mebibytes(line, std::regex("\\), ([0-9.]+) MiB by other processes"));
    CHECK(limit == static_cast<double>(kLimit / kMiB));
    const size_t open = line.find(" are in use ("), close = line.find(')', open);
    const std::string list = line.substr(open, close - open);
    double sum = others;
    const std::regex amount("([0-9.]+) (MiB|KiB)");
    for (std::sregex_iterator one(list.begin(), list.end(), amount), end; one != end; ++one)
        sum += std::stod((*one)[1]) / ((*one)[2] == "MiB" ? 1 : 1024);
    CHECK(std::abs(sum - use) <= 6 * kRounding);
    CHECK(use <= limit);
}

}  // namespace

TEST_CASE("figures add up wherever they are shown, in every mode and way of sharing") {
    const std::string sharing = GENERATE("job", "group", "split"), mode = GENERATE("direct", "growth");
    CAPTURE(sharing, mode);
    Pair pair(sharing, mode);
    Guest &one = *pair.programs[0], &other = *pair.programs[1];
    all_figures_add_up(pair);
    const std::vector<std::function<int()>> steps{
        [&] { return one.code("alloc a " + bytes(100 * kMiB)); },
        [&] { return other.code("alloc a " + bytes(40 * kMiB + 1)); },
        [&] { return one.code("alloc b 1000"); },
        [&] { return other.code("alloc m " + bytes(7 * kMiB) + " managed"); },
        [&] { return one.code("free a"); },
        [&] { return other.code("free m"); },
        [&] { return one.code("alloc c " + bytes(64 * kMiB)); },
        [&] { return other.code("free a"); },
        [&] { return one.code("free b"); },
        [&] { return one.code("alloc s " + bytes(50 * kMiB) + " async"); },
        [&] { return other.code("alloc s " + bytes(kMiB) + " async"); },
        [&] { return one.code("freeasync s"); },
        // Until its next call what it has given back counts as used: see docs/sharing.md.
        [&] { return one.code("sync") + one.code("info"); },
        [&] { return other.code("free s"); },
    };
    for (size_t i = 0; i < steps.size(); i++) {
        CAPTURE(i);
        REQUIRE(steps[i]() == 0);
        all_figures_add_up(pair);
    }
    one.code("alloc most " + bytes(kLimit));
    all_figures_add_up(pair);
    Words said = one.complaints();
    while (!said.empty() && said.back().find("tried to allocate") == std::string::npos)
        said.pop_back();
    REQUIRE_FALSE(said.empty());
    refusal_adds_up(said.back());

    const uint64_t peak = books_of(pair.books.path(), one.pid()).peak;
    CHECK(one.finish() == 0);
    const double shown = mebibytes(one.err(), std::regex("this process used at most ([0-9.]+) MiB of the"));
    CHECK(shown + kRounding >= static_cast<double>(peak) / static_cast<double>(kMiB));
    CHECK(shown <= static_cast<double>(kLimit / kMiB));
}

TEST_CASE("what is said to be free can be had as one block") {
    const std::string mode = GENERATE("direct", "growth", "prealloc"), how = GENERATE("plain", "async");
    // By so much a pool grows, and the driver's own figure isn't rounded down to it either.
    const uint64_t less = how == "async" ? 32 * kMiB : 0;
    const uint64_t before = GENERATE(as<uint64_t>{}, 1, 3 * kMiB + 5, 40 * kMiB, 77 * kMiB);
    CAPTURE(mode, how, before);
    Scene scene("1xt4", {"CUSLICE_ALLOCATOR=" + mode}, "1001MiB");
    REQUIRE(scene.guest.code("retain 0") == kSuccess);
    REQUIRE(scene.guest.code("alloc before " + bytes(before) + " " + how) == kSuccess);
    // A cache's free memory lies in pieces while blocks are in use: see docs/allocator.md.
    if (mode != "direct" && how == "plain")
        REQUIRE(scene.guest.code("free before") == kSuccess);
    for (int i = 0; i < 2; i++) {
        CHECK(scene.guest.code("alloc all " + bytes(scene.free() - less) + " " + how) == kSuccess);
        CHECK(scene.held().used <= 1001 * kMiB);
        REQUIRE(scene.guest.code("free all") == kSuccess);
        REQUIRE(scene.guest.code("sync") == kSuccess);
    }
}

}  // namespace cuslice::tests
