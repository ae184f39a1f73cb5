// SPDX-License-Identifier: Apache-2.0
// Ways to a ledger past its owner's programs: descriptors that are inherited, a container that has the folder
// mounted, and the room that it takes.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/statvfs.h>

#include <set>

#include "tests/allowed.h"
#include "tests/preload/town.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

const std::string kDescriptors = kGuests + "/guest_descriptors";

// KiB of the folder's file system.
uint64_t room_of(const Town& town) {
    struct statvfs room {};
    REQUIRE(::statvfs(town.ledgers.c_str(), &room) == 0);
    return (room.f_blocks - room.f_bfree) * room.f_frsize / 1024;
}

std::string name_of(const std::string& path) { return std::filesystem::path(path).filename(); }

// A lock for reading harms nobody, and neither does one of flock, which nothing here takes.
bool is_harmless(const std::string& what) { return what == "read-lock" || what == "flock" || what == "tried"; }

// As much as a shell can do to every file in the folder; it says what succeeded.
const char* const kScript =
    "cd \"$0\" || exit 1\n"
    "for one in *; do\n"
    "  (: > \"$one\") 2>&- && echo \"emptied $one\"\n"
    "  (: >> \"$one\") 2>&- && echo \"opened $one\"\n"
    "  chmod 666 \"$one\" 2>&- && echo \"chmod $one\"\n"
    "  chown 0 \"$one\" 2>&- && echo \"chown $one\"\n"
    "  mv \"$one\" \"$one.gone\" 2>&- && echo \"moved $one\"\n"
    "  rm -f \"$one\" 2>&- && echo \"removed $one\"\n"
    "done\n"
    "echo done\n";

}  // namespace

TEST_CASE("by no descriptor that a program inherits it can change, shorten or lock what others of that user's use") {
    if (!has_users())
        return;
    const std::string mode = GENERATE("here", "drop", "join", "fork", "send");
    CAPTURE(mode);
    const Town town;
    TwoProcesses job(town, kRoot);
    const auto files = town.files("");
    const auto ledgers = town.files(".ledger");
    REQUIRE(ledgers.size() == 1);
    const auto size = std::filesystem::file_size(ledgers[0]);
    const std::string number = std::to_string(kBob);
    Words service = mode == "here" ? as(kBob) : Words{};
    service.insert(service.end(), {kDescriptors, town.ledgers, mode, number});
    const Ended served = run_counted(town.launch(kRoot, {"--limit", "400MiB"}, service), town.outside());
    CAPTURE(served.out, served.err);
    REQUIRE(served.exit_code == 0);
    bool tried = false;
    for (const std::string& line : split_lines(served.out)) {
        const Words words = split_words(line);
        REQUIRE(words.size() == 2);
        tried = tried || (words[0] == "tried" && std::stoi(words[1]) > 0);
        if (is_harmless(words[0]))
            continue;
        CAPTURE(line);
        // The launcher's own, which shows that its reservation lives and nothing else; it is gone by now.
        CHECK(words[1].ends_with(".alive"));
        CHECK(std::find(files.begin(), files.end(), town.ledgers + "/" + words[1]) == files.end());
    }
    CHECK(tried);
    for (const std::string& path : files)
        CHECK(std::filesystem::exists(path));
    CHECK(std::filesystem::file_size(ledgers[0]) == size);
    CHECK(town.start(kRoot, {"--limit", "400MiB"}).out == "started\n");
    CHECK(Json::parse(town.ps(kAlice).out)["processes"].size() == 2);
    job.check();
    CHECK(job.second->finish() == 0);
    CHECK(job.first->finish() == 0);
}

TEST_CASE("the locks of a program that has given its rights up hold nobody up, as long as it lives") {
    if (!has_users())
        return;
    const Town town;
    const Ended alone = town.start(kRoot, {"--limit", "400MiB"});
    TwoProcesses job(town, kRoot);
    // Locks of an open file stay for as long as the program has that open which was locked.
    const std::string script = "\"$@\" > /dev/null; echo up; read line";
    Guest service(town.launch(kRoot, {"--limit", "400MiB"},
                              {"/bin/sh", "-c", script, "sh", "/usr/bin/env", "setpriv", "--reuid", "60002", "--regid",
                               "60002", "--clear-groups", kDescriptors, town.ledgers, "here"}),
                  town.outside());
    REQUIRE(service.ask("") == "up");
    job.check();
    CHECK(town.start(kRoot, {"--limit", "400MiB"}).naps <= 10 * alone.naps + 200);
    CHECK(town.ps(kRoot).exit_code == 0);
}

