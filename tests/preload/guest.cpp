// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "fake/books/books.h"
#include "tests/preload/places.h"

namespace cuslice::tests {

std::string preload_list() { return (kSanitizerRuntime.empty() ? "" : kSanitizerRuntime + ":") + kPreloaded; }

namespace {

bool names(const Words& lines, const std::string& name) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.rfind(name + "=", 0) == 0; });
}

// The usual folder is others' too, and keeps a file for each fake GPU that there ever was: the 64 MiB of /dev/shm that
// a container has are soon full of them.
std::string own_books() {
    static const Folder folder;
    return "CUSLICE_FAKE_DIR=" + folder.path();
}

}  // namespace

Words plain(const Words& more) {
    Words environment{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/nonexistent", "LC_ALL=C.UTF-8",
                      // Leaks aren't checked: memory that lives as long as its process is not lost, and a program that
                      // isn't sanitized frees its own. A cancelled thread leaves asan's marks on its stack, and its
                      // own handling of sigaltstack trips.
                      "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:allocator_may_return_null=1:"
                      "use_sigaltstack=0",
                      "TSAN_OPTIONS=exitcode=66:report_signal_unsafe=0", "UBSAN_OPTIONS=print_stacktrace=1"};
    environment.insert(environment.end(), more.begin(), more.end());
    if (!names(more, "CUSLICE_FAKE_DIR"))
        environment.push_back(own_books());
    return environment;
}

namespace {

Words on_fake_gpus(const std::string& fake, const std::string& folder, const std::string& how, const Words& more) {
    Words own{"CUSLICE_FAKE=" + fake, how};
    if (!folder.empty())
        own.push_back("CUSLICE_FAKE_DIR=" + folder);
    Words environment = plain(own);
    for (const std::string& line : more) {
        // The loader takes the later of two values, and a program's start may change their order, as under qemu-user.
        const std::string name = line.substr(0, line.find('=') + 1);
        if (name == "LD_PRELOAD=" || name == "LD_LIBRARY_PATH=" || name == "CUSLICE_FAKE_DIR=")
            std::erase_if(environment, [&](const std::string& other) { return other.rfind(name, 0) == 0; });
        environment.push_back(line);
    }
    return environment;
}

}  // namespace

Words raw(const std::string& fake, const std::string& folder, const Words& more) {
    return on_fake_gpus(fake, folder, "LD_LIBRARY_PATH=" + kFakeFolder, more);
}

Words sliced(const std::string& fake, const std::string& folder, const Words& more) {
    return on_fake_gpus(fake, folder, "LD_PRELOAD=" + preload_list(), more);
}

namespace {

// Calls f(Holder) for what the books of each such GPU have of the process.
template <typename F>
void each_holding(const std::string& folder, int pid, const std::string& uuid, F f) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        fake::Books books;
        std::string error;
        if (!books.open_existing(file.path().string(), error))
            continue;  // a lock file
        if (std::string(books.header().uuid).rfind(uuid, 0) != 0)
            continue;
        for (const fake::Holder& holder : books.holders())
            if (holder.pid == pid)
                f(holder);
    }
}

}  // namespace

Held books_of(const std::string& folder, int pid, const std::string& uuid) {
    Held held;
    each_holding(folder, pid, uuid, [&](const fake::Holder& holder) {
        held = {true, holder.used, holder.peak, holder.contexts, holder.unlisted};
    });
    return held;
}

Held all_books_of(const std::string& folder, int pid) {
    Held held;
    each_holding(folder, pid, "", [&](const fake::Holder& holder) {
        held = {true, held.used + holder.used, held.peak + holder.peak, held.contexts + holder.contexts,
                held.unlisted + holder.unlisted};
    });
    return held;
}

namespace {

// A race is only written down, and the program goes on.
void fail_if_reported(const std::string& err) {
    if (err.find("WARNING: ThreadSanitizer") != std::string::npos)
        throw std::runtime_error(err);
}

// So says a guest of which a refused call has left something behind: see guest/refusal_check.h.
void fail_if_changed(const std::string& line, const std::string& answer) {
    if (answer.rfind("changed: ", 0) == 0)
        throw std::runtime_error(line + ": " + answer.substr(9));
}

}  // namespace

