// SPDX-License-Identifier: Apache-2.0
// Compares the driver's answers to a program, call by call: two separate GPUs, each with a limit of half its memory,
// against one that is split in two. Every line has to be the same, except for the known differences, which are all
// listed here.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "tests/catch.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

struct Difference {
    const char* reason;
    const char* calls;  // which calls, as a regular expression of all that is before the answer
    unsigned lines;     // how many of them differ
};

const std::vector<Difference> kKnown = {
    {"A context that has ended while it was current, or part 0's primary one, names the real context still, which "
     "lives "
     "on: calls go on where separate GPUs say that it is destroyed.",
     "stacks: beneath another: cuCtxSynchronize.*|primaries: current and ended: .*|primaries: "
     "cuCtxGet(Current|Device)\\(.*|threads: A ended in another thread: .*|threads: "
     "cuCtx(GetDevice|Synchronize)\\(.*|resets: device 0 "
     "reset: cuCtxSetCurrent\\(p0\\)",
     15},
    {"Limits and preferences are set on the one real context, for all that stand for it.",
     "settings: A: cuCtxGet(CacheConfig|SharedMemConfig|Limit).*", 4},
    {"Pinned host memory is the real context's: it lasts as long as that.", "(endings|resets): .*cuMemHostGetFlags.*",
     3},
    {"Events are the real context's: they last as long as that, and any part's stream takes them.",
     "(endings|resets|streams): .*cu(Event|CtxRecordEvent).*", 17},
    {"Functions and __device__ variables are the real context's: any part can launch the ones, a library has one set "
     "of "
     "the others for all parts, and a variable is said to be the asking thread's.",
     "modules: current (P0|A): cu(LaunchKernel|FuncGetAttribute).*|modules: cu(Library|Kernel)Get.*|modules: data of "
     "M0: cuPointerGetAttribute.*",
     9},
    {"Parts of one GPU reach each other's memory whatever is allowed, and access that one of them has is not taken "
     "from it with another's.",
     "pieces: .*cuMemGetAccess.*|pieces: current P0: R\\+2097152: cuMemset.*|pointers: "
     ".*CU_POINTER_ATTRIBUTE_(DEVICE_POINTER|ACCESS_FLAGS).*",
     18},
    {"Memory of another process is said to be the part's that opened it, which is charged for it.",
     "sharing: child: memory of device [01]: current P[01]: cuPointerGetAttribute\\(&where.*", 2},
    {"A chosen pool that is destroyed is followed by the preset one at once, as documented; the fake driver waits "
     "until "
     "its last allocation is freed.",
     "pools: cuDeviceGetMemPool\\(&found, 1\\)", 1},
    {"Stream-ordered memory outlives the reset of one part, and stays charged to it.",
     "streams of pools: cuPointerGetAttribute\\(&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, x\\)", 1},
    {"What graphs keep is the physical GPU's, and so are its figures.",
     "graph memory: .*cuDeviceGetGraphMemAttribute.*", 8},
    {"Multiprocessors are the physical GPU's: any part makes a green context of any part's.",
     "green: the other's resources: cuGreenCtxCreate.*", 1},
    {"A multicast object is of different physical GPUs: there is none of the parts of one.",
     "multicast: cu(MulticastCreate\\(&two|MulticastAddDevice\\(two|MulticastBindMem\\(two|MemRelease\\(two).*", 5},
    {"A hint about managed memory is for the physical GPU: it is told as the asking thread's part.",
     "managed: .*cuMemRangeGetAttribute(s|\\(.*(PREFERRED_LOCATION|LAST_PREFETCH_LOCATION|ACCESSED_BY)).*", 41},
};

struct Line {
    std::string call, answer;
};

const std::string kGuest = kGuests + "/guest_conformance";
// The books count an H100's memory to the byte. An H200 rounds up, and the driver is charged the difference, of which
// all partitions get a share.
const std::string kGpu = "h100";

// The lines that are compared, and all that was said.
std::vector<Line> lines_of(const std::string& section, const Words& settings, std::string* all) {
    Folder books;
    const Outcome outcome = run({kGuest, section}, sliced(settings.at(0), books.path(), {settings.at(1)}));
    INFO(section << ": " << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    *all += outcome.out + outcome.err;
    std::vector<Line> lines;
    for (const std::string& line : split_lines(outcome.out)) {
        if (line.rfind("raw ", 0) == 0)
            continue;
        const size_t end = line.rfind(") = ");
        if (end == std::string::npos)
            lines.push_back({line, ""});
        else
            lines.push_back({line.substr(0, end + 1), line.substr(end + 4)});
    }
    return lines;
}

Words sections() { return split_lines(run({kGuest}, raw("1x" + kGpu, "")).out); }

// Half the memory, in whole pages.
uint64_t half() {
    Folder books;
    Guest guest(Guest::route("linked"), raw("1x" + kGpu, books.path()));
    REQUIRE(guest.code("init") == kSuccess);
    constexpr uint64_t kPage = 2 * kMiB;
    return guest.number("total 0") / 2 / kPage * kPage;
}

std::string text_of_limit() { return std::to_string(half() / kMiB) + "MiB"; }

std::set<std::string> functions_of(const std::vector<Line>& lines) {
    std::set<std::string> found;
    for (const Line& line : lines) {
        const size_t end = line.call.find('('), start = line.call.rfind(' ', end) + 1;
        if (line.call.compare(start, 2, "cu") == 0)
            found.insert(line.call.substr(start, end - start));
    }
    return found;
}

std::set<std::string> translated_functions() {
    static const std::regex entry("^CUSLICE_FUNCTION\\((cu\\w+),.*, (own|device_\\d|context), \\w+\\)");
    std::set<std::string> names;
    std::ifstream list(CUSLICE_TEST_FUNCTIONS);
    for (std::string line; std::getline(list, line);) {
        std::smatch match;
        if (std::regex_search(line, match, entry))
            names.insert(match[1]);
    }
    return names;
}

std::string lowered(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) { return std::tolower(letter); });
    return text;
}

}  // namespace

