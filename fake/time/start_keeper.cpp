// SPDX-License-Identifier: Apache-2.0
#include "fake/time/start_keeper.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fake/spec/library_path.h"

namespace cuslice::fake {

std::string keeper_path() { return library_folder() + "/timekeeper"; }

void start_keeper(const std::string& folder, bool is_virtual, std::string& error) {
    const std::string path = keeper_path();
    if (access(path.c_str(), X_OK) != 0) {
        error = "can't start the fake GPU's timekeeper " + path + ": " + std::strerror(errno);
        return;
    }
    char* const arguments[] = {const_cast<char*>(path.c_str()), const_cast<char*>(folder.c_str()),
                               const_cast<char*>(is_virtual ? "virtual" : "real"), nullptr};
    // Without preloaded libraries, which are for the program.
    char* const no_environment[] = {nullptr};
    // Without a signal at its end, and not among the children that the program waits for.
    const long child = syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr);
    if (child == 0) {
        if (syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr) == 0)
            execve(path.c_str(), arguments, no_environment);
        _exit(0);
    }
    if (child < 0) {
        error = "can't start the fake GPU's timekeeper: " + std::string(std::strerror(errno));
        return;
    }
    while (waitpid(static_cast<pid_t>(child), nullptr, __WALL) < 0 && errno == EINTR) {
    }
}

}  // namespace cuslice::fake
