// SPDX-License-Identifier: Apache-2.0
// Attacks of one user on the jobs of another by the folder that both have their ledgers in: locks, names, floods. The
// driver's accounting, which knows nothing of cuslice, is the reference.
#include <sys/file.h>

#include <cstring>
#include <fstream>

#include "tests/allowed.h"
#include "tests/preload/count_calls.h"
#include "tests/preload/device.h"
#include "tests/preload/town.h"

namespace cuslice::tests {
namespace {

struct Lock {
    enum Kind { of_process, of_open_file, whole_file } kind;
    long start = 0, length = 0;  // 0: to the end, wherever that is
};

std::string text_of(const Lock& lock) {
    constexpr const char* kKinds[] = {"process", "open file", "flock"};
    return std::string(kKinds[lock.kind]) + " " + std::to_string(lock.start) + "+" + std::to_string(lock.length);
}

// For reading, which is all that a neighbour can have. `waits`: until it can be had.
bool lock(int file, const Lock& lock, bool waits = false) {
    if (lock.kind == Lock::whole_file)
        return ::flock(file, LOCK_SH | (waits ? 0 : LOCK_NB)) == 0;
    struct flock bytes_of {};
    bytes_of.l_type = F_RDLCK;
    bytes_of.l_whence = SEEK_SET;
    bytes_of.l_start = lock.start;
    bytes_of.l_len = lock.length;
    const int commands[2][2] = {{F_SETLK, F_SETLKW}, {F_OFD_SETLK, F_OFD_SETLKW}};
    return ::fcntl(file, commands[lock.kind == Lock::of_open_file][waits], &bytes_of) == 0;
}

// Every file of the folder that the neighbour may read.
long lock_all(const Town& town, const Lock& how) {
    long locked = 0;
    for (const std::string& path : town.files("")) {
        const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
        locked += file >= 0 && lock(file, how);
    }
    return locked;
}

// All that has no business to succeed, on files of others. How much of it did.
long attack_names(const std::vector<std::string>& files, const std::string& own) {
    long done = 0;
    for (const std::string& path : files) {
        const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
        done += ::open(path.c_str(), O_RDWR | O_NONBLOCK) >= 0;
        done += ::open(path.c_str(), O_WRONLY | O_TRUNC | O_NONBLOCK) >= 0;
        done += ::truncate(path.c_str(), 0) == 0;
        done += ::unlink(path.c_str()) == 0;
        done += ::rename(path.c_str(), (path + ".gone").c_str()) == 0;
        done += ::rename(own.c_str(), path.c_str()) == 0;
        done += ::chmod(path.c_str(), 0) == 0;
        done += ::chown(path.c_str(), ::getuid(), ::getgid()) == 0;
        done += ::fcntl(file, F_SETLEASE, F_RDLCK) == 0;
    }
    return done;
}

int by_number(const std::string& path, const std::string& what) {
    if (what == "fifo")
        return ::mkfifo(path.c_str(), 0666);
    if (what == "folder")
        return ::mkdir(path.c_str(), 0777);
    if (what == "link")
        return ::symlink("/dev/zero", path.c_str());
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0666);
    if (file < 0 || what == "file")
        return file < 0 ? -1 : ::close(file);
    ::signal(SIGIO, SIG_IGN);  // told to give its lease up
    return ::fcntl(file, F_SETLEASE, F_WRLCK);
}

// Takes the names that a ledger can have.
long take_names(const std::string& stem, const std::string& what, unsigned count) {
    long taken = 0;
    for (unsigned i = 0; i < count; i++)
        taken += by_number(stem + (i ? "-" + std::to_string(i) : "") + ".ledger", what) == 0;
    return taken;
}

}  // namespace

