// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/model/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace cuslice::tests::model {
namespace {

// Nothing that is asked here takes so long by itself: whoever hasn't answered then waits for what will not come.
constexpr std::chrono::seconds kHang{120};

// Between two looks at a program's threads.
constexpr int64_t kLook = 20;  // milliseconds

using Clock = std::chrono::steady_clock;

// Field 3 (state) and 4 (the parent) of a process's or a thread's stat.
bool stat_of(const std::string& folder, char& state, pid_t& parent) {
    std::ifstream file(folder + "/stat");
    std::string text;
    if (!std::getline(file, text))
        return false;
    const size_t bracket = text.rfind(')');
    if (bracket == text.npos)
        return false;
    std::istringstream rest(text.substr(bracket + 1));
    return static_cast<bool>(rest >> state >> parent);
}

bool stat_of(pid_t pid, char& state, pid_t& parent) { return stat_of("/proc/" + std::to_string(pid), state, parent); }

std::string task_folder(pid_t pid) { return "/proc/" + std::to_string(pid) + "/task"; }

// The youngest descendant of a chain of which each has one child.
pid_t last_of_chain(pid_t pid) {
    for (;;) {
        pid_t next = 0;
        for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
            const std::string name = entry.path().filename().string();
            if (name.find_first_not_of("0123456789") != name.npos)
                continue;
            char state = 0;
            pid_t parent = 0;
            const pid_t one = static_cast<pid_t>(std::stol(name));
            if (stat_of(one, state, parent) && parent == pid && state != 'Z')
                next = one;
        }
        if (next == 0)
            return pid;
        pid = next;
    }
}

}  // namespace

Busy::Busy(pid_t pid) : pid_(pid) {
    look();
    for (auto& [number, thread] : threads_)
        thread.at_first = thread.now;
}

void Busy::look() {
    const auto moment = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
    bool asleep = true;
    std::error_code gone;
    for (const auto& task : std::filesystem::directory_iterator(task_folder(pid_), gone)) {
        std::ifstream file(task.path() / "schedstat");
        uint64_t ran = 0, waited = 0;
        if (file >> ran >> waited) {
            Thread& thread = threads_[std::stoi(task.path().filename())];
            thread.now = std::max(thread.now, ran + waited);  // a number may be given to another one
        }
        char state = 0;
        pid_t parent = 0;
        if (stat_of(task.path().string(), state, parent))
            asleep = asleep && state != 'R' && state != 'D';
    }
    if (asleep && looked_ != 0)
        asleep_ += moment - looked_;
    looked_ = moment;
}

uint64_t Busy::nanoseconds() const {
    uint64_t sum = 0;
    for (const auto& [number, thread] : threads_)
        sum += thread.now - thread.at_first;
    return sum;
}

Worker::Worker(const Words& words, const Words& environment) {
    const tests::Piped child = tests::spawn_on_pipes(words, environment);
    child_ = child.pid;
    in_ = child.in;
    out_ = child.out;
    error_ = child.error;
    look_who();
}

Worker::~Worker() {
    if (child_ > 0)
        kill();
    for (const int file : {in_, out_, error_})
        if (file >= 0)
            close(file);
}

void Worker::look_who() {
    const Answer answer = ask("pid");
    if (answer.gone)
        throw Finding("a program ended at its start: " + err());
    own_pid_ = std::stoi(answer.text);
    host_pid_ = last_of_chain(child_);
}

void Worker::drain() {
    char buffer[4096];
    for (ssize_t count; (count = read(error_, buffer, sizeof buffer)) > 0;)
        err_.append(buffer, static_cast<size_t>(count));
}

const std::string& Worker::err() {
    if (error_ >= 0)
        drain();
    return err_;
}

void Worker::send(const std::string& line) {
    const std::string whole = line + "\n";
    // A program that has ended is noticed by its silence.
    (void)!write(in_, whole.data(), whole.size());
}

Answer Worker::receive(const std::function<void()>& look) {
    const auto end = Clock::now() + kHang;
    for (;;) {
        const size_t line_end = pending_.find('\n');
        if (line_end != std::string::npos) {
            Answer answer{pending_.substr(0, line_end)};
            pending_.erase(0, line_end + 1);
            drain();
            return answer;
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0)
            throw Finding("no answer in " + std::to_string(kHang.count()) + " s");
        pollfd ends[] = {{out_, POLLIN, 0}, {error_, POLLIN, 0}};
        const auto moment = static_cast<int>(look ? std::min(left, kLook) : left);
        if (poll(ends, 2, moment) < 0 && errno != EINTR)
            throw std::runtime_error("no poll");
        if (look)
            look();
        if (ends[1].revents & POLLIN)
            drain();
        char buffer[4096];
        if (!ends[0].revents)
            continue;
        const ssize_t count = read(out_, buffer, sizeof buffer);
        if (count <= 0)
            return {"(gone)", true};
        pending_.append(buffer, static_cast<size_t>(count));
    }
}

Answer Worker::ask(const std::string& line, const std::vector<pid_t>& neighbours) {
    std::vector<Busy> busy{Busy(host_pid_), Busy(getpid())};
    for (const pid_t neighbour : neighbours)
        busy.emplace_back(neighbour);
    const auto begun = Clock::now();
    send(line);
    Answer answer = receive([&] { busy.front().look(); });
    const auto wall =
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count());
    uint64_t spent = 0;
    for (Busy& one : busy) {
        one.look();
        spent += one.nanoseconds();
    }
    const uint64_t blocked = wall > spent ? wall - spent : 0;
    answer.blocked_ms = std::min(blocked, busy.front().asleep_nanoseconds()) / 1'000'000;
    return answer;
}

// Its threads stop one by one.
void Worker::stop() {
    ::kill(host_pid_, SIGSTOP);
    const auto runs = [&] {
        std::error_code gone;
        for (const auto& task : std::filesystem::directory_iterator(task_folder(host_pid_), gone)) {
            char state = 0;
            pid_t parent = 0;
            if (stat_of(task.path().string(), state, parent) && state != 'T' && state != 'Z')
                return true;
        }
        return false;
    };
    while (runs())
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    stopped_ = true;
}

std::string Worker::state() const {
    std::string text;
    std::error_code gone;
    for (const auto& task : std::filesystem::directory_iterator(task_folder(host_pid_), gone)) {
        char state = '?';
        pid_t parent = 0;
        stat_of(task.path().string(), state, parent);
        std::string call;
        std::getline(std::ifstream(task.path() / "syscall"), call);
        text += std::string("    thread in state ") + state + ", system call " + call + "\n";
    }
    return text;
}

void Worker::go_on() {
    ::kill(host_pid_, SIGCONT);
    stopped_ = false;
}

void Worker::kill() {
    if (child_ < 0)
        return;
    // The last one first: those before it end when it does, and what they hold meanwhile they hold no longer then.
    ::kill(host_pid_, SIGKILL);
    char state = 0;
    for (pid_t parent = 0; stat_of(child_, state, parent) && state != 'Z';) {
        const pid_t last = last_of_chain(child_);
        if (last != child_)
            ::kill(last, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    reap();
}

int Worker::finish() {
    if (stopped_)
        go_on();
    if (in_ >= 0)
        close(in_);
    in_ = -1;
    return reap();
}

int Worker::reap() {
    if (error_ >= 0) {
        fcntl(error_, F_SETFL, 0);
        drain();  // to its end: whoever still holds it is part of the program
    }
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace cuslice::tests::model
