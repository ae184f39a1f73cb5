// SPDX-License-Identifier: Apache-2.0
// A ledger's folder of a test's own, and processes that have places in it.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "policy/ledger/ledger.h"
#include "tests/policy/ledger/steps.h"

namespace cuslice::tests {

constexpr uint64_t kGiB = 1ull << 30;
constexpr uint64_t kCapacity = 16 * kGiB;
constexpr const char* kUuid = "GPU-00000000-1111-2222-3333-444444444444";

struct LedgerFolder {
    LedgerFolder() {
        char name[] = "/dev/shm/cuslice-test-XXXXXX";
        path = mkdtemp(name);
    }
    ~LedgerFolder() { std::filesystem::remove_all(path); }
    /// The name of a user's file, which has the version in it since there were two.
    std::string file_of(unsigned user, unsigned number = 0) const {
        char name[ledger::kPathBytes];
        return ledger::ledger_path(path.c_str(), user, kUuid, name, number) ? name : "";
    }
    std::string file() const { return file_of(geteuid()); }
    /// Ledgers that are in it, and what is left of one in the making.
    unsigned count() const {
        unsigned count = 0;
        for (const auto& entry : std::filesystem::directory_iterator(path))
            count += entry.path().extension() != ".alive";
        return count;
    }
    std::string path;
};

// A process of this user's as others see it: it lives as long as this object, or the process that made it.
struct Living {
    explicit Living(const LedgerFolder& folder, ledger::Presence::Lasts lasts = ledger::Presence::Lasts::until_exec) {
        if (!handle.open(folder.path.c_str()))
            std::abort();
        where = {handle.descriptor(), geteuid(), geteuid(), folder.path.c_str()};
        if (!presence.keep(where, kUuid, lasts, nullptr))
            std::abort();
    }
    ~Living() { end(); }
    void end() { presence.give_up(where, false); }
    ledger::Locker locker() const { return {where, presence.id(), presence.kind(), presence.process()}; }
    ledger::FolderHandle handle;
    ledger::UserFolder where;
    ledger::Presence presence;
};

// One process's use of a ledger: the opened file, its membership, and the answers to its last calls.
struct Place {
    ledger::Ledger ledger;
    ledger::Membership membership;
    ledger::Committed committed;
    uint64_t available = 0;
    ledger::LedgerError failure;