TEST_CASE("a ledger that is removed again and again takes no more room than two files do") {
    if (!has_users() || !has_own_mounts())
        return;
    const bool idle = GENERATE(false, true);
    CAPTURE(idle);
    const Town town("1xlaptop-2g", "1m");
    TwoProcesses job(town, kAlice);
    const uint64_t one = room_of(town);
    CHECK(one > 200);
    for (int i = 0; i < 30; i++) {
        CAPTURE(i);
        REQUIRE(::unlink((town.stem_of(kAlice) + ".ledger").c_str()) == 0);
        // A member that is refused looks for the ledger, and puts it back.
        for (Guest* member : {job.first.get(), job.second.get()}) {
            if (idle && member == job.second.get())
                continue;
            CHECK(member->code("alloc large " + bytes(2 * kGiB)) == kOutOfMemory);
            CHECK(member->code("alloc small " + bytes(kMiB)) == kSuccess);
            CHECK(member->code("freeall") == kSuccess);
        }
        CHECK(room_of(town) <= 2 * one);
    }
    CHECK(Json::parse(town.ps(kAlice).out)["processes"].size() == 2);
    CHECK(town.start(kAlice, {"--limit", "400MiB"}).out == "started\n");
    job.check();
}

TEST_CASE("root of a user namespace can do nothing to the files of others in the folder") {
    if (!has_users())
        return;
    const Words inside = joined(as(kBob), {"unshare", "--map-root-user", "--mount", "/bin/sh", "-c"});
    if (!can_unshare(CLONE_NEWUSER | CLONE_NEWNS, kBob))
        return;
    const Town town;
    TwoProcesses hers(town, kAlice);
    const auto bob = town.guest(kBob, {"--limit", "400MiB"});
    REQUIRE(bob->pid() > 0);
    const auto root = town.guest(kRoot, {"--limit", "400MiB"});
    REQUIRE(root->pid() > 0);
    std::set<std::string> his;
    for (const std::string& path : town.files("", kBob))
        his.insert(name_of(path));
    REQUIRE(!his.empty());
    const auto others = joined(town.files("", kAlice), town.files("", kRoot));
    const Ended done = run_counted(joined(inside, {kScript, town.ledgers}), town.outside());
    CAPTURE(done.err);
    REQUIRE(done.out.ends_with("done\n"));
    unsigned to_his = 0;
    for (const std::string& line : split_lines(done.out)) {
        const Words words = split_words(line);
        if (words.size() != 2)
            continue;
        to_his += his.count(words[1]);
        CAPTURE(line);
        CHECK(his.count(words[1]) == 1);
    }
    CHECK(to_his > 0);
    for (const std::string& path : others)
        CHECK(std::filesystem::exists(path));
    hers.check();
    CHECK(town.start(kAlice, {"--limit", "400MiB"}).out == "started\n");
}

TEST_CASE("where the machine's root in a container empties the folder, a limit that is shared is kept") {
    if (!has_users())
        return;
    const Words inside{"/usr/bin/unshare", "--pid", "--fork", "--mount-proc", "/bin/sh", "-c"};
    if (!has_pid_namespaces())
        return;
    // A program survives these; docs/boundaries.md has what it doesn't.
    const std::string script = GENERATE("rm -f \"$0\"/*", "for one in \"$0\"/*; do mv \"$one\" \"$one.gone\"; done",
                                        "rm -f \"$0\"/*.alive", "chmod 0 \"$0\"/*");
    CAPTURE(script);
    const Town town;
    TwoProcesses job(town, kAlice);
    REQUIRE(run(joined(inside, {script, town.ledgers}), plain()).exit_code == 0);
    job.check();
}

TEST_CASE("the machine's root without capabilities writes to no ledger of another user's") {
    if (!has_users())
        return;
    const Words inside{"/usr/bin/env",    "setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner,-chown",
                       "--inh-caps=-all", "/bin/sh", "-c"};
    if (run(joined(inside, {"true"}), plain()).exit_code != 0)
        return skip("setpriv can't take capabilities away here");
    const Town town;
    TwoProcesses job(town, kAlice);
    const Ended done = run_counted(joined(inside, {kScript, town.ledgers}), town.outside());
    CAPTURE(done.out, done.err);
    REQUIRE(done.out.ends_with("done\n"));
    // The folder is root's, so a removal can't be kept from it.
    for (const std::string& line : split_lines(done.out)) {
        const std::string what = split_words(line)[0];
        CHECK((what == "moved" || what == "removed" || what == "done"));
    }
    job.check();
}

}  // namespace cuslice::tests
