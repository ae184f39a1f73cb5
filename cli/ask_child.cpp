#include "cli/ask_child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "cli/fake_check.h"
#include "cli/gpu_answer.h"
#include "cli/gpu_query.h"

namespace cuslice::cli {
namespace {

// Where the child finds the pipe: the first descriptor after the standard ones.
constexpr int kAnswerDescriptor = 3;

std::string read_to_end(int descriptor) {
    std::string text;
    char buffer[4096];
    for (;;) {
        const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return text;
        text.append(buffer, static_cast<std::size_t>(count));
    }
}

bool write_all(int descriptor, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t count = ::write(descriptor, text.data() + at, text.size() - at);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        at += static_cast<std::size_t>(count);
    }
    return true;
}

// The child's stdout goes to stderr: a driver that prints must not end up in our output.
int spawn(const std::string& executable, Environment& environment, const std::vector<std::string>& question, int answer,
          pid_t& child) {
    std::vector<std::string> words = {executable, "query", std::to_string(kAnswerDescriptor)};
    words.insert(words.end(), question.begin(), question.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::vector<char*> lines = environment.pointers();

    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, answer, kAnswerDescriptor);
    const int code = ::posix_spawn(&child, executable.c_str(), &actions, nullptr, arguments.data(), lines.data());
    ::posix_spawn_file_actions_destroy(&actions);
    return code;
}

}  // namespace

Answer ask_child(const Installation& installation, Environment environment, const std::vector<std::string>& question) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {std::string("no pipe: ") + std::strerror(errno), {}};
    pid_t child = 0;
    const int code = spawn(installation.executable, environment, question, ends[1], child);
    // The parent's writing end must be closed, or the reading one would never come to an end.
    ::close(ends[1]);
    const std::string text = code == 0 ? read_to_end(ends[0]) : std::string();
    ::close(ends[0]);
    if (code != 0) return {installation.executable + ": " + std::strerror(code), {}};
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) return {"the driver ended the query with signal " + std::to_string(WTERMSIG(status)), {}};
    return {{}, text};
}

int answer_question(const std::vector<std::string>& words) {
    if (words.size() != 4) return 1;
    int descriptor = -1;
    std::from_chars(words[0].data(), words[0].data() + words[0].size(), descriptor);
    const std::string text =
        words[1] == "gpus" ? write_answer(read_gpus(words[2], words[3])) : ask_fake_driver(words[2], words[3]);
    return write_all(descriptor, text) ? 0 : 1;
}

}  // namespace cuslice::cli
