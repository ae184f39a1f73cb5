// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/model/hand.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <vector>

namespace cuslice::tests::model {

void become(unsigned user) {
    if (setgroups(0, nullptr) != 0 || setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0)
        _exit(3);
    prctl(PR_SET_DUMPABLE, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void close_inherited() {
    std::vector<int> open;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        open.push_back(std::stoi(entry.path().filename()));
    for (const int file : open)
        if (file > 2)
            close(file);
}

Hand::Hand(unsigned user, const std::function<void(const Say&)>& work) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error("no pipe");
    pid_ = fork();
    if (pid_ < 0)
        throw std::runtime_error("no process");
    if (pid_ == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close_inherited();
        if (user)
            become(user);
        work([](const std::string& text) {
            const std::string line = text + "\n";
            (void)!write(STDOUT_FILENO, line.data(), line.size());
        });
        for (;;)
            pause();
    }
    close(ends[1]);
    char letter = 0;
    while (read(ends[0], &letter, 1) == 1 && letter != '\n')
        said_ += letter;
    close(ends[0]);
}

Hand::~Hand() {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
}

}  // namespace cuslice::tests::model
