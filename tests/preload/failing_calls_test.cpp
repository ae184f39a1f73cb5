// SPDX-License-Identifier: Apache-2.0
// Each call that the library makes into the C library fails once, in turn: no descriptor, no memory, no room, no right.
// The program goes on as if nothing had been, or is told by name; it never has more than its limit, and leaves nothing
// behind that the next one would miss.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <span>
#include <string>

#include "tests/catch.h"
#include "tests/preload/failing_plan.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

const std::string kGpu = "1xlaptop-2g";

int number_of(const char* variable, int otherwise) {
    const char* const value = std::getenv(variable);
    return value ? std::atoi(value) : otherwise;
}

// On a split, half of the context is charged to the other partition.
constexpr uint64_t kLimit = 1000 * kMiB, kHalfOfContext = 151 * kMiB;

// How many calls of each place in the code are tried, with which errno (0: a likely one), and how many from each on
// fail. More takes minutes.
const int kOfEachPlace = number_of("CUSLICE_TEST_CALLS_OF_EACH_PLACE", 1), kError = number_of("CUSLICE_TEST_ERRNO", 0),
          kInARow = number_of("CUSLICE_TEST_CALLS_IN_A_ROW", 1);
// How many pairs of calls, by chance, fail in each situation, and the number that decides about them.
const int kPairs = number_of("CUSLICE_TEST_PAIRS_OF_CALLS", 3), kSeed = number_of("CUSLICE_TEST_SEED", 1);

std::string bytes(uint64_t count) { return std::to_string(count); }

// Programs of one thread, so that the calls of a run are those of the run before.
struct Situation {
    const char* name;
    Words settings;
    Words steps;
    bool shares = false;  // what it leaves behind others would find
    bool split = false;
    Words launch = {};  // what the launcher is given, and whose calls fail; empty: the preloaded library's
};

const Words kAllocations{"init",
                         "retain 0",
                         "info",
                         "alloc a " + bytes(300 * kMiB),
                         "alloc b " + bytes(8 * kMiB),
                         "alloc big " + bytes(1200 * kMiB),
                         "fill " + bytes(16 * kMiB),
                         "free a",
                         "alloc c " + bytes(100 * kMiB),
                         "freeall",
                         "release 0"};
const Words kStreams{"init",     "retain 0",    "stream s", "pool p 0", "alloc a " + bytes(64 * kMiB) + " async",
                     "free b",   "freeasync a", "sync",     "trim p 0", "alloc big " + bytes(1200 * kMiB) + " async",
                     "unpool p", "reset 0"};
const Words kForks{"init",   "retain 0", "alloc a " + bytes(300 * kMiB), "forks 3 1", "alloc b " + bytes(300 * kMiB),
                   "freeall"};
const std::string kMost = "CUSLICE_LIMIT=1000MiB";

Words launch(const Words& options) {
    Words words{CUSLICE_TEST_LAUNCH, "run", "--fake", kGpu};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("--");
    return words;
}

const Situation kAlone[] = {
    {"a limit", {kMost}, kAllocations, false},
    {"growth", {kMost, "CUSLICE_ALLOCATOR=growth"}, kAllocations, false},
    {"prealloc", {kMost, "CUSLICE_ALLOCATOR=prealloc"}, kAllocations, false},
    {"deferred frees", {kMost, "CUSLICE_ALLOCATOR=growth", "CUSLICE_FREE=deferred"}, kAllocations, false},
    {"streams", {kMost}, kStreams, false},
    {"a recording", {kMost, "CUSLICE_ALLOCATOR=growth", "CUSLICE_RECORD=FOLDER/record.csv"}, kAllocations, false},
    {"a compact recording", {kMost, "CUSLICE_RECORD=FOLDER/record.cuslice"}, kAllocations, false},
    {"a log", {kMost, "CUSLICE_LOG=debug:FOLDER/log"}, kAllocations, false},
    {"a fraction of a file's", {"CUSLICE_CONFIG=FOLDER/cuslice.toml"}, kAllocations, false},
};
const Situation kOnSplits[] = {
    {"a split", {"CUSLICE_SPLIT=0=1000MiB+rest"}, kAllocations, false, true},
    {"a job on a split", {"CUSLICE_SPLIT=0=1000MiB+rest", "CUSLICE_JOB=shared"}, kAllocations, true, true},
};
const Situation kShared[] = {
    {"a job", {kMost, "CUSLICE_JOB=shared"}, kAllocations, true},
    {"a job that forks", {kMost, "CUSLICE_JOB=shared"}, kForks, true},
    {"a group", {"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1000MiB"}, kAllocations, true},
    {"a reservation of its own", {kMost, "CUSLICE_ADMISSION=first-context"}, kAllocations, true},
};

