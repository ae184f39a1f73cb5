// SPDX-License-Identifier: Apache-2.0
// `admission = "first-context"`: a program that no launcher has started has its limit for itself from its first context
// on a GPU, or is refused there.
#include <signal.h>

#include <future>
#include <memory>

#include "tests/catch.h"
#include "tests/json.h"
#include "tests/preload/device.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

constexpr int kRefused = 75;
const std::string kLaunch = CUSLICE_TEST_LAUNCH, kGpu = "1xlaptop-2g", kMost = "CUSLICE_LIMIT=1200MiB",
                  kFirst = "CUSLICE_ADMISSION=first-context";

std::unique_ptr<Guest> program(const Folder& books, const Words& more) {
    Words settings{"CUSLICE_HEADROOM=16MiB"};
    settings.insert(settings.end(), more.begin(), more.end());
    return std::make_unique<Guest>(Guest::route("linked"), sliced(kGpu, books.path(), settings));
}

std::unique_ptr<Guest> started(const Folder& books, const Words& more) {
    auto guest = program(books, more);
    REQUIRE(guest->code("init") == kSuccess);
    return guest;
}

Words launch(const Words& options, const Words& program) {
    Words words{kLaunch, "run", "--fake", kGpu};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("--");
    words.insert(words.end(), program.begin(), program.end());
    return words;
}

Words outside(const Folder& books) { return plain({"CUSLICE_FAKE_DIR=" + books.path()}); }

Outcome launched(const Folder& books, const Words& options) { return run(launch(options, {"true"}), outside(books)); }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

bool says(Guest& guest, const std::string& part) {
    for (const std::string& line : guest.complaints())
        if (contains(line, part))
            return true;
    return false;
}

}  // namespace

TEST_CASE("a program without a launcher is refused its first context where others have its limit, if so set") {
    const std::string when = GENERATE("launch", "first-context");
    CAPTURE(when);
    const Folder books;
    auto first = started(books, {kMost, "CUSLICE_ADMISSION=" + when});
    auto second = started(books, {kMost, "CUSLICE_ADMISSION=" + when});
    REQUIRE(first->code("retain 0") == kSuccess);
    CHECK(second->code("retain 0") == (when == "first-context" ? kOutOfMemory : kSuccess));
    CHECK(says(*second, "1200.0 MiB requested, ") == (when == "first-context"));
    if (when == "launch")
        return;
    CHECK(says(*second, "Held: pid " + std::to_string(first->pid()) + " ("));
    CHECK(says(*second, ". Try CUSLICE_WAIT=yes or CUSLICE_LIMIT="));
    CHECK(books_of(books.path(), second->pid()).used == 0);
    // It has nothing by halves, and may ask again.
    CHECK(second->code("retain 0") == kOutOfMemory);
    if (GENERATE(true, false)) {
        first->kill(SIGKILL);
    } else {
        CHECK(first->finish() == 0);
    }
    CHECK(soon([&] { return second->code("retain 0") == kSuccess; }));
    CHECK(second->code("current 0") == kSuccess);
    CHECK(second->code("fill " + std::to_string(16 * kMiB)) == kOutOfMemory);
    CHECK(books_of(books.path(), second->pid()).used <= 1200 * kMiB);
    CHECK(books_of(books.path(), second->pid()).used + (16 + 16) * kMiB > 1200 * kMiB);
}

TEST_CASE("a launcher is refused what a program without one has reserved, and the other way round") {
    const Folder books;
    auto first = started(books, {kMost, kFirst});
    REQUIRE(first->code("retain 0") == kSuccess);
    const Outcome refused = launched(books, {"--limit", "1GiB"});
    CHECK(refused.exit_code == kRefused);
    CHECK(contains(refused.err, "Held: pid " + std::to_string(first->pid()) + " ("));
    CHECK(contains(refused.err, " 1200.0 MiB for "));
    CHECK(launched(books, {"--limit", "200MiB"}).exit_code == 0);
    CHECK(first->finish() == 0);
    CHECK(launched(books, {"--limit", "1GiB"}).exit_code == 0);

    Guest job(launch({"--limit", "1200MiB"}, Guest::route("linked")), outside(books));
    REQUIRE(job.code("init") == kSuccess);
    auto second = started(books, {kMost, kFirst});
    CHECK(second->code("retain 0") == kOutOfMemory);
}

