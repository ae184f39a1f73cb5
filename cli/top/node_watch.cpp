// SPDX-License-Identifier: Apache-2.0
#include "cli/top/node_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/text/exit_codes.h"
#include "policy/base/kernel_clock.h"

namespace cuslice::cli::top {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;  // nanoseconds
// A ledger has 2048 members, and a machine 16 GPUs.
constexpr size_t kMaxAnswer = 16 << 20;
constexpr size_t kMaxErrors = 4096, kMaxReason = 200;
// From one attempt to the next, in milliseconds.
constexpr uint64_t kFirstPause = 5'000, kLastPause = 300'000;
// How long a command may take to end that has closed its output.
constexpr uint64_t kEnding = 2'000;
// Bytes that a shell may print before the launcher is started.
constexpr size_t kMaxGreeting = 64 << 10;
constexpr const char* kNotRead = "its answer is not one that this cuslice reads; another version may be there";

uint64_t now() { return kernel_clock(CLOCK_MONOTONIC) / kMillisecond; }

// Doesn't return.
void become(const std::vector<std::string>& words, int output, int errors, pid_t parent) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent)
        ::_exit(1);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    const std::string why = words[0] + " can't be started here: " + std::strerror(errno);
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, why.data(), why.size());
    ::_exit(1);
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r\n";
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

// The last line, but for what srun says behind every failure.
std::string_view last_line(std::string_view text) {
    std::string_view last;
    while (!(text = trimmed(text)).empty()) {
        const size_t begin = text.find_last_of("\r\n");
        const std::string_view line = trimmed(text.substr(begin == text.npos ? 0 : begin + 1));
        if (last.empty())
            last = line;
        if (!line.starts_with("srun: error: ") || line.find(": task 0: ") == line.npos)
            return line;
        text = text.substr(0, begin == text.npos ? 0 : begin);
    }
    return last;
}

}  // namespace

void NodeWatch::ask() {
    if (running() || now() < again_)
        return;
    int output[2], errors[2];
    if (::pipe2(output, O_CLOEXEC) != 0)
        return void(fail(std::string("no pipe: ") + std::strerror(errno)));
    if (::pipe2(errors, O_CLOEXEC) != 0) {
        ::close(output[0]);
        ::close(output[1]);
        return void(fail(std::string("no pipe: ") + std::strerror(errno)));
    }
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0)
        become(command_.words, output[1], errors[1], parent);
    ::close(output[1]);
    ::close(errors[1]);
    output_ = output[0];
    errors_ = errors[0];
    for (const int end : {output_, errors_})
        ::fcntl(end, F_SETFL, O_NONBLOCK);
    text_.clear(), error_text_.clear(), greeting_.clear();
    greeted_ = 0;
    asked_ = now();
    answered_ = closed_ = 0;
    if (pid_ > 0)
        return;
    pid_ = 0;
    close_pipes();
    fail(std::string("no process: ") + std::strerror(errno));
}

void NodeWatch::add_descriptors(std::vector<pollfd>& descriptors) const {
    for (const int end : {output_, errors_})
        if (end >= 0)
            descriptors.push_back({end, POLLIN, 0});
}

uint64_t NodeWatch::patience() const {
    constexpr uint64_t kOften = 50, kAlways = 3'600'000;
    if (!running())
        return kAlways;
    if (output_ < 0)
        return kOften;
    const uint64_t end = std::max(asked_, answered_) + command_.timeout + (answered_ != 0 ? command_.interval : 0);
    return end > now() ? std::min(end - now() + 1, kAlways) : 0;
}

uint64_t NodeWatch::overdue() const {
    if (!latest_ || !command_.stream || answered_ == 0)
        return 0;
    const uint64_t age = now() - answered_;
    return age > 2 * command_.interval + 5'000 ? age : 0;
}

// Each time a part, so that a node that says more and more keeps nobody waiting.
void NodeWatch::read_output() {
    char buffer[65536];
    const ssize_t count = ::read(output_, buffer, sizeof buffer);
    if (count > 0)
        text_.append(buffer, static_cast<size_t>(count));
    if (count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN)))
        return;
    ::close(output_);
    output_ = -1;
    closed_ = now();
}

void NodeWatch::read_errors() {
    char buffer[4096];
    // More than this many times is more than a pipe holds.
    for (int i = 0; i < 32 && errors_ >= 0; ++i) {
        const ssize_t count = ::read(errors_, buffer, sizeof buffer);
        if (count == 0) {
            ::close(errors_);
            errors_ = -1;
        }
        if (count <= 0)
            break;
        error_text_.append(buffer, static_cast<size_t>(count));
        if (error_text_.size() > kMaxErrors)
            error_text_.erase(0, error_text_.size() - kMaxErrors);
    }
}