const Situation kLaunched[] = {
    {"the launcher", {}, kAllocations, true, false, launch({"--limit", "1000MiB"})},
    {"the launcher, and a job", {}, kAllocations, true, false, launch({"--limit", "1000MiB", "--summary=yes"})},
    {"the launcher, and a group",
     {},
     kAllocations,
     true,
     false,
     launch({"--group", "lab", "--group-limit", "1000MiB"})},
    {"the launcher, and a split", {}, kAllocations, true, true, launch({"--split", "0=1000MiB+rest"})},
    {"the launcher, in a queue",
     {},
     kAllocations,
     true,
     false,
     launch({"--limit", "1000MiB", "--wait", "--gpus", "any"})},
};

// The calls that fail in a run, by number; 0: none does.
struct Failing {
    uint64_t first = 0, again = 0;
};

FailingPlan plan_of(const Situation& situation, const Failing& failing) {
    FailingCall wanted;
    wanted.of = situation.launch.empty() ? CallsOf::library : CallsOf::launcher;
    wanted.failing = failing.first;
    wanted.again = failing.again;
    wanted.in_a_row = static_cast<uint64_t>(kInARow);
    wanted.error = kError;
    return FailingPlan(wanted);
}

// A run of a situation.
struct Course {
    std::vector<int> codes;   // of each step: a CUresult; -1: it makes no sense after those before it
    std::vector<Words> said;  // by the end of each step: lines of the library's
    bool gone = false;        // before the end
    int exit_code = 0;
    uint64_t peak = 0;  // bytes, by the accounting of the fake GPU
    std::string err;
};

int number_in(const std::string& answer, int otherwise) {
    return std::isdigit(static_cast<unsigned char>(answer[0])) ? std::stoi(answer) : otherwise;
}

Course run_through(const Situation& situation, const Folder& books, const Words& more) {
    books.write("cuslice.toml", "fraction = 0.5\n");
    Words settings{"CUSLICE_HEADROOM=16MiB"};
    for (std::string setting : situation.settings) {
        if (const auto at = setting.find("FOLDER"); at != setting.npos)
            setting.replace(at, 6, books.path());
        settings.push_back(setting);
    }
    settings.insert(settings.end(), more.begin(), more.end());
    Words words{"/usr/bin/timeout", "-s", "KILL", "20"};
    const bool launched = !situation.launch.empty();
    words.insert(words.end(), situation.launch.begin(), situation.launch.end());
    for (const std::string& word : Guest::route("linked"))
        words.push_back(word);
    Guest guest(words, launched ? raw(kGpu, books.path(), settings) : sliced(kGpu, books.path(), settings));
    Course course;
    const int pid = number_in(guest.ask("pid"), 0);
    for (const std::string& step : situation.steps) {
        const std::string answer = guest.ask(step);
        course.codes.push_back(number_in(answer, -1));
        course.said.push_back(guest.complaints());
        for (const std::string& line : split_lines(read_text(books.path() + "/log")))
            course.said.back().push_back(line);
        course.gone = course.gone || answer == "(gone)";
    }
    course.peak = books_of(books.path(), pid).peak;
    course.exit_code = guest.finish();
    course.err = guest.err();
    return course;
}

// True if the first step that ended otherwise has a line of its own by then.
bool is_told(const Course& course, const Course& whole) {
    const auto first = std::mismatch(course.codes.begin(), course.codes.end(), whole.codes.begin()).first;
    const auto step = static_cast<size_t>(first - course.codes.begin());
    const Words& expected = whole.said[step];
    return std::any_of(course.said[step].begin(), course.said[step].end(), [&](const std::string& line) {
        return std::find(expected.begin(), expected.end(), line) == expected.end();
    });
}

std::string joined(const std::vector<int>& codes) {
    std::string text;
    for (const int code : codes)
        text += std::to_string(code) + " ";
    return text;
}

// The launcher said why, and started nothing.
bool is_refused_start(const Course& course) {
    const bool nothing = std::count(course.codes.begin(), course.codes.end(), -1) == std::ssize(course.codes);
    return nothing && course.exit_code >= 64 && course.exit_code < 128 && !course.said.back().empty();
}

// Empty: as it is to be.
std::string fault_of(const Situation& situation, const Course& course, const Course& whole) {
    if (course.gone && is_refused_start(course))
        return "";
    if (course.gone)
        return "the program hung or died";
    if (course.exit_code != whole.exit_code)
        return "the program ended with " + std::to_string(course.exit_code);
    if (course.peak > (situation.split ? kLimit + kHalfOfContext : kLimit))
        return "held more than its limit: " + std::to_string(course.peak) + " bytes";
    if (course.codes != whole.codes && !is_told(course, whole))
        return "was refused without a word";
    return "";
}