    bool open(const LedgerFolder& folder) {
        return ledger.open(folder.path.c_str(), kUuid, kCapacity, false, &failure);
    }
    ledger::Joined join(const char* name, uint64_t limit, uint64_t reserved = 0,
                        ledger::AccountKind kind = ledger::AccountKind::group, uint64_t in_use = 0) {
        ledger::Request request;
        request.kind = kind;
        request.name = name;
        request.limit = limit;
        request.reserved = reserved;
        return ledger.join(request, in_use, &membership, &committed, &available, &failure);
    }
};

// The file that is there now, for what only the inside shows, and for what nobody would write who keeps to the rules.
struct Mapped {
    explicit Mapped(const LedgerFolder& folder) {
        const int descriptor = open(folder.file().c_str(), O_RDWR | O_CLOEXEC);
        void* const memory = mmap(nullptr, sizeof(ledger::File), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (memory == MAP_FAILED)
            std::abort();
        close(descriptor);
        file = static_cast<ledger::File*>(memory);
    }
    ~Mapped() { munmap(file, sizeof(ledger::File)); }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;
    ledger::File* file;
};

// A process that answers each step (steps.h), one letter, with another letter, until its input ends or it is killed.
class Child {
  public:
    explicit Child(const std::function<char(char)>& answer) {
        int in[2], out[2];
        if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
            std::abort();
        if (lives_[0] < 0) {
            if (pipe2(lives_, O_CLOEXEC) != 0)
                std::abort();
            parents_.push_back(lives_[1]);
        }
        pid_ = fork();
        if (pid_ == 0) {
            close(in[1]), close(out[0]);
            for (const int file : parents_)
                close(file);  // or an older child would never see its input end
            for (char letter; read(in[0], &letter, 1) == 1;) {
                letter = answer(letter);
                if (write(out[1], &letter, 1) != 1)
                    break;
            }
            _exit(0);
        }
        close(in[0]), close(out[1]);
        in_ = in[1], out_ = out[0];
        parents_.insert(parents_.end(), {in_, out_});
    }
    ~Child() {
        end();
        close(out_);
        std::erase(parents_, out_);
    }
    char ask(char step) { return tell(step) ? hear() : Answer::none; }
    bool tell(char step) { return write(in_, &step, 1) == 1; }
    char hear() {
        char answer = Answer::unknown;
        return read(out_, &answer, 1) == 1 ? answer : Answer::none;
    }
    void kill() {
        ::kill(pid_, SIGKILL);
        end();
    }
    void end() {
        if (pid_ <= 0)
            return;
        close(in_);
        std::erase(parents_, in_);
        waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
    pid_t pid() const { return pid_; }
    /// In a child: one of its own that does nothing until the test has ended, and has its mappings and descriptors.
    static void leave_one_behind() {
        if (fork() != 0)
            return;
        char none = 0;
        _exit(read(lives_[0], &none, 1) < 0);
    }

  private:
    static inline std::vector<int> parents_;
    static inline int lives_[2] = {-1, -1};  // whose other end the test alone has
    pid_t pid_ = 0;
    int in_ = -1, out_ = -1;
};

// Has the lock of the ledger's header in a process of its own, which may be stopped.
struct Keeper {
    explicit Keeper(const LedgerFolder& folder, bool stopped = false)
        : child([&folder](char) {
              static Living self(folder);
              return ledger::lock_header_until(Mapped(folder).file->header, self.locker(), ledger::Deadline(500))
                         ? Answer::locked
                         : Answer::not_locked;
          }) {
        if (child.ask(Step::keep_locked) != Answer::locked)
            std::abort();
        if (!stopped)
            return;
        ::kill(child.pid(), SIGSTOP);
        int status = 0;
        if (waitpid(child.pid(), &status, WUNTRACED) != child.pid() || !WIFSTOPPED(status))
            std::abort();
    }
    ~Keeper() { child.kill(); }
    Child child;
};

/// The answer to Step::join where it matters why a process could not join.
inline char answer_of(ledger::Joined joined) {
    if (joined == ledger::Joined::yes)
        return Answer::joined;
    return joined == ledger::Joined::refused ? Answer::refused : Answer::unavailable;
}

// A member of the group "lab", of 8 GiB, which does the steps of steps.h.
inline std::function<char(char)> member(const LedgerFolder& folder, uint64_t limit = 8 * kGiB, uint64_t reserved = 0) {
    return [&folder, limit, reserved, place = std::make_shared<Place>()](char step) {
        switch (step) {
            case Step::join:
                if (!place->open(folder))
                    return Answer::not_opened;
                return place->join("lab", limit, reserved) == ledger::Joined::yes ? Answer::joined : Answer::refused;
            case Step::reserve_5_gib:
                return place->membership.reserve(5 * kGiB, 0, nullptr) ? Answer::reserved : Answer::refused;
            case Step::reserve_1_gib:
                return place->membership.reserve(kGiB, 0, nullptr) ? Answer::reserved : Answer::refused;
            case Step::give_back_5_gib:
                place->membership.change(-static_cast<int64_t>(5 * kGiB));
                return Answer::given_back;
            case Step::take_back_dead:
                return place->ledger.take_back_dead() ? Answer::taken_back : Answer::nothing_to_take_back;
            case Step::read_total:
                return gib(place->membership.used() / kGiB);
            case Step::read_peak:
                return gib(place->membership.peak() / kGiB);
            case Step::close_descriptors:  // a program that closes every descriptor it finds
                for (int file = 3; file < 256; file++)
                    if (char path[64], target[512]; snprintf(path, sizeof path, "/proc/self/fd/%d", file) > 0) {
                        const ssize_t length = readlink(path, target, sizeof target - 1);
                        if (length > 0 &&
                            std::string(target, static_cast<size_t>(length)).find("/cuslice") != std::string::npos)
                            close(file);
                    }
                return Answer::closed;
            case Step::leave_child_behind:
                Child::leave_one_behind();
                return Answer::done;
            default:
                return Answer::unknown;
        }
    };
}

}  // namespace cuslice::tests
