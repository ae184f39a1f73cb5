// SPDX-License-Identifier: Apache-2.0
// How a process shows that it lives: by a file that others can ask about, and can neither hold for it nor keep from it.
#include "policy/ledger/presence.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <atomic>
#include <fstream>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"
#include "tests/refused_calls.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr unsigned kStranger = 60002;

std::string path_of(const LedgerFolder& folder, uint64_t id) {
    char name[64];
    snprintf(name, sizeof name, "/%u-%016llx.alive", geteuid(), static_cast<unsigned long long>(id));
    return folder.path + name;
}

// Kinds of locks for which a neighbour tries.
struct LockBy {
    static constexpr char process = 'f';
    static constexpr char open_file = 'o';
    static constexpr char flock = 'b';  // of the whole file
};

// Step of a child that looks at another process's presence, and its answers.
constexpr char kLook = 'l';
constexpr char kLives = 'y';
constexpr char kEnded = 'n';

// A neighbour, who locks a file as far as its rights go.
std::function<char(char)> neighbour(const std::string& path) {
    constexpr char kMayWrite = 'w';
    return [path](char kind) {
        if (geteuid() == 0 && (setgid(kStranger) != 0 || setuid(kStranger) != 0))
            return Answer::none;
        static int file = -1;
        if (file < 0)
            file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (open(path.c_str(), O_RDWR | O_CLOEXEC) >= 0)
            return kMayWrite;
        if (kind == LockBy::flock)
            return flock(file, LOCK_EX | LOCK_NB) == 0 ? Answer::locked : Answer::not_locked;
        struct flock lock {};
        lock.l_type = F_RDLCK;
        lock.l_whence = SEEK_SET;
        return fcntl(file, kind == LockBy::open_file ? F_OFD_SETLK : F_SETLK, &lock) == 0 ? Answer::locked
                                                                                          : Answer::not_locked;
    };
}

}  // namespace

TEST_CASE("a presence lives as long as its process, and its file goes with what names it") {
    const LedgerFolder folder;
    Living watcher(folder), other(folder);
    const uint64_t id = other.presence.id();
    CHECK(life_of(watcher.where, id) == Life::lives);
    CHECK_FALSE(remove_ended(watcher.where, id));
    struct stat info {};
    REQUIRE(stat(path_of(folder, id).c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0644);
    CHECK(info.st_size == 0);
    other.end();
    CHECK(life_of(watcher.where, id) == Life::ended);
    CHECK(remove_ended(watcher.where, id));
    CHECK(life_of(watcher.where, id) == Life::missing);
    CHECK(life_of(watcher.where, 0) == Life::missing);
    CHECK(life_of({-1, watcher.where.user, watcher.where.owner, ""}, id) == Life::unknown);
}

TEST_CASE("a neighbour can neither take the lock of one who lives nor have it for one who doesn't") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    REQUIRE(chmod(folder.path.c_str(), 01777) == 0);
    const char how = GENERATE(LockBy::process, LockBy::open_file, LockBy::flock);
    CAPTURE(how);
    Living watcher(folder), other(folder);
    const uint64_t id = other.presence.id();
    Child living(neighbour(path_of(folder, id)));
    const char had = living.ask(how);
    CHECK(had == (how == LockBy::flock
                      ? Answer::locked
                      : Answer::not_locked));  // a lock of the whole file is another one, which nobody asks about
    CHECK(life_of(watcher.where, id) == Life::lives);
    // Nor does it keep the process from having its lock again.
    CHECK(other.presence.keep(other.where, kUuid, Presence::Lasts::until_exec, nullptr));
    CHECK(other.presence.id() == id);
    other.end();
    Child dead(neighbour(path_of(folder, id)));
    CHECK(dead.ask(how) == (how == LockBy::flock ? Answer::not_locked : Answer::locked));
    CHECK(life_of(watcher.where, id) == Life::ended);
    CHECK(remove_ended(watcher.where, id));
}