// The calls to try, by number: the first ones of each place in the library.
std::vector<uint64_t> calls_of(const FailingCall& counted) {
    std::vector<uint64_t> numbers;
    std::map<uint64_t, int> seen;
    for (uint64_t i = 0; i < std::min(counted.calls, FailingCall::kNoted); i++)
        if (seen[counted.places[i]]++ < kOfEachPlace)
            numbers.push_back(i + 1);
    return numbers;
}

Words standing_before(const Situation& situation, const FailingPlan& plan) {
    const std::string library = situation.launch.empty() ? ":" + preload_list() : "";
    return {"LD_PRELOAD=" + kGuests + "/libguest_failing_call.so" + library, plan.variable()};
}

// Empty: as it is to be. Counts the call if it was made again, and so has failed.
std::string fault_of_call(const Situation& situation, const Course& whole, const Failing& failing, size_t* failed) {
    const Folder books;
    const FailingPlan plan = plan_of(situation, failing);
    const Course course = run_through(situation, books, standing_before(situation, plan));
    *failed += plan.call().name[0] != '\0';
    std::string fault = fault_of(situation, course, whole);
    if (fault.empty() && situation.shares && run_through(situation, books, {}).codes != whole.codes)
        fault = "the next program misses something";
    if (fault.empty())
        return "";
    char place[128];
    std::snprintf(place, sizeof place, "%s, call %llu at %#llx, and call %llu: ", plan.call().name,
                  static_cast<unsigned long long>(failing.first),
                  static_cast<unsigned long long>(plan.call().places[failing.first - 1]),
                  static_cast<unsigned long long>(failing.again));
    return place + fault + "; " + joined(course.codes) + "for " + joined(whole.codes) + "\n" + course.err + "\n";
}

// A run in which no call fails, and the calls that were counted.
struct Counted {
    explicit Counted(const Situation& situation)
        : plan(plan_of(situation, {})), whole(run_through(situation, books, standing_before(situation, plan))) {}
    uint64_t calls() const { return std::min(plan.call().calls, FailingCall::kNoted); }

    Folder books;
    FailingPlan plan;
    Course whole;
};

// How many of them failed. Other processes of the machine and the clock decide about some calls.
size_t check_all(const Situation& situation, const Course& whole, const std::vector<Failing>& all) {
    std::string faults;
    size_t failed = 0;
    for (const Failing& failing : all)
        faults += fault_of_call(situation, whole, failing, &failed);
    CHECK(faults == "");
    return failed;
}

void check_each_call(const Situation& situation) {
    if (!kSanitizer.empty())
        return skip("a sanitizer's runtime stands between the library and the C library");
    CAPTURE(situation.name);
    const Counted counted(situation);
    CAPTURE(counted.whole.err);
    std::vector<Failing> all;
    for (const uint64_t number : calls_of(counted.plan.call()))
        all.push_back({number, 0});
    CHECK(all.size() > 5);
    CHECK(check_all(situation, counted.whole, all) * 2 > all.size());
}

Failing in_order(uint64_t one, uint64_t other) { return {std::min(one, other), std::max(one, other)}; }

size_t check_pairs(const Situation& situation) {
    CAPTURE(situation.name);
    const Counted counted(situation);
    CAPTURE(counted.whole.err);
    std::mt19937_64 random(static_cast<uint64_t>(kSeed));
    std::vector<Failing> all;
    for (int i = 0; i < kPairs; i++)
        all.push_back(in_order(1 + random() % counted.calls(), 1 + random() % counted.calls()));
    return check_all(situation, counted.whole, all);
}

}  // namespace

TEST_CASE("each call into the C library fails once: a program by itself keeps its limit, and is told") {
    check_each_call(GENERATE(from_range(std::begin(kAlone), std::end(kAlone))));
}

TEST_CASE("each call into the C library fails once: a program on a split keeps its limit, and is told") {
    check_each_call(GENERATE(from_range(std::begin(kOnSplits), std::end(kOnSplits))));
}

TEST_CASE("each call into the C library fails once: nothing of a shared limit is lost, and nobody passes it") {
    check_each_call(GENERATE(from_range(std::begin(kShared), std::end(kShared))));
}

TEST_CASE("two calls into the C library fail, far from each other: nothing is passed, lost or left unsaid") {
    if (!kSanitizer.empty())
        return skip("a sanitizer's runtime stands between the library and the C library");
    const std::span<const Situation> all[] = {kAlone, kOnSplits, kShared, kLaunched};
    size_t situations = 0, failed = 0;
    for (const std::span<const Situation> some : all)
        for (const Situation& situation : some)
            situations++, failed += check_pairs(situation);
    CHECK(failed * 2 > situations * kPairs);
}

TEST_CASE("each call into the C library fails once: the launcher starts the program in its slice, or says why not") {
    check_each_call(GENERATE(from_range(std::begin(kLaunched), std::end(kLaunched))));
}

}  // namespace cuslice::tests