bool NodeWatch::accept(std::string_view text) {
    Json document = Json::parse(text, nullptr, false);
    std::optional<Snapshot> snapshot = parse_snapshot(document);
    if (!snapshot)
        return false;
    history_.note(*snapshot, kernel_clock(CLOCK_MONOTONIC));
    latest_ = std::move(snapshot);
    document_ = std::move(document);
    failure_.clear();
    answered_ = now();
    pause_ = 0;
    return true;
}

// Returns why there will be no answer, or nothing. Text before an answer is not from cuslice: some shells greet.
std::string NodeWatch::read_text() {
    size_t at = 0;
    for (size_t end; (end = text_.find('\n', at)) != text_.npos; at = end + 1) {
        const std::string_view line = std::string_view(text_).substr(at, end - at);
        if (line.starts_with("{")) {
            if (!command_.stream)
                break;
            if (!accept(line))
                return kNotRead;
        } else {
            greet(line);
            greeted_ += line.size() + 1;
        }
    }
    text_.erase(0, at);
    const bool whole = output_ < 0 && !command_.stream;
    if (text_.starts_with("{")) {
        if (whole && !accept(text_))
            return kNotRead;
        return text_.size() > kMaxAnswer ? "its answer is longer than 16 MiB" : "";
    }
    if (whole || text_.size() + greeted_ > kMaxGreeting)
        greet(text_);
    return text_.size() + greeted_ > kMaxGreeting ? "it says: " + greeting_ : "";
}

void NodeWatch::greet(std::string_view line) {
    if (greeting_.empty())
        greeting_ = trimmed(line).substr(0, kMaxReason);
}

bool NodeWatch::fail(std::string why) {
    const bool news = failure_.empty();
    failure_ = std::move(why);
    latest_.reset();
    document_ = Json();
    pause_ = std::clamp(pause_ * 2, kFirstPause, kLastPause);
    again_ = now() + pause_;
    return news;
}

// Why a command has ended that was to answer.
std::string NodeWatch::reason() const {
    std::string said(last_line(error_text_).substr(0, kMaxReason));
    if (said.empty() && !greeting_.empty())
        said = "it says: " + greeting_;
    if (said.empty() && WIFSIGNALED(status_))
        said = command_.words[0] + " was ended by signal " + std::to_string(WTERMSIG(status_));
    if (said.empty())
        said = command_.words[0] + " exited with " + std::to_string(WEXITSTATUS(status_));
    // The launcher's own code and the shell's, which ssh and srun hand on.
    const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 0;
    if (code == kUsage)
        return "another cuslice is there, an older one: " + said;
    if (code == kNotFound)
        return said + " (--launcher PATH names it there)";
    return said;
}

bool NodeWatch::take() {
    if (!running())
        return false;
    const bool answered = latest_.has_value();
    read_errors();
    if (output_ >= 0)
        read_output();
    if (std::string why = read_text(); !why.empty()) {
        kill();
        return fail(std::move(why));
    }
    if (output_ < 0) {
        if (!reap()) {
            if (now() - closed_ < kEnding)
                return false;
            kill();
        }
        return command_.stream || !latest_ ? fail(reason()) : !answered;
    }
    if (patience() == 0) {
        kill();
        const std::string_view said = last_line(error_text_).substr(0, kMaxReason);
        const uint64_t time = command_.timeout;
        std::string why =
            "timed out after " + (time % 1000 == 0 ? std::to_string(time / 1000) + " s" : std::to_string(time) + " ms");
        return fail(said.empty() ? std::move(why) : why.append(": ").append(said));
    }
    return answered != latest_.has_value();
}

void NodeWatch::terminate() {
    // It may not have become the leader of its group yet.
    if (running() && ::kill(-pid_, SIGTERM) != 0)
        ::kill(pid_, SIGTERM);
}

bool NodeWatch::reap() {
    if (!running())
        return true;
    siginfo_t info{};
    const bool known = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
    if (known && info.si_pid == 0)
        return false;
    read_errors();
    // While it is not waited for its group can't be another's.
    if (known)
        ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
    pid_ = 0;
    close_pipes();
    return true;
}

void NodeWatch::kill() {
    if (!running())
        return;
    if (::kill(-pid_, SIGKILL) != 0)
        ::kill(pid_, SIGKILL);
    for (int i = 0; i < 100 && !reap(); ++i)
        ::usleep(1000);
    pid_ = 0;
    close_pipes();
}

void NodeWatch::close_pipes() {
    for (int* const end : {&output_, &errors_}) {
        if (*end >= 0)
            ::close(*end);
        *end = -1;
    }
}

}  // namespace cuslice::cli::top