TEST_CASE("a file of another user's is nobody's presence") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    const Living watcher(folder);
    constexpr uint64_t kId = 0x1234;
    const std::string what = GENERATE("file", "fifo", "folder", "link");
    const std::string path = path_of(folder, kId);
    CAPTURE(what);
    if (what == "file")
        std::ofstream(path) << "x";
    if (what == "fifo")
        REQUIRE(mkfifo(path.c_str(), 0666) == 0);
    if (what == "folder")
        REQUIRE(mkdir(path.c_str(), 0777) == 0);
    if (what == "link")
        REQUIRE(symlink("/dev/zero", path.c_str()) == 0);
    REQUIRE(lchown(path.c_str(), kStranger, kStranger) == 0);
    CHECK(life_of(watcher.where, kId) == Life::missing);
    CHECK_FALSE(remove_ended(watcher.where, kId));
}

TEST_CASE("of a presence that can't be opened it is unknown whether its process lives") {
    const LedgerFolder folder;
    const Living watcher(folder);
    constexpr uint64_t kId = 0x1234;
    const std::string path = path_of(folder, kId);
    std::ofstream(path) << "x";
    constexpr char kLease = 'l';
    Child leases([&path](char) {
        signal(SIGIO, SIG_IGN);  // told to give up its lease
        const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
        return fcntl(file, F_SETLEASE, F_WRLCK) == 0 ? Answer::locked : Answer::not_locked;
    });
    REQUIRE(leases.ask(kLease) == Answer::locked);
    CHECK(life_of(watcher.where, kId) == Life::unknown);
    CHECK_FALSE(remove_ended(watcher.where, kId));
    leases.kill();
    CHECK(std::filesystem::exists(path));
}

