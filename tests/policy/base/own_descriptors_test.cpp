// SPDX-License-Identifier: Apache-2.0
#include "policy/base/own_descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tests/catch.h"

namespace cuslice {
namespace {

struct Folder {
    Folder() {
        char name[] = "/tmp/cuslice-test-XXXXXX";
        path = mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    bool empty() const { return std::filesystem::is_empty(path); }
    std::string path;
};

// In a child that may have no file of more than so many bytes: what it returns, or 128 and the signal that ended it.
template <typename Act>
int in_child(rlim_t most, Act act) {
    const pid_t child = fork();
    if (child == 0) {
        const rlimit limit{most, most};
        setrlimit(RLIMIT_FSIZE, &limit);
        _exit(act());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("a write past the largest size, or to nobody, is no signal, and one that was waiting stays") {
    const Folder folder;
    const std::string path = folder.path + "/file";
    CHECK(in_child(8, [&] {
              const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
              for (int i = 0; i < 3; i++)
                  write_at_once(file, "12345678", 8);
              int ends[2];
              if (pipe(ends) != 0)
                  return 1;
              close(ends[0]);
              write_at_once(ends[1], "x", 1);
              sigset_t pipe_signal, waiting;
              sigpending(&waiting);
              if (sigismember(&waiting, SIGPIPE) || sigismember(&waiting, SIGXFSZ))
                  return 2;
              sigemptyset(&pipe_signal);
              sigaddset(&pipe_signal, SIGPIPE);
              sigprocmask(SIG_BLOCK, &pipe_signal, nullptr);
              raise(SIGPIPE);
              write_at_once(ends[1], "x", 1);
              sigpending(&waiting);
              return sigismember(&waiting, SIGPIPE) ? 0 : 3;
          }) == 0);
    CHECK(std::filesystem::file_size(path) == 8);
}

TEST_CASE("what a socket has room for is written to it, and the rest left out") {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const std::string text = std::string(9000, 'x') + "y";
    write_at_once(ends[0], text.c_str(), text.size());
    std::string got(text.size(), '\0');
    CHECK(recv(ends[1], got.data(), got.size(), MSG_WAITALL | MSG_DONTWAIT) == static_cast<ssize_t>(text.size()));
    CHECK(got == text);
    const std::string much(16 << 20, 'x');
    alarm(60);  // ends the test, if it waits
    write_at_once(ends[0], much.c_str(), much.size());
    close(ends[1]);
    write_at_once(ends[0], "z", 1);  // nor is it a signal that nobody reads
    alarm(0);
    close(ends[0]);
}

TEST_CASE("a write that would have to wait is left out, and the pipe is as it was") {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const int flags = fcntl(ends[1], F_GETFL);
    const std::string much(1 << 20, 'x');
    alarm(60);  // ends the test, if it waits
    write_at_once(ends[1], much.c_str(), much.size());
    write_at_once(ends[1], "y", 1);
    alarm(0);
    CHECK(fcntl(ends[1], F_GETFL) == flags);
    close(ends[0]);
    close(ends[1]);
}

TEST_CASE("a descriptor that stays open is out of the program's way, and told from what takes its number") {
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int kept = keep_descriptor(file);
    CHECK(kept >= 10);
    CHECK(fcntl(kept, F_GETFD) == FD_CLOEXEC);
    CHECK(keep_descriptor(kept) == kept);
    CHECK(keep_descriptor(-1) == -1);
    const FileIdentity identity = identity_of(kept);
    CHECK(identity.mode != 0);
    CHECK(identity == identity_of(kept));
    const int other = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    dup2(other, kept);
    CHECK_FALSE(identity == identity_of(kept));
    close(kept);
    CHECK(identity_of(kept).mode == 0);
    close(other);
}

}  // namespace cuslice
