// SPDX-License-Identifier: Apache-2.0
// Namespaces within namespaces, in orders that no runtime makes.
#include "tests/containers/tenant.h"
#include "tests/preload/device.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

// Each begins a namespace of users, in which nobody else has a number, and one of pids with a /proc that shows them.
const Words kUsersAndPids{"/usr/bin/unshare", "--user",       "--map-root-user", "--pid",
                          "--fork",           "--kill-child", "--mount-proc"};
// Pids alone: /proc is that of the namespace around it, where the process has another pid.
const Words kPids{"/usr/bin/unshare", "--pid", "--fork", "--kill-child"};
const Words kUsers{"/usr/bin/unshare", "--user", "--map-root-user"};
const Words kIpc{"/usr/bin/unshare", "--ipc", "--uts", "--cgroup", "--net", "--mount"};

bool possible(const Words& words) {
    const Outcome outcome = run(joined(words, {"/bin/true"}), plain());
    if (outcome.exit_code != 0)
        skip("such namespaces can't be made here: " + outcome.err);
    return outcome.exit_code == 0;
}

}  // namespace

TEST_CASE("a limit holds in namespaces within namespaces, with a launcher at each level") {
    const Folder books;
    const Words levels = GENERATE(joined(joined(kUsersAndPids, kUsersAndPids), kUsersAndPids), joined(kPids, kPids),
                                  joined(kUsers, kUsers), joined(kPids, kUsers), joined(kIpc, kPids));
    if (!possible(levels))
        return;
    CAPTURE(levels);
    const Words launch{kLaunch, "run", "--"}, preload{"/usr/bin/env", "LD_PRELOAD=" + preload_list()};
    const int where = GENERATE(0, 1, 2, 3);
    CAPTURE(where);
    Words words = levels;
    if (where == 0)
        words = joined(joined(words, preload), Guest::route("linked"));
    if (where == 1)
        words = joined(joined(words, launch), Guest::route("linked"));
    if (where == 2)
        words = joined(joined(launch, words), Guest::route("linked"));
    // A job within a job, in a container.
    if (where == 3)
        words = joined(joined(joined(launch, words), launch), Guest::route("linked"));
    Guest guest(words, settings(books));
    use_device(guest);
    const uint64_t free = guest.number("info");
    CHECK(free + 16 * kMiB + held_by_all(books.path()) == kGiB);
    CHECK(guest.complaints().empty());
    CHECK(guest.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(peak_of_all(books.path()) <= kGiB);
    CHECK(peak_of_all(books.path()) > kGiB - 128 * kMiB);
    CHECK(guest.code("freeall") == kSuccess);
    CHECK(guest.number("info") == free);
    CHECK(guest.finish() == 0);
}

TEST_CASE("levels of namespaces share one limit") {
    const Folder books;
    const Words levels = GENERATE(joined(kUsersAndPids, kUsersAndPids), joined(kPids, kPids), joined(kUsers, kUsers));
    if (!possible(levels))
        return;
    CAPTURE(levels);
    const Words more{"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1GiB"},
        preload{"/usr/bin/env", "LD_PRELOAD=" + preload_list()};
    Guest outer(joined(preload, Guest::route("linked")), settings(books, more));
    Guest inner(joined(joined(levels, preload), Guest::route("linked")), settings(books, more));
    for (Guest* guest : {&outer, &inner})
        use_device(*guest);
    CHECK(outer.number("info") == inner.number("info"));
    CHECK(inner.code("fill " + bytes(kMiB)) == kOutOfMemory);
    CHECK(outer.code("alloc x " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(held_by_all(books.path()) <= kGiB);
    CHECK(held_by_all(books.path()) > kGiB - 64 * kMiB);
    CHECK(inner.code("freeall") == kSuccess);
    CHECK(outer.code("alloc x " + bytes(300 * kMiB)) == kSuccess);
}

}  // namespace cuslice::tests
