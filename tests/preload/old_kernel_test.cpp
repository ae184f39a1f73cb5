// SPDX-License-Identifier: Apache-2.0
// A kernel of Linux 3.10, the oldest that a C library 2.17 was sold with: calls and commands that came later are not
// there. What a program gets, and what others see of it, is the same.
#include <fcntl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/json.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"
#include "tests/refused_calls.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

const std::string kLaunch = CUSLICE_TEST_LAUNCH;

// Where headers don't know them.
constexpr unsigned kWipeOnFork = 18, kPopulateWrite = 23;

/// Calls that came with 3.11 and later and that we make, or that a C library may make in our place.
constexpr unsigned kLater[] = {
    SYS_renameat2,   SYS_memfd_create, SYS_getrandom, SYS_membarrier,
#ifdef SYS_statx
    SYS_statx,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_clone3
    SYS_clone3,
#endif
#ifdef SYS_close_range
    SYS_close_range,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_pidfd_open
    SYS_pidfd_open,
#endif
};

/// A C library doesn't do without the others where they are refused, and not missing.
bool is_ours(unsigned call) {
    return call == SYS_renameat2 || call == SYS_memfd_create || call == SYS_getrandom || call == SYS_membarrier ||
           call == SYS_pwritev2;
}

/// This thread, and all that it starts. `error`: a sandbox that doesn't know a call may say EPERM.
bool become_old(unsigned error) {
    bool old = true;
    for (const unsigned call : kLater)
        if (error == ENOSYS || is_ours(call))
            old = old && refuse_call(call, error);
    return old && refuse_commands(SYS_fcntl, 1, F_OFD_GETLK, F_OFD_SETLKW, EINVAL) &&
           refuse_commands(SYS_fcntl, 1, F_ADD_SEALS, F_GET_SEALS, EINVAL) &&
           refuse_commands(SYS_madvise, 2, kWipeOnFork, kWipeOnFork, EINVAL) &&
           refuse_commands(SYS_madvise, 2, kPopulateWrite, kPopulateWrite, EINVAL);
}

/// Amounts of each process, by `cuslice ps --json`; no pids, times or drawn names.
std::string amounts(const std::string& listed) {
    const Json processes = Json::parse(listed)["processes"];
    std::string text;
    for (size_t i = 0; i < processes.size(); i++) {
        text += processes[i]["gpu"].text();
        for (const char* key : {"used", "together", "peak", "reserved", "limit"}) {
            const Json amount = processes[i][key];
            text += std::string(" ") + key + " " + (amount.is_null() ? "-" : std::to_string(amount.get<uint64_t>()));
        }
        text += "\n";
    }
    return text;
}

/// All that programs are told, and others about them.
std::string told() {
    const Folder books;
    const std::string recording = books.path() + "/recording.csv";
    const Words environment =
        plain({"CUSLICE_FAKE=2xt4", "CUSLICE_FAKE_DIR=" + books.path(), "CUSLICE_DIR=" + books.path() + "/ledgers"});
    const auto job = [&](const Words& options) {
        Words words{kLaunch, "run"};
        words.insert(words.end(), options.begin(), options.end());
        words.insert(words.end(), {"--", kGuests + "/guest_linked", "linked"});
        return words;
    };
    std::string text;
    const auto ask = [&](Guest& guest, const Words& lines) {
        for (const std::string& line : lines)
            text += line + ": " + std::to_string(guest.code(line)) + "\n";
        text += "free: " + std::to_string(guest.number("info")) + "\n";
    };
    const auto run_job = [&](const Words& options) {
        Words words{kLaunch, "run"};
        words.insert(words.end(), options.begin(), options.end());
        words.insert(words.end(), {"--", "/bin/true"});
        text += "run: " + std::to_string(run(words, environment).exit_code) + "\n";
    };
    const auto list = [&] {
        const Outcome listed = run({kLaunch, "ps", "--json"}, environment);
        REQUIRE(listed.exit_code == 0);
        text += amounts(listed.out);
    };

    Guest cached(job({"--gpus=0", "--limit=8GiB", "--allocator=growth", "--record=" + recording}), environment);
    ask(cached, {"init", "retain 0", "current 0", "alloc a 1048576", "alloc b 1073741824", "alloc c 8589934592",
                 "ipcget a", "free b"});
    Guest parts(job({"--gpus=1", "--split=1=4GiB+rest", "--free=deferred", "--allocator=growth"}), environment);
    ask(parts, {"init", "retain 1", "current 1", "alloc a 5368709120", "alloc b 12884901888"});
    list();
    run_job({"--gpus=0", "--limit=10GiB"});
    run_job({"--gpus=0", "--limit=10GiB", "--wait=1ms"});
    run_job({"--gpus=0", "--limit=4GiB"});
    CHECK(cached.finish() == 0);
    CHECK(parts.finish() == 0);
    run_job({"--fraction=1"});
    list();
    std::ifstream rows(recording);
    unsigned count = 0;
    for (std::string line; std::getline(rows, line);)
        count++;
    return text + "rows: " + std::to_string(count) + "\n";
}

}  // namespace

TEST_CASE("on a kernel of 3.10 a program gets what it gets on any, and others see the same of it") {
    if (!kSanitizer.empty())
        return skip("a sanitizer's runtime needs a newer kernel");
    if (!can_filter_calls())
        return;
    const unsigned error = GENERATE(ENOSYS, EPERM);
    CAPTURE(error);
    const std::string now = told();
    std::string before;
    bool old = false;
    // A filter is its thread's, and goes with it.
    std::thread([&] {
        old = become_old(error);
        before = told();
    }).join();
    CHECK(old);
    CHECK(before == now);
    // It is no list of refusals.
    for (const char* line : {"alloc b 1073741824: 0\n", "alloc c 8589934592: 2\n", "run: 75\n", "run: 0\n"})
        CHECK(now.find(line) != now.npos);
}

TEST_CASE("a kernel without files in memory is named where a block inside a cached segment can't be exported") {
    if (!kSanitizer.empty())
        return skip("a sanitizer's runtime needs a newer kernel");
    if (!can_filter_calls())
        return;
    const Folder books;
    const std::string none(128, '0');
    std::string refused;
    std::string said;
    std::thread([&] {
        become_old(ENOSYS);
        Guest guest(Guest::route("linked"),
                    sliced("1xt4", books.path(), {"CUSLICE_LIMIT=4GiB", "CUSLICE_ALLOCATOR=growth"}));
        use_device(guest);
        guest.code("alloc first 1048576");
        guest.code("alloc second 1048576");
        refused = guest.ask("ipcget second");
        guest.finish();
        said = guest.err();
    }).join();
    CHECK(refused == "304 " + none);
    CHECK(said.find("the kernel gives no file in memory (memfd_create)") != said.npos);
}

}  // namespace cuslice::tests