TEST_CASE("a program that may wait is granted what another one has reserved, as soon as that has ended") {
    const Folder books;
    auto first = started(books, {kMost, kFirst});
    REQUIRE(first->code("retain 0") == kSuccess);
    auto second = started(books, {kMost, kFirst, "CUSLICE_WAIT=yes"});
    auto granted = std::async(std::launch::async, [&] { return second->code("retain 0"); });
    const auto waits = [&] {
        const Outcome outcome = run({kLaunch, "ps", "--json", "--fake", kGpu}, outside(books));
        return Json::parse(outcome.out).list("waiting").size() == 1;
    };
    REQUIRE(soon(waits));
    first->kill(SIGKILL);
    CHECK(granted.get() == 0);
}

TEST_CASE("each of a program's children reserves for itself") {
    const Folder books;
    const Words half{"CUSLICE_LIMIT=800MiB", kFirst};
    auto first = program(books, half), second = program(books, half);
    for (Guest* guest : {first.get(), second.get()}) {
        // A call that has the settings read, and then another process.
        guest->ask("count");
        REQUIRE(guest->code("fork") == kSuccess);
        retain_device(*guest);
    }
    CHECK(started(books, half)->code("retain 0") == kOutOfMemory);
}

TEST_CASE("a part of a GPU is reserved as it is used") {
    const Folder books;
    const Words split{"CUSLICE_SPLIT=0=1200MiB+512MiB", kFirst};
    auto first = started(books, split), second = started(books, split);
    REQUIRE(first->code("retain 0") == kSuccess);
    CHECK(second->code("retain 0") == kOutOfMemory);
    CHECK(first->finish() == 0);
    CHECK(second->code("retain 0") == kSuccess);
}

TEST_CASE("a program within a job has the job's reservation") {
    const Folder books;
    const Words job{kMost, kFirst, "CUSLICE_JOB=shared"};
    auto first = started(books, job), second = started(books, job);
    CHECK(first->code("retain 0") == kSuccess);
    CHECK(second->code("retain 0") == kSuccess);
    // As a scheduler begins one: what it can change are variables.
    auto other = started(books, {kMost, "CUSLICE_JOB=another"});
    CHECK(other->code("retain 0") == kOutOfMemory);
    CHECK(says(*other, ". Try CUSLICE_WAIT=yes or CUSLICE_LIMIT="));
}

TEST_CASE("a container's processes have one reservation together, which another container doesn't have") {
    const Folder books;
    const Words container{"CUSLICE_GROUP=@container", kMost, kFirst};
    auto first = started(books, container), second = started(books, container);
    CHECK(first->code("retain 0") == kSuccess);
    CHECK(second->code("retain 0") == kSuccess);
    auto other = started(books, {kMost, kFirst});
    CHECK(other->code("retain 0") == kOutOfMemory);
    CHECK(launched(books, {"--limit", "1GiB"}).exit_code == kRefused);
    // Its last process takes the reservation with it.
    CHECK(first->finish() == 0);
    CHECK(other->code("retain 0") == kOutOfMemory);
    second->kill(SIGKILL);
    CHECK(soon([&] { return other->code("retain 0") == kSuccess; }));
}

TEST_CASE("a launcher that admits at the first context reserves nothing before, and a job has one reservation") {
    const Folder books;
    auto held = started(books, {kMost, kFirst});
    REQUIRE(held->code("retain 0") == kSuccess);
    const Words late{"--limit", "1200MiB", "--admission", "first-context"};
    CHECK(launched(books, late).exit_code == 0);
    Guest job(launch(late, Guest::route("linked")), outside(books));
    REQUIRE(job.code("init") == kSuccess);
    CHECK(job.code("retain 0") == kOutOfMemory);
    CHECK(says(job, ". Try --wait or --limit "));
    held->kill(SIGKILL);
    CHECK(soon([&] { return job.code("retain 0") == kSuccess; }));
    CHECK(launched(books, {"--limit", "1GiB"}).exit_code == kRefused);
}

TEST_CASE("without a limit of its own nothing is reserved, and a line says so once") {
    const Folder books;
    auto first = started(books, {"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1200MiB", kFirst});
    CHECK(first->code("retain 0") == kSuccess);
    CHECK(says(*first, "admission: this program has no limit of its own here, so nothing is reserved"));
    CHECK(launched(books, {"--limit", "1GiB"}).exit_code == 0);
}

TEST_CASE("where no ledger can be had nothing is granted, and the line says what to change") {
    const Folder books;
    auto first = started(books, {kMost, kFirst, "CUSLICE_DIR=/proc/nowhere"});
    CHECK(first->code("retain 0") == kOutOfMemory);
    CHECK(says(*first, "the limit can't be reserved, so every allocation fails: "));
    CHECK(books_of(books.path(), first->pid()).used == 0);
}

}  // namespace cuslice::tests