Words Guest::route(const std::string& name) {
    return {kGuests + (name == "linked" ? "/guest_linked" : "/guest"), name};
}

Piped spawn_on_pipes(const Words& words, const Words& environment) {
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
        throw std::runtime_error("no pipe");
    const auto pointers = [](const Words& texts) {
        std::vector<char*> all;
        for (const std::string& text : texts)
            all.push_back(const_cast<char*>(text.c_str()));
        all.push_back(nullptr);
        return all;
    };
    const std::vector<char*> arguments = pointers(words), lines = pointers(environment);
    signal(SIGPIPE, SIG_IGN);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGPIPE, SIG_DFL);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        execvpe(arguments[0], arguments.data(), lines.data());
        _exit(125);
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    return {child, in[1], out[0], err[0]};
}

Guest::Guest(const Words& words, const Words& environment) {
    const Piped child = spawn_on_pipes(words, environment);
    child_ = child.pid;
    in_ = child.in;
    out_ = child.out;
    error_ = child.error;
}

Guest::~Guest() {
    if (child_ > 0)
        ::kill(child_, SIGKILL);
    end();
}

void Guest::drain() {
    char buffer[4096];
    for (ssize_t count; (count = read(error_, buffer, sizeof buffer)) > 0;)
        err_.append(buffer, static_cast<size_t>(count));
}

std::string Guest::ask(const std::string& line) {
    const std::string whole = line + "\n";
    if (write(in_, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size()))
        return "(gone)";
    for (;;) {
        const size_t end = pending_.find('\n');
        if (end != std::string::npos) {
            std::string answer = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            drain();
            fail_if_reported(err_);
            fail_if_changed(line, answer);
            return answer;
        }
        pollfd ends[] = {{out_, POLLIN, 0}, {error_, POLLIN, 0}};
        if (poll(ends, 2, -1) < 0 && errno != EINTR)
            return "(gone)";
        if (ends[1].revents)
            drain();
        char buffer[4096];
        if (!ends[0].revents)
            continue;
        const ssize_t count = read(out_, buffer, sizeof buffer);
        if (count <= 0)
            return "(gone)";
        pending_.append(buffer, static_cast<size_t>(count));
    }
}

void Guest::let_change(const std::string& what, const std::string&) { ask("letchange " + what); }

int Guest::code(const std::string& line) {
    const Words words = split_words(ask(line));
    const bool digits = !words.empty() && words[0].find_first_not_of("0123456789") == std::string::npos;
    return digits ? std::stoi(words[0]) : -1;
}

uint64_t Guest::number(const std::string& line, unsigned place) {
    const std::string answer = ask(line);
    const Words words = split_words(answer);
    if (place >= words.size())
        throw std::runtime_error(line + " was answered: " + answer + "; stderr: " + err_);
    return std::stoull(words[place]);
}

int Guest::pid() { return static_cast<int>(number("pid", 0)); }

int Guest::finish() {
    const int code = end();
    fail_if_reported(err_);
    return code;
}

int Guest::end() {
    if (in_ >= 0)
        close(in_);
    in_ = -1;
    if (child_ < 0)
        return -1;
    fcntl(error_, F_SETFL, 0);
    drain();  // to its end: whoever still holds it is part of the guest
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    close(out_);
    close(error_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Guest::kill(int signal) { ::kill(child_, signal); }

Words Guest::complaints() {
    drain();
    Words found;
    for (const std::string& line : split_lines(err_))
        if (line.rfind("cuslice: ", 0) == 0)
            found.push_back(line);
    return found;
}

Words split_words(const std::string& text) {
    std::istringstream in(text);
    Words words;
    for (std::string word; in >> word;)
        words.push_back(word);
    return words;
}

Words split_lines(const std::string& text) {
    std::istringstream in(text);
    Words lines;
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return lines;
}

}  // namespace cuslice::tests