TEST_CASE("no lock that a neighbour takes switches a limit off, keeps a job waiting or is spoken of") {
    if (!has_users())
        return;
    const Lock how =
        GENERATE(Lock{Lock::of_process, 0, 1}, Lock{Lock::of_process, 0, 0}, Lock{Lock::of_process, 1, 4000},
                 Lock{Lock::of_open_file, 0, 1}, Lock{Lock::of_open_file, 0, 0}, Lock{Lock::of_open_file, 1, 4000},
                 Lock{Lock::whole_file});
    const bool before = GENERATE(true, false);
    CAPTURE(text_of(how), before);
    const Town town;
    const Ended alone = town.start(kAlice, {"--limit", "400MiB"});
    REQUIRE(alone.out == "started\n");
    std::unique_ptr<Neighbour> bob;
    const auto lock_now = [&] {
        bob = std::make_unique<Neighbour>(kBob, [&] { return lock_all(town, how); });
        REQUIRE(bob->done() > 0);
    };
    if (before)
        lock_now();
    TwoProcesses job(town, kAlice);
    if (!before)
        lock_now();
    job.check();
    const Ended again = town.start(kAlice, {"--limit", "400MiB"});
    CHECK(again.out == "started\n");
    CHECK(again.err == "");
    CHECK(again.naps <= 10 * alone.naps + 200);
    for (const unsigned user : {kAlice, kCarol}) {
        const Ended listed = town.ps(user);
        CHECK(listed.exit_code == 0);
        CHECK(listed.err == "");
        CHECK(listed.naps <= 10 * alone.naps + 200);
        CHECK(Json::parse(listed.out)["processes"].size() == 2);
    }
    job.first.reset(), job.second.reset();
    CHECK(town.start(kCarol, {"--limit", "1500MiB"}).out == "started\n");
}

TEST_CASE("the job of a user that was killed is over for all, whoever has waited to lock its files") {
    if (!has_users())
        return;
    const bool elsewhere = GENERATE(false, true);
    if (elsewhere && !has_pid_namespaces())
        return;
    const Lock how = GENERATE(Lock{Lock::of_process}, Lock{Lock::of_open_file}, Lock{Lock::whole_file});
    CAPTURE(elsewhere, text_of(how));
    const Town town;
    auto alice = town.guest(kAlice, {"--limit", "1500MiB"}, elsewhere ? in_own_pids() : Words{});
    retain_device(*alice);
    // One process for each file, as each waits.
    std::vector<std::unique_ptr<Neighbour>> bobs;
    for (const std::string& path : town.files("")) {
        int file = -1;
        bobs.push_back(std::make_unique<Neighbour>(
            kBob, [&] { return (file = ::open(path.c_str(), O_RDONLY)) >= 0; }, [&] { lock(file, how, true); }));
        CHECK(bobs.back()->done() == 1);
    }
    REQUIRE(!bobs.empty());
    const Ended refused = town.start(kCarol, {"--limit", "1500MiB"});
    CHECK(refused.exit_code == 75);
    CHECK(refused.err.find("user 60001") != std::string::npos);
    alice->kill(SIGKILL);
    alice->finish();
    for (const auto& bob : bobs)
        bob->stands_still();
    CHECK(town.start(kCarol, {"--limit", "1500MiB"}).out == "started\n");
    CHECK(Json::parse(town.ps(kCarol).out)["processes"].size() == 0);
    CHECK(town.start(kAlice, {"--limit", "1500MiB"}).out == "started\n");
}

TEST_CASE("by no file of his a neighbour makes a job that has ended look alive") {
    if (!has_users())
        return;
    const bool elsewhere = GENERATE(false, true);
    if (elsewhere && !has_pid_namespaces())
        return;
    const std::string what = GENERATE("locked", "closed", "fifo", "folder", "link", "lease");
    CAPTURE(elsewhere, what);
    const Town town;
    auto alice = town.guest(kAlice, {"--limit", "1500MiB"}, elsewhere ? in_own_pids() : Words{});
    retain_device(*alice);
    const auto presences = town.files(".alive", kAlice);
    alice->kill(SIGKILL);
    alice->finish();
    // A cleaner of the machine's removes them before anybody has looked, and he is quicker than she.
    for (const std::string& path : presences)
        std::filesystem::remove(path);
    const Neighbour bob(kBob, [&] {
        long made = 0;
        for (const std::string& path : presences) {
            if (by_number(path, what == "locked" || what == "closed" ? "file" : what) != 0)
                continue;
            made++;
            if (what == "closed" && ::chmod(path.c_str(), 0) != 0)
                made--;
            struct flock all {};
            all.l_type = F_WRLCK;
            const int file = what == "locked" ? ::open(path.c_str(), O_RDWR) : -1;
            if (file >= 0 && ::fcntl(file, F_OFD_SETLK, &all) != 0)
                made--;
        }
        return made;
    });
    REQUIRE(bob.done() == static_cast<long>(presences.size()));
    CHECK(town.start(kCarol, {"--limit", "1500MiB"}).out == "started\n");
    if (!elsewhere)
        CHECK(town.start(kAlice, {"--limit", "1500MiB"}).out == "started\n");
}

