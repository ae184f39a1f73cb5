// SPDX-License-Identifier: Apache-2.0
// Facts about processes, read from /proc, whatever the processes call themselves.
#include "policy/ledger/process_identity.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/allowed.h"
#include "tests/catch.h"

using namespace cuslice::ledger;

namespace {

// Field 22, where the command's name has neither blanks nor brackets in it.
uint64_t start_in_proc(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string word;
    for (int field = 1; field < 22; field++)
        stat >> word;
    uint64_t start = 0;
    stat >> start;
    return start;
}

// This process under another name, which is its first thread's.
struct Named {
    explicit Named(const char* name) {
        prctl(PR_GET_NAME, before);
        prctl(PR_SET_NAME, name);
    }
    ~Named() { prctl(PR_SET_NAME, before); }
    char before[16] = {};
};

// A child that does nothing until it is killed.
pid_t idle_child() {
    int ready[2];
    if (pipe(ready) != 0)
        std::abort();
    const pid_t child = fork();
    if (child == 0) {
        if (write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char letter = 0;
    if (read(ready[0], &letter, 1) != 1)
        std::abort();
    close(ready[0]);
    close(ready[1]);
    return child;
}

void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

std::string command(size_t size = 48) {
    std::string name(size, '?');
    command_of_this_process(name.data(), size);
    return name.c_str();
}

}  // namespace

namespace {

constexpr int kNewTime = 0x80;  // CLONE_NEWTIME, which older headers don't know

// Reads a process's start in a time namespace with this offset: as /proc shows it there, and corrected. False if there
// can be no such namespace.
bool ask_in_time_namespace(const char* offset, pid_t about, uint64_t (&answers)[2]) {
    int ends[2];
    if (pipe(ends) != 0)
        std::abort();
    const pid_t child = fork();
    if (child == 0) {
        if (unshare(kNewTime) != 0)
            _exit(1);
        std::ofstream offsets("/proc/self/timens_offsets");
        offsets << "boottime " << offset << std::flush;
        if (!offsets)
            _exit(1);
        const pid_t inside = fork();  // the namespace is the children's
        if (inside == 0) {
            const uint64_t said[2] = {start_in_proc(about), start_time_of(about)};
            _exit(write(ends[1], said, sizeof said) == sizeof said ? 0 : 1);
        }
        int status = 1;
        waitpid(inside, &status, 0);
        _exit(status == 0 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    const bool done = status == 0 && read(ends[0], answers, sizeof answers) == sizeof answers;
    close(ends[0]);
    close(ends[1]);
    return done;
}

}  // namespace

TEST_CASE("a process's start is the same for readers in all time namespaces") {
    if (!cuslice::tests::can_unshare(kNewTime))
        return;
    const std::string offset =
        GENERATE("0 0", "1000 0", "86400 0", "-5 0", "7 500000000", "1000 123456789", "-3 999999999");
    CAPTURE(offset);
    const pid_t child = idle_child();
    const uint64_t here = start_time_of(child);
    CHECK(here == start_in_proc(child));
    uint64_t there[2] = {};
    const bool asked = ask_in_time_namespace(offset.c_str(), child, there);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    REQUIRE(asked);
    CHECK((there[0] == here) == (offset == "0 0"));
    CHECK(is_same_start(there[1], here));
    const bool whole_ticks = offset.find("456789") == std::string::npos && offset.find("999999") == std::string::npos;
    if (whole_ticks)
        CHECK(there[1] == here);
}

TEST_CASE("start times are of one process if they differ by a tick at most, and are known") {
    STATIC_REQUIRE(is_same_start(5, 5));
    STATIC_REQUIRE(is_same_start(5, 6));
    STATIC_REQUIRE(is_same_start(6, 5));
    STATIC_REQUIRE_FALSE(is_same_start(5, 7));
    STATIC_REQUIRE_FALSE(is_same_start(7, 5));
    STATIC_REQUIRE_FALSE(is_same_start(0, 0));
    STATIC_REQUIRE_FALSE(is_same_start(0, 1));
    STATIC_REQUIRE_FALSE(is_same_start(~0ull, 0));
}

TEST_CASE("a process is known by its pid, its namespace and when it began") {
    const ProcessIdentity self = this_process();
    CHECK(self.pid == getpid());
    CHECK(self.start_time == start_in_proc(getpid()));
    CHECK(self.start_time != 0);
    struct stat space {};
    REQUIRE(stat("/proc/self/ns/pid", &space) == 0);
    CHECK(self.pid_namespace == space.st_ino);
    CHECK(read_pid_namespace() == space.st_ino);
    CHECK(own_pid_namespace() == space.st_ino);
    forget_pid_namespace();
    CHECK(own_pid_namespace() == space.st_ino);
}

TEST_CASE("when a process began is told whatever it calls itself, and not of one that has ended") {
    const pid_t child = idle_child();
    const uint64_t start = start_in_proc(child);
    CHECK(start >= this_process().start_time);
    CHECK(start_time_of(child) == start);
    const uint64_t own = start_in_proc(getpid());
    for (const char* name : {") Z (1 2) X", "a ( b", ") ) )"}) {
        const Named named(name);
        CHECK(start_time_of(getpid()) == own);
    }
    // As a zombie it holds nothing any more.
    kill(child, SIGKILL);
    siginfo_t info{};
    REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
    REQUIRE(start_in_proc(child) == start);
    CHECK(start_time_of(child) == 0);
    end(child);
    CHECK(start_time_of(child) == 0);
}

TEST_CASE("a process that a signal or a debugger has stopped is told from one that only sleeps") {
    const pid_t child = idle_child();
    CHECK_FALSE(is_stopped(child));
    kill(child, SIGSTOP);
    int status = 0;
    REQUIRE(waitpid(child, &status, WUNTRACED) == child);
    CHECK(is_stopped(child));
    kill(child, SIGCONT);
    REQUIRE(waitpid(child, &status, WCONTINUED) == child);
    CHECK_FALSE(is_stopped(child));
    end(child);
    CHECK_FALSE(is_stopped(child));

    if (!cuslice::tests::can_trace())
        return;
    const pid_t traced = fork();
    if (traced == 0) {
        ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        raise(SIGUSR1);
        _exit(0);
    }
    REQUIRE(waitpid(traced, &status, 0) == traced);
    REQUIRE(WIFSTOPPED(status));
    CHECK(is_stopped(traced));
    end(traced);
    const Named named("a) T b");
    CHECK_FALSE(is_stopped(getpid()));
}

TEST_CASE("a process's command is its first thread's name, whichever thread asks, as far as there is room") {
    const std::string own = command();
    char name[16] = {};
    REQUIRE(pthread_getname_np(pthread_self(), name, sizeof name) == 0);
    CHECK(own == name);
    CHECK(command(4) == own.substr(0, 3));
    std::string of_other, cut;
    std::thread([&] {
        pthread_setname_np(pthread_self(), "other");
        of_other = command();
        cut = command(4);
    }).join();
    CHECK(of_other == own);
    CHECK(cut.size() <= 3);
    CHECK(own.starts_with(cut));
}

TEST_CASE("a child is the same program as its parent, and has a number that is none of nobody's") {
    const uint64_t own = image_number();
    CHECK(own != 0);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        const uint64_t number = image_number();
        _exit(write(ends[1], &number, sizeof number) < 0);
    }
    uint64_t number = 0;
    REQUIRE(read(ends[0], &number, sizeof number) == sizeof number);
    CHECK(number == own);
    waitpid(child, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
}
