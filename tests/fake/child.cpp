// SPDX-License-Identifier: Apache-2.0
#include "tests/fake/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace fake_test {
namespace {

std::string read_all(int file) {
    std::string text;
    char part[4096];
    for (ssize_t size = 0; (size = read(file, part, sizeof part)) > 0;)
        text.append(part, static_cast<size_t>(size));
    close(file);
    return text;
}

}  // namespace

void Report::fail(const char* file, int line, const std::string& what) const {
    const std::string text = std::string(file) + ":" + std::to_string(line) + ": " + what + "\n";
    [[maybe_unused]] const ssize_t written = write(file_, text.data(), text.size());
}

std::string in_child(const Environment& environment, const Body& body, std::string* said) {
    const Folder folder;
    const std::string errors = folder.path() + "/stderr";
    int results[2];
    if (pipe2(results, O_CLOEXEC) != 0)
        return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        close(results[0]);
        for (const int fault : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTERM})
            std::signal(fault, SIG_DFL);  // Catch's
        setenv("CUSLICE_FAKE_DIR", folder.path().c_str(), 1);
        for (const char* name :
             {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUSLICE_FAKE_INJECT", "CUSLICE_FAKE_LOG"})
            unsetenv(name);
        for (const auto& [name, value] : environment) {
            value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
        }
        const int file = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(file, STDERR_FILENO);
        body(Report(results[1]));
        exit(0);  // with the driver's own end, but none of Catch's reports: those are the parent's
    }
    close(results[1]);
    std::string failed = read_all(results[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        failed += "signal " + std::to_string(WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        failed += "exit " + std::to_string(WEXITSTATUS(status));
    if (said != nullptr)
        *said += read_all(open(errors.c_str(), O_RDONLY | O_CLOEXEC));
    return failed;
}

Folder::Folder() {
    std::string form = (std::filesystem::temp_directory_path() / "cuslice-fake-XXXXXX").string();
    path_ = mkdtemp(form.data());
}

Folder::~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace fake_test