// The fake driver has no room for two GPUs of this size beside a sanitizer's shadow of every address.
bool room_for_two() {
    if (kSanitizer != "thread")
        return true;
    skip("two large GPUs, for which a sanitizer leaves no addresses");
    return false;
}

TEST_CASE("a GPU split in two answers as two separate ones do, call by call") {
    if (!room_for_two())
        return;
    CHECK(kKnown.size() <= 13);
    const std::string limit = "CUSLICE_LIMIT=" + text_of_limit();
    std::vector<std::regex> known;
    for (const Difference& difference : kKnown)
        known.emplace_back(difference.calls);
    std::vector<unsigned> excused(kKnown.size());
    std::set<std::string> functions, differing;
    std::string separate_said, split_said;
    size_t count = 0, equal = 0, unsupported = 0;

    for (const std::string& section : sections()) {
        const std::vector<Line> separate = lines_of(section, {"2x" + kGpu, limit}, &separate_said);
        const std::vector<Line> split = lines_of(section, {"1x" + kGpu, "CUSLICE_SPLIT=0=2"}, &split_said);
        INFO(section);
        REQUIRE(separate.size() == split.size());
        functions.merge(functions_of(separate));
        for (size_t i = 0; i < separate.size(); i++) {
            count++;
            REQUIRE(separate[i].call == split[i].call);
            if (separate[i].answer == split[i].answer) {
                equal++;
                unsupported += separate[i].answer == "801";
                continue;
            }
            differing.merge(functions_of({separate[i]}));
            size_t which = 0;
            while (which < known.size() && !std::regex_match(separate[i].call, known[which]))
                which++;
            INFO(separate[i].call << "\n  separate: " << separate[i].answer << "\n  split:    " << split[i].answer);
            CHECK(which < known.size());
            if (which < known.size())
                excused[which]++;
        }
    }

    std::printf("\n  %zu lines of %zu functions; %zu equal, %zu not, of %zu functions:\n", count, functions.size(),
                equal, count - equal, differing.size());
    for (size_t i = 0; i < kKnown.size(); i++) {
        INFO(kKnown[i].reason);
        std::printf("  %3u  %s\n", excused[i], kKnown[i].reason);
        CHECK(excused[i] == kKnown[i].lines);
    }
    std::set<std::string> missing;
    const std::set<std::string> translated = translated_functions();
    std::set_difference(translated.begin(), translated.end(), functions.begin(), functions.end(),
                        std::inserter(missing, missing.end()));
    std::printf("  %zu of the %zu functions that are translated are called. Not:", translated.size() - missing.size(),
                translated.size());
    for (const std::string& name : missing)
        std::printf(" %s", name.c_str());
    std::printf("\n");

    // No answer contains the driver's own UUID or PCI id of the physical GPU.
    std::string alone;
    lines_of("devices", {"1x" + kGpu, limit}, &alone);
    std::string uuid, pci;
    for (const std::string& line : split_lines(alone))
        if (line.rfind("raw GPU-", 0) == 0 && uuid.empty())
            uuid = split_words(line).at(1), pci = split_words(line).at(2);
    REQUIRE(uuid.size() == 40);
    REQUIRE(pci.size() == 12);
    CHECK(lowered(split_said).find(lowered(uuid)) == std::string::npos);
    CHECK(lowered(split_said).find(lowered(pci)) == std::string::npos);
    CHECK(split_said.find("raw GPU-") != std::string::npos);
}

TEST_CASE("two parts and a GPU beside them answer as three GPUs do") {
    if (!room_for_two())
        return;
    const std::string limit = text_of_limit();
    std::string said;
    const std::vector<Line> separate =
        lines_of("third", {"3x" + kGpu, "CUSLICE_LIMIT=0=" + limit + ",1=" + limit}, &said);
    const std::vector<Line> split = lines_of("third", {"2x" + kGpu, "CUSLICE_SPLIT=0=2"}, &said);
    REQUIRE(separate.size() == split.size());
    // Parts reach each other's memory, and what one of them may reach, whatever is allowed.
    const std::regex known("third: piece of device [12]: device 0: cuMemGetAccess.*");
    unsigned excused = 0;
    for (size_t i = 0; i < separate.size(); i++) {
        REQUIRE(separate[i].call == split[i].call);
        INFO(separate[i].call);
        if (std::regex_match(separate[i].call, known))
            excused += separate[i].answer != split[i].answer;
        else
            CHECK(separate[i].answer == split[i].answer);
    }
    std::printf("\n  %zu lines of three GPUs; %u differ\n", separate.size(), excused);
    CHECK(excused == 4);
}

}  // namespace cuslice::tests