TEST_CASE("by nothing that he may do to its files a neighbour makes a job that lives look dead") {
    if (!has_users())
        return;
    const bool elsewhere = GENERATE(false, true);
    if (elsewhere && !has_pid_namespaces())
        return;
    CAPTURE(elsewhere);
    const Town town;
    TwoProcesses job(town, kAlice, elsewhere ? in_own_pids() : Words{});
    const auto files = town.files("", kAlice);
    REQUIRE(!files.empty());
    const std::string own = town.ledgers + "/own";
    const Neighbour bob(kBob, [&] {
        ::close(::open(own.c_str(), O_WRONLY | O_CREAT, 0666));
        const long done = attack_names(files, own);
        lock_all(town, Lock{Lock::of_process});
        return done;
    });
    CHECK(bob.done() == 0);
    CHECK(town.files("", kAlice) == files);
    CHECK(town.start(kCarol, {"--limit", "1500MiB"}).exit_code == 75);
    CHECK(Json::parse(town.ps(kCarol).out)["processes"].size() == 2);
    if (!elsewhere)
        job.check();
}

TEST_CASE("where a cleaner has removed a living job's presence, what a neighbour puts there changes nothing") {
    if (!has_users())
        return;
    const std::string what = GENERATE("file", "fifo", "folder", "link");
    CAPTURE(what);
    const Town town;
    TwoProcesses job(town, kAlice);
    const auto presences = town.files(".alive", kAlice);
    REQUIRE(!presences.empty());
    for (const std::string& path : presences)
        std::filesystem::remove(path);
    const Neighbour bob(kBob, [&] {
        long made = 0;
        for (const std::string& path : presences)
            made += by_number(path, what) == 0;
        return made;
    });
    REQUIRE(bob.done() == static_cast<long>(presences.size()));
    CHECK(town.start(kCarol, {"--limit", "1500MiB"}).exit_code == 75);
    job.check();
    CHECK(town.start(kCarol, {"--limit", "1500MiB"}).exit_code == 75);
}

TEST_CASE("what a neighbour puts under the name of another user's ledger is passed by") {
    if (!has_users())
        return;
    const std::string what = GENERATE("file", "fifo", "folder", "link", "lease");
    const unsigned count = GENERATE(1u, 3u);
    CAPTURE(what, count);
    const Town town;
    const Ended alone = town.start(kAlice, {"--limit", "400MiB"});
    REQUIRE(alone.out == "started\n");
    const std::string stem = town.stem_of(kAlice);
    std::filesystem::remove(stem + ".ledger");
    const Neighbour bob(kBob, [&] { return take_names(stem, what, count); });
    REQUIRE(bob.done() == count);
    const Ended again = town.start(kAlice, {"--limit", "400MiB"});
    CHECK(again.out == "started\n");
    CHECK(again.err == "");
    CHECK(again.naps <= 10 * alone.naps + 200);
    TwoProcesses(town, kAlice).check();
    CHECK(town.start(kCarol, {"--limit", "1500MiB"}).out == "started\n");
}

TEST_CASE("where a neighbour has every name nothing is granted alone, and it is said by whom") {
    if (!has_users())
        return;
    const std::string what = GENERATE("file", "fifo", "folder", "link", "lease");
    CAPTURE(what);
    const Town town;
    const Ended alone = town.start(kAlice, {"--limit", "400MiB"});
    REQUIRE(alone.out == "started\n");
    const std::string stem = town.stem_of(kAlice);
    std::filesystem::remove(stem + ".ledger");
    const Neighbour bob(kBob, [&] { return take_names(stem, what, 256); });
    REQUIRE(bob.done() == 256);
    const Ended refused = town.start(kAlice, {"--limit", "400MiB"});
    CHECK(refused.exit_code == 75);
    CHECK(refused.out.empty());
    CHECK(refused.err.find("user 60002") != std::string::npos);
    CHECK(refused.naps <= 10 * alone.naps + 200);
    // Without a launcher: whoever shares a limit is refused its context.
    const Words settings = GENERATE(Words{"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1GiB"},
                                    Words{"CUSLICE_JOB=shared", "CUSLICE_LIMIT=1GiB"},
                                    Words{"CUSLICE_JOB=shared", "CUSLICE_LIMIT=1GiB", "CUSLICE_GROUP=lab"});
    auto guest = town.preloaded(kAlice, settings);
    REQUIRE(guest->code("init") == kSuccess);
    CHECK(guest->code("retain 0") == kOutOfMemory);
    CHECK(town.used(*guest) == 0);
    const Words said = guest->complaints();
    REQUIRE(!said.empty());
    CHECK(said[0].find("user 60002") != std::string::npos);
    // Others are as ever.
    CHECK(town.start(kCarol, {"--limit", "1GiB"}).out == "started\n");
}

