// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/ask_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/launch/program_environment.h"

namespace cuslice::cli {
namespace {

// Where the child finds the pipe: the first descriptor after the standard ones.
constexpr int kAnswerDescriptor = 3;

using Clock = std::chrono::steady_clock;

// False if the other end is still open at the deadline.
bool read_to_end(int descriptor, Clock::time_point deadline, std::string& text) {
    char buffer[4096];
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        pollfd readable{descriptor, POLLIN, 0};
        const int ready = left > 0 ? ::poll(&readable, 1, static_cast<int>(left)) : 0;
        if (ready == 0)
            return false;
        const ssize_t count = ready < 0 ? -1 : ::read(descriptor, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return true;
        text.append(buffer, static_cast<size_t>(count));
    }
}

// The child's stdout goes to stderr: a driver that prints must not end up in our output.
int spawn(const std::string& executable, Environment& environment, const std::vector<std::string>& question, int answer,
          bool with_stderr, pid_t& child) {
    std::vector<std::string> words = {executable, "query", std::to_string(kAnswerDescriptor)};
    words.insert(words.end(), question.begin(), question.end());
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::vector<char*> lines = environment.pointers();

    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (with_stderr)
        ::posix_spawn_file_actions_adddup2(&actions, answer, STDERR_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, answer, kAnswerDescriptor);
    const int code = ::posix_spawn(&child, executable.c_str(), &actions, nullptr, arguments.data(), lines.data());
    ::posix_spawn_file_actions_destroy(&actions);
    return code;
}

}  // namespace

Answer ask_child(const Installation& installation, Environment environment, const std::vector<std::string>& question,
                 std::chrono::seconds patience, bool with_stderr) {
    // A caller that reads the child's stderr wants ld.so's messages too.
    if (!with_stderr)
        remove_refused_preloads(environment);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return {std::string("no pipe: ") + std::strerror(errno), {}};
    pid_t child = 0;
    const int code = spawn(installation.executable, environment, question, ends[1], with_stderr, child);
    // The parent's writing end must be closed, or the reading one would never come to an end.
    ::close(ends[1]);
    std::string text;
    const bool ended = code != 0 || read_to_end(ends[0], Clock::now() + patience, text);
    ::close(ends[0]);
    if (code != 0)
        return {installation.executable + ": " + std::strerror(code), {}};
    if (!ended) {
        ::kill(child, SIGKILL);
        return {question.front() + " gave no answer in " + std::to_string(patience.count()) + " s", {}, true};
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status))
        return {question.front() + " ended the query with signal " + std::to_string(WTERMSIG(status)), {}};
    return {{}, text};
}

}  // namespace cuslice::cli
