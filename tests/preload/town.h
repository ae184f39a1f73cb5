// SPDX-License-Identifier: Apache-2.0
// Several users of one machine: a fake GPU, the folder in which they all have their ledgers, and processes of one that
// do something to the files of another. Only root can make one.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/json.h"
#include "tests/preload/machine.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"
#include "tests/soon.h"

namespace cuslice::tests {

/// Bob is the neighbour: what he may do to the others is what these tests are about.
constexpr unsigned kRoot = 0, kAlice = 60001, kBob = 60002, kCarol = 60003;

/// The words that make a program another user's.
inline Words as(unsigned user) {
    if (user == kRoot)
        return {"/usr/bin/env"};
    const std::string number = std::to_string(user);
    return {"/usr/bin/env", "setpriv", "--reuid", number, "--regid", number, "--clear-groups"};
}

/// The words that put a program into a pid namespace of its own, which ends with the first of the words.
inline Words in_own_pids() {
    return {"/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c",
            "\"$@\"; exit $?",  "sh"};
}

/// False, and the case is skipped: not here.
inline bool has_users() { return can_be_other_users() && can_let_others_in(); }

inline bool has_pid_namespaces() { return can_unshare(CLONE_NEWPID | CLONE_NEWNS); }

/// A mount namespace of this process's own, once; false if there can be none.
inline bool has_own_mounts() {
    if (!can_unshare(CLONE_NEWNS))
        return false;
    static const bool own =
        ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
    return own;
}

/// A program that has ended, and how often it went to sleep: each pause of a wait is one voluntary switch, so what
/// waits is told from what doesn't without a clock.
struct Ended {
    int exit_code = 0;
    std::string out, err;
    long naps = 0;
};

inline std::string read_to_end(int descriptor) {
    std::string text;
    char buffer[4096];
    ::fcntl(descriptor, F_SETFL, 0);
    for (ssize_t count; (count = ::read(descriptor, buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<size_t>(count));
    ::close(descriptor);
    return text;
}

/// It is ended if it hangs, for far longer than anything here is waited for.
inline Ended run_counted(Words words, const Words& environment) {
    words.insert(words.begin(), {"/usr/bin/env", "timeout", "120"});
    const Piped child = spawn_on_pipes(words, environment);
    ::close(child.in);
    Ended ended;
    ended.out = read_to_end(child.out);
    ended.err = read_to_end(child.error);
    int status = 0;
    struct rusage used {};
    ::wait4(child.pid, &status, 0, &used);
    ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ended.naps = used.ru_nvcsw;
    return ended;
}

/// A process of a user's that does something, says how much of it could be done, and stands still from then on.
class Neighbour {
  public:
    using Act = std::function<long()>;
    /// `later` is done after it has answered, before it stands still.
    explicit Neighbour(unsigned user, const Act& act, const std::function<void()>& later = {}) {
        int out[2];
        REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            // Nothing that a guest waits to see closed stays open here.
            for (int file = 3; file < 1024; file++)
                if (file != out[1])
                    ::close(file);
            const bool other = user == kRoot || (::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 &&
                                                 ::setresuid(user, user, user) == 0);
            const long done = other ? act() : -1;
            if (::write(out[1], &done, sizeof done) != sizeof done)
                ::_exit(1);
            if (later)
                later();
            for (;;)
                ::raise(SIGSTOP);
        }
        ::close(out[1]);
        REQUIRE(::read(out[0], &done_, sizeof done_) == sizeof done_);
        ::close(out[0]);
        if (!later)
            stands_still();
    }
    ~Neighbour() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Neighbour(const Neighbour&) = delete;
    Neighbour& operator=(const Neighbour&) = delete;

    long done() const { return done_; }
    void stands_still() const { ::waitpid(pid_, nullptr, WUNTRACED); }

  private:
    pid_t pid_ = -1;
    long done_ = -1;
};

struct Town {
    /// `room`: the ledgers' folder is a file system of its own, of that size.
    explicit Town(const std::string& gpus = "1xlaptop-2g", const std::string& room = "")
        : fake(gpus), books(folder.path() + "/books"), ledgers(folder.path() + "/ledgers"), mounted_(!room.empty()) {
        namespace fs = std::filesystem;
        fs::permissions(folder.path(), fs::perms(0755));
        for (const std::string& made : {books, ledgers})
            fs::create_directory(made);
        fs::permissions(books, fs::perms(0777));
        fs::permissions(ledgers, fs::perms(01777));
        if (mounted_)
            REQUIRE(::mount("town", ledgers.c_str(), "tmpfs", 0, ("mode=1777,size=" + room).c_str()) == 0);
        // The driver's accounting is everybody's.
        Guest first(Guest::route("linked"), raw(fake, books));
        retain_device(first);
        REQUIRE(first.finish() == 0);
        for (const auto& entry : fs::directory_iterator(books))
            fs::permissions(entry.path(), fs::perms(0666));
    }
    ~Town() {
        if (mounted_)
            ::umount2(ledgers.c_str(), MNT_DETACH);
    }
    Town(const Town&) = delete;
    Town& operator=(const Town&) = delete;

    Words outside(const Words& more = {}) const {
        return plain(joined({"CUSLICE_FAKE_DIR=" + books, "CUSLICE_DIR=" + ledgers}, more));
    }
    Words launch(unsigned user, const Words& options, const Words& program) const {
        const Words launcher{kLaunch, "run", "--fake", fake, "--headroom", "16MiB"};
        return joined(joined(joined(as(user), joined(launcher, options)), {"--"}), program);
    }
    /// A launcher whose program says that it was started.
    Ended start(unsigned user, const Words& options) const {
        return run_counted(launch(user, options, {"/bin/echo", "started"}), outside());
    }
    std::unique_ptr<Guest> guest(unsigned user, const Words& options, Words before = {}) const {
        return std::make_unique<Guest>(joined(std::move(before), launch(user, options, Guest::route("linked"))),
                                       outside());
    }
    /// A guest without a launcher, under LD_PRELOAD alone.
    std::unique_ptr<Guest> preloaded(unsigned user, const Words& settings) const {
        return std::make_unique<Guest>(
            joined(as(user), Guest::route("linked")),
            sliced(fake, books, joined({"CUSLICE_DIR=" + ledgers, "CUSLICE_HEADROOM=16MiB"}, settings)));
    }
    Ended ps(unsigned user) const {
        return run_counted(joined(as(user), {kLaunch, "ps", "--json", "--fake", fake}), outside());
    }
    uint64_t used(Guest& one) const { return books_of(books, one.pid()).used; }

    /// Files in the ledgers' folder that end so, of this user if `user` is one.
    std::vector<std::string> files(const std::string& ending, long user = -1) const {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(ledgers)) {
            struct stat info {};
            const std::string path = entry.path().string();
            if (!path.ends_with(ending) || ::lstat(path.c_str(), &info) != 0)
                continue;
            if (user < 0 || info.st_uid == static_cast<uid_t>(user))
                found.push_back(path);
        }
        return found;
    }
    /// A ledger's path without ".ledger", by which it was or will be made; the user has had one.
    std::string stem_of(unsigned user) const {
        const auto made = files(".ledger", user);
        REQUIRE(made.size() == 1);
        return made[0].substr(0, made[0].size() - std::string(".ledger").size());
    }

    Folder folder;
    std::string fake, books, ledgers;

  private:
    bool mounted_;
};

/// A job of two processes that share a limit of 1 GiB: the launcher's program, and one that only knows the job's name.
class TwoProcesses {
  public:
    TwoProcesses(const Town& town, unsigned user, const Words& before = {}) : town_(town) {
        first = town.guest(user, {"--limit", "1GiB"}, before);
        const std::string job = first->ask("getenv CUSLICE_JOB");
        REQUIRE(job.starts_with("="));
        second = town.preloaded(user, {"CUSLICE_LIMIT=1GiB", "CUSLICE_JOB=" + job.substr(1)});
        for (Guest* one : {first.get(), second.get()}) {
            one->let_change("free", "the other process takes and gives back");
            use_device(*one);
        }
    }
    /// Together they have what the limit allows and no more, and nobody says anything but what was refused.
    void check() {
        CHECK(first->code("alloc shared " + bytes(300 * kMiB)) == kSuccess);
        CHECK(second->code("fill " + bytes(kMiB)) == kOutOfMemory);
        CHECK(first->code("alloc more " + bytes(32 * kMiB)) == kOutOfMemory);
        const uint64_t together = town_.used(*first) + town_.used(*second);
        CHECK(together <= kGiB);
        CHECK(together > kGiB - 64 * kMiB);
        CHECK(second->code("freeall") == kSuccess);
        CHECK(first->code("free shared") == kSuccess);
        for (Guest* one : {first.get(), second.get()})
            for (const std::string& line : one->complaints()) {
                CAPTURE(line);
                CHECK(line.find("out of memory") != line.npos);
            }
    }

    std::unique_ptr<Guest> first, second;

  private:
    const Town& town_;
};

}  // namespace cuslice::tests