TEST_CASE("a flood of names keeps no job from its limit, and a start is let in or refused with the flooder's name",
          "[slow]") {
    if (!has_users() || !has_own_mounts())
        return;
    if (!can_trace())
        return;
    const std::string what = GENERATE("others", "hers", "his", "presences", "many");
    CAPTURE(what);
    const Town town("1xlaptop-2g", "64m");
    const Ended alone = town.start(kAlice, {"--limit", "400MiB"});
    REQUIRE(alone.out == "started\n");
    const Words launcher = town.launch(kAlice, {"--limit", "400MiB"}, {"/bin/true"});
    const Traced calm = count_calls(launcher, town.outside());
    REQUIRE(calm.exit_code == 0);
    const std::string stem = town.stem_of(kAlice), behind = stem.substr(stem.rfind('/') + 6);  // "60001"
    REQUIRE(behind.starts_with("-GPU-"));
    // The end of the number says which GPU a process's presence is for.
    const auto known = town.files(".alive");
    std::string mark = "0000";
    if (!known.empty())
        mark = known[0].substr(known[0].size() - 10, 4);
    const long count = what == "many" ? 150'000 : 20'000;
    const auto name_of = [&](long i) -> std::string {
        char id[17];
        const std::string number = std::to_string(i);
        snprintf(id, sizeof id, "%012lx", static_cast<unsigned long>(i));
        if (what == "presences")
            return "60001-" + (id + mark) + ".alive";
        if (what == "hers")
            return "60001" + behind + (i < 255 ? "-" + std::to_string(i + 1) : number) + ".ledger";
        if (what == "his")
            return "60002" + behind + (i < 255 ? "-" + std::to_string(i + 1) : number) + ".ledger";
        return std::to_string(100'000 + i) + behind + ".ledger";
    };
    const Neighbour bob(kBob, [&] {
        long made = 0;
        for (long i = 0; i < count; i++) {
            const int file = ::open((town.ledgers + "/" + name_of(i)).c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
            made += file >= 0 && ::close(file) == 0;
        }
        return made;
    });
    REQUIRE(bob.done() == count);
    const auto let_in_or_named = [&](int exit_code, const std::string& err) {
        CHECK((exit_code == 0 || exit_code == 75));
        if (exit_code == 75)
            CHECK(err.find("user 60002") != std::string::npos);
        if (exit_code == 0)
            CHECK(err.empty());
    };
    const Traced flooded = count_calls(launcher, town.outside());
    let_in_or_named(flooded.exit_code, flooded.err);
    CAPTURE(calm.calls, flooded.calls);
    CHECK(flooded.calls <= calm.calls + 4 * count + 4000);
    const Ended started = town.start(kAlice, {"--limit", "400MiB"});
    let_in_or_named(started.exit_code, started.err);
    // A job without a launcher reserves its limit, too.
    auto claims = town.preloaded(kAlice, {"CUSLICE_JOB=shared", "CUSLICE_LIMIT=1GiB"});
    REQUIRE(claims->code("init") == kSuccess);
    const int claimed = claims->code("retain 0");
    CHECK((claimed == kSuccess || claimed == kOutOfMemory));
    const Words said = claims->complaints();
    REQUIRE(said.empty() == (claimed == kSuccess));
    if (claimed == kOutOfMemory)
        CHECK(said[0].find("user 60002") != std::string::npos);
    claims.reset();
    // A group reserves nothing, so it looks at nobody's names.
    const Words group{"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=1GiB"};
    auto first = town.preloaded(kAlice, group), second = town.preloaded(kAlice, group);
    for (Guest* one : {first.get(), second.get()}) {
        one->let_change("free", "the other process takes and gives back");
        retain_device(*one);
    }
    CHECK(first->code("fill " + bytes(16 * kMiB)) == kOutOfMemory);
    CHECK(second->code("alloc x " + bytes(32 * kMiB)) == kOutOfMemory);
    const uint64_t together = town.used(*first) + town.used(*second);
    CHECK(together <= kGiB);
    CHECK(together > kGiB - 64 * kMiB);
}

}  // namespace cuslice::tests
