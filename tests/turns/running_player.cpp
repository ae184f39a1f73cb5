// SPDX-License-Identifier: Apache-2.0
#include "tests/turns/running_player.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.h"

namespace cuslice::tests {

namespace {

std::vector<char*> pointers(const Words& words) {
    std::vector<char*> all;
    for (const std::string& word : words)
        all.push_back(const_cast<char*>(word.c_str()));
    all.push_back(nullptr);
    return all;
}

}  // namespace

RunningPlayer::RunningPlayer(unsigned job, const Words& words, const Words& environment, const std::string& said)
    : job_(job) {
    int pipe[2];
    REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, pipe[0], STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, said.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int result =
        posix_spawn(&pid_, words[0].c_str(), &files, nullptr, pointers(words).data(), pointers(environment).data());
    posix_spawn_file_actions_destroy(&files);
    ::close(pipe[0]);
    in_ = pipe[1];
    REQUIRE(result == 0);
}

RunningPlayer::~RunningPlayer() {
    end();
    if (ended_)
        return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

void RunningPlayer::tell(const std::string& line) const {
    const std::string whole = line + "\n";
    CHECK(::write(in_, whole.data(), whole.size()) == static_cast<ssize_t>(whole.size()));
}

void RunningPlayer::kill() {
    killed_ = true;
    ::kill(pid_, SIGKILL);
}

void RunningPlayer::stop_or_go_on() {
    stopped_ = !stopped_;
    ::kill(pid_, stopped_ ? SIGSTOP : SIGCONT);
}

void RunningPlayer::end() {
    if (in_ >= 0)
        ::close(in_);
    in_ = -1;
    if (stopped_)
        stop_or_go_on();
}

bool RunningPlayer::has_ended() {
    int status = 0;
    if (ended_ || ::waitpid(pid_, &status, WNOHANG) != pid_)
        return ended_;
    ended_ = true;
    const bool exited = WIFEXITED(status) && WEXITSTATUS(status) == 0 && in_ < 0;
    strange_ = !exited && !killed_;
    return true;
}

}  // namespace cuslice::tests
