// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/model/puppet.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <new>
#include <thread>
#include <vector>

#include "policy/ledger/ledger.h"
#include "tests/allowed.h"
#include "tests/preload/model/hand.h"
#include "tests/preload/model/worker.h"

namespace cuslice::tests::model {
namespace {

enum class Stage : int { begins, joined, refused };

// A join makes some hundred system calls, and more in a folder that is full of names.
constexpr unsigned kCalls = 300, kMaxCalls = 5000;
// Instructions from one of them on.
constexpr unsigned kSteps = 600;

}  // namespace

struct Puppet::Shared {
    std::atomic<Stage> stage;
};

bool Puppet::possible() {
    static const bool possible = can_trace();
    return possible;
}

Puppet::Puppet(const Wish& wish, At at, uint64_t random) : wish_(wish) {
    void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw std::runtime_error("no memory");
    shared_ = new (memory) Shared{};
    pid_ = fork();
    if (pid_ < 0)
        throw std::runtime_error("no process");
    if (pid_ == 0)
        act(wish_);
    int status = 0;
    waitpid(pid_, &status, 0);
    ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
    std::mt19937_64 numbers(random);
    walk(at, numbers);
    if (ended_)
        return;
    // Delivered as soon as nobody traces it any more, before its next instruction.
    ::kill(pid_, SIGSTOP);
    ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
    stop();
}

Puppet::~Puppet() {
    if (!ended_)
        ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(shared_, sizeof(Shared));
}

bool Puppet::join_for_life(const Wish& wish, bool over_exec) {
    static ledger::Ledger ledger;
    static ledger::Membership membership;
    static ledger::Committed committed;
    ledger::LedgerError why;
    uint64_t available = 0;
    ledger::Request request;
    request.name = wish.job.c_str();
    request.limit = request.reserved = wish.bytes;
    return ledger.open(wish.folder.c_str(), wish.uuid.c_str(), wish.capacity, over_exec, &why) &&
           ledger.join(request, 0, &membership, &committed, &available, &why) == ledger::Joined::yes;
}

void Puppet::act(const Wish& wish) {
    close_inherited();
    become(wish.user);
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    shared_->stage = join_for_life(wish, false) ? Stage::joined : Stage::refused;
    for (;;)
        pause();
}

// To the next system call, or instruction. False: it has ended.
bool Puppet::advance(bool one_step) {
    int status = 0;
    const auto how = one_step ? PTRACE_SINGLESTEP : PTRACE_SYSCALL;
    if (ptrace(how, pid_, nullptr, signal_) != 0 || waitpid(pid_, &status, 0) != pid_)
        return false;
    if (!WIFSTOPPED(status))
        return false;
    const int signal = WSTOPSIG(status) & 0x7f;
    signal_ = signal == SIGTRAP ? 0 : signal;
    return true;
}

// By the files of its user's, of which there may be several names.
Puppet::Seen Puppet::look() const {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(wish_.folder, gone)) {
        unsigned user = 0;
        char uuid[64];
        const std::string name = entry.path().filename().string();
        if (!ledger::parse_ledger_name(name.c_str(), &user, uuid) || user != wish_.user || wish_.uuid != uuid)
            continue;
        const int file = open(entry.path().c_str(), O_RDONLY | ledger::kSafely);
        if (file < 0)
            continue;
        ledger::Header header{};
        ledger::Account accounts[ledger::kAccounts];
        const bool read = pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
                          pread(file, static_cast<void*>(accounts), sizeof accounts,
                                offsetof(ledger::File, accounts)) == static_cast<ssize_t>(sizeof accounts);
        close(file);
        if (!read)
            continue;
        if (header.holder && header.locker == pid_)
            return Seen::lock;
        for (const ledger::Account& account : accounts)
            if (account.state.load() == ledger::AccountState::claimed && wish_.job == account.name)
                return Seen::claim;
    }
    return Seen::nothing;
}

void Puppet::walk(At at, std::mt19937_64& random) {
    const auto wanted = static_cast<unsigned>(random() % kCalls);
    const auto steps = static_cast<unsigned>(random() % kSteps);
    const auto is_there = [&] {
        if (at == At::anywhere)
            return calls_ >= wanted;
        seen_ = look();
        return seen_ == (at == At::with_lock ? Seen::lock : Seen::claim) && (random() % 4 == 0);
    };
    while (shared_->stage.load() == Stage::begins && calls_ < kMaxCalls && !is_there()) {
        calls_++;
        if (!advance(false))
            return void(ended_ = true);
    }
    for (; steps_ < steps && shared_->stage.load() == Stage::begins; steps_++) {
        if (!advance(true))
            return void(ended_ = true);
        if (at == At::with_lock && steps_ % 16 == 0 && look() != Seen::lock)
            break;
    }
    seen_ = look();
}

void Puppet::stop() {
    if (ended_)
        return;
    if (!stopped_)
        ::kill(pid_, SIGSTOP);
    int status = 0;
    if (waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status))
        ended_ = true;
    stopped_ = !ended_;
}

void Puppet::go_on() {
    using std::chrono::steady_clock;
    if (!stopped_)
        return;
    ::kill(pid_, SIGCONT);
    stopped_ = false;
    const auto end = steady_clock::now() + std::chrono::seconds(120);
    int status = 0;
    while (shared_->stage.load() == Stage::begins) {
        if (waitpid(pid_, &status, WNOHANG) == pid_)
            return void(ended_ = true);
        if (steady_clock::now() > end)
            throw Finding("a process that was stopped in its ledger hangs");
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

std::string Puppet::describe() const {
    const Stage stage = shared_->stage.load();
    std::string text = "process " + std::to_string(pid_) + " of user " + std::to_string(wish_.user);
    if (ended_)
        return text + ", which has ended";
    text += stopped_ ? ", stopped " : ", which runs ";
    if (stage != Stage::begins)
        return text + (stage == Stage::joined ? "as a member" : "after it was refused");
    text += "after " + std::to_string(calls_) + " calls and " + std::to_string(steps_) + " instructions";
    return text + (seen_ == Seen::lock ? ", with the lock" : seen_ == Seen::claim ? ", in a claim" : "");
}

}  // namespace cuslice::tests::model