TEST_CASE("a presence that others may not read is none, and it is said why") {
    if (!can_filter_calls())
        return;
    const LedgerFolder folder;
    const auto lasts = GENERATE(Presence::Lasts::until_exec, Presence::Lasts::over_exec);
    const pid_t child = fork();
    if (child == 0) {
        if (!refuse_call(SYS_fchmod, EPERM))
            _exit(2);
        FolderHandle handle;
        if (!handle.open(folder.path.c_str()))
            _exit(3);
        Presence presence;
        LedgerError why;
        const UserFolder where{handle.descriptor(), geteuid(), geteuid(), folder.path.c_str()};
        const bool kept = presence.keep(where, kUuid, lasts, &why);
        const std::string said = "can't let others read a file in " + folder.path + ": Operation not permitted";
        _exit(kept || presence.id() != 0 || why.text != said);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a presence that somebody removes is made anew, under another number") {
    const LedgerFolder folder;
    const auto lasts = GENERATE(Presence::Lasts::until_exec, Presence::Lasts::over_exec);
    Living watcher(folder), other(folder, lasts);
    const uint64_t id = other.presence.id();
    CHECK(other.presence.keep(other.where, kUuid, lasts, nullptr));
    CHECK(other.presence.id() == id);
    std::filesystem::remove(path_of(folder, id));
    CHECK(other.presence.keep(other.where, kUuid, lasts, nullptr));
    CHECK(other.presence.id() != id);
    CHECK(is_of_gpu(other.presence.id(), kUuid));
    Child looks([&](char) { return life_of(watcher.where, other.presence.id()) == Life::lives ? kLives : kEnded; });
    CHECK(looks.ask(kLook) == kLives);
}

TEST_CASE("a launcher's presence is the program's after an exec, and no child's") {
    const LedgerFolder folder;
    Living watcher(folder);
    int pipes[2], words[2];
    REQUIRE(pipe(pipes) == 0);
    REQUIRE(pipe(words) == 0);
    const pid_t process = fork();
    if (process == 0) {
        dup2(words[1], STDOUT_FILENO);
        const Living* const launcher = new Living(folder, Presence::Lasts::over_exec);
        const uint64_t id = launcher->presence.id();
        if (write(pipes[1], &id, sizeof id) != sizeof id)
            _exit(1);
        close(pipes[1]);
        execl("/bin/sh", "sh", "-c", "sleep 100 & echo $!; exec sleep 100", static_cast<char*>(nullptr));
        _exit(1);
    }
    uint64_t id = 0;
    REQUIRE(read(pipes[0], &id, sizeof id) == sizeof id);
    char child[16] = "";
    REQUIRE(read(words[0], child, sizeof child - 1) > 0);  // it is another program by now
    CHECK(life_of(watcher.where, id) == Life::lives);
    kill(process, SIGKILL);
    REQUIRE(waitpid(process, nullptr, 0) == process);
    CHECK(life_of(watcher.where, id) == Life::ended);
    kill(atoi(child), SIGKILL);
    for (const int file : {pipes[0], pipes[1], words[0], words[1]})
        close(file);
}

TEST_CASE("a program that closes the launcher's descriptor has its lock again at the next look") {
    const LedgerFolder folder;
    Living watcher(folder), launcher(folder, Presence::Lasts::over_exec);
    const uint64_t id = launcher.presence.id();
    const auto seen = [&] {  // by another process: this one would lose its lock by asking
        Child other([&](char) { return life_of(watcher.where, id) == Life::lives ? kLives : kEnded; });
        return other.ask(kLook) == kLives;
    };
    Presence program;
    REQUIRE(program.adopt(watcher.where, id, launcher.presence.descriptor()));
    CHECK(program.descriptor() == launcher.presence.descriptor());
    CHECK(seen());
    for (int i = 0; i < 2; i++) {
        close(program.descriptor());
        CHECK_FALSE(seen());
        REQUIRE(program.adopt(watcher.where, id, program.descriptor()));
        CHECK(seen());
    }
    program.give_up(watcher.where, false);
}

TEST_CASE("numbers of presences come back from their names") {
    unsigned user = 0;
    uint64_t id = 0;
    CHECK(parse_presence_name("1000-0123456789abcdef.alive", &user, &id));
    CHECK(user == 1000);
    CHECK(id == 0x0123456789abcdef);
    for (const char* wrong : {"", "1000", "1000-", "1000-123.alive", "01000-0123456789abcdef.alive",
                              "1000-0123456789ABCDEF.alive", "1000-0123456789abcdef.alive2", "-0123456789abcdef.alive"})
        CHECK_FALSE(parse_presence_name(wrong, &user, &id));
}

TEST_CASE("the header's lock is taken over from one who has ended, and from nobody else") {
    const LedgerFolder folder;
    {
        Place maker;
        REQUIRE(maker.open(folder));
    }
    const Living self(folder);
    const Mapped mapped(folder);
    Header& header = mapped.file->header;
    auto keeper = std::make_unique<Keeper>(folder, GENERATE(false, true));
    CHECK_FALSE(lock_header_until(header, self.locker(), Deadline(20)));
    CHECK(errno == EAGAIN);
    CHECK(locker_of(header) == keeper->child.pid());
    keeper.reset();
    CHECK(lock_header_until(header, self.locker(), Deadline(0)));
    CHECK(locker_of(header) == getpid());
    unlock_header(header, self.locker());
    CHECK(header.holder == 0);
    CHECK(locker_of(header) == 0);
    // Nobody has this number, as where a file was written over.
    header.holder = 0x1234;
    CHECK(lock_header_until(header, self.locker(), Deadline(20)));
    unlock_header(header, self.locker());
}

TEST_CASE("the header's lock is held by one thread of one process at a time, whoever is killed") {
    constexpr int kProcesses = 6, kKills = 30;
    const LedgerFolder folder;
    {
        Place maker;
        REQUIRE(maker.open(folder));
    }
    const Mapped mapped(folder);
    Header& header = mapped.file->header;
    // Counted under the lock, by a load and a store: a second holder would be seen by a lost count.
    uint64_t& count = mapped.file->header.last_order;
    std::atomic_ref<uint64_t> inside(mapped.file->header.granted[0]);
    count = 0;
    std::vector<pid_t> processes;
    const auto start = [&] {
        const pid_t process = fork();
        if (process != 0)
            return processes.push_back(process);
        const Living self(folder);
        for (;;) {
            if (!lock_header_until(header, self.locker(), Deadline(5000)))
                _exit(1);
            const uint64_t before = count;
            inside.store(self.presence.id());
            sched_yield();
            if (inside.load() != self.presence.id() || count != before)
                _exit(2);
            count = before + 1;
            unlock_header(header, self.locker());
        }
    };
    for (int i = 0; i < kProcesses; i++)
        start();
    for (int i = 0; i < kKills; i++) {
        usleep(3000);
        const pid_t victim = processes.front();
        processes.erase(processes.begin());
        kill(victim, SIGKILL);
        int status = 0;
        REQUIRE(waitpid(victim, &status, 0) == victim);
        REQUIRE(WIFSIGNALED(status));
        start();
    }
    for (const pid_t process : processes) {
        kill(process, SIGKILL);
        int status = 0;
        REQUIRE(waitpid(process, &status, 0) == process);
        CHECK(WIFSIGNALED(status));
    }
    CHECK(count > 0);
}
