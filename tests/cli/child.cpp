// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace cuslice::tests {
namespace {

std::vector<char*> pointers_of(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts)
        pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

// Both at once: a child that fills one pipe while the other is read would wait for ever.
void read_both(int out, int err, Outcome& outcome) {
    pollfd ends[] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
    std::string* texts[] = {&outcome.out, &outcome.err};
    for (int open = 2; open > 0;) {
        if (::poll(ends, 2, -1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; ++i) {
            if (ends[i].fd < 0 || ends[i].revents == 0)
                continue;
            char buffer[4096];
            const ssize_t count = ::read(ends[i].fd, buffer, sizeof buffer);
            if (count > 0)
                texts[i]->append(buffer, static_cast<size_t>(count));
            if (count > 0 || (count < 0 && errno == EINTR))
                continue;
            ends[i].fd = -1;
            --open;
        }
    }
}

}  // namespace

Outcome run(const std::vector<std::string>& words, const std::vector<std::string>& environment,
            const std::string& folder) {
    int out[2];
    int err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
        throw std::runtime_error("no pipe");
    const std::vector<char*> arguments = pointers_of(words);
    const std::vector<char*> lines = pointers_of(environment);
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(out[1], STDOUT_FILENO);
        ::dup2(err[1], STDERR_FILENO);
        if (!folder.empty() && ::chdir(folder.c_str()) != 0)
            ::_exit(125);
        ::execve(words[0].c_str(), arguments.data(), lines.data());
        ::_exit(125);
    }
    ::close(out[1]);
    ::close(err[1]);
    Outcome outcome;
    outcome.pid = child;
    read_both(out[0], err[0], outcome);
    ::close(out[0]);
    ::close(err[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

Folder::Folder() {
    std::string name = std::filesystem::temp_directory_path().string() + "/cuslice-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr)
        throw std::runtime_error("no folder " + name);
    path_ = std::filesystem::canonical(name).string();
}

Folder::~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& text, unsigned mode) const {
    const std::filesystem::path path = path_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    if (::chmod(path.c_str(), mode) != 0)
        throw std::runtime_error("no mode for " + path.string());
    return path.string();
}

std::string read_text(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

}  // namespace cuslice::tests
