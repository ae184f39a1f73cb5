// SPDX-License-Identifier: Apache-2.0
#include "lab/hardware/stacks.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace cuslice::check {

namespace {

double now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::vector<pid_t> numbers_in(const std::string& folder) {
    std::vector<pid_t> numbers;
    if (DIR* open = opendir(folder.c_str())) {
        while (const dirent* entry = readdir(open))
            if (const int number = std::atoi(entry->d_name); number > 0)
                numbers.push_back(number);
        closedir(open);
    }
    return numbers;
}

std::string text_of(const std::string& path) {
    std::ifstream stream(path);
    std::ostringstream text;
    text << stream.rdbuf();
    std::string whole = text.str();
    while (!whole.empty() && whole.back() == '\n')
        whole.pop_back();
    return whole;
}

pid_t parent_of(pid_t pid) {
    const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
    const size_t name_end = stat.rfind(')');
    int parent = 0;
    if (name_end != std::string::npos)
        std::sscanf(stat.c_str() + name_end + 1, " %*c %d", &parent);
    return parent;
}

std::string program_of(pid_t pid) {
    char path[4096];
    const ssize_t length = readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), path, sizeof path);
    return length > 0 ? std::string(path, static_cast<size_t>(length)) : "";
}

// ---- with a debugger ------------------------------------------------------------------------------------------------

std::string debugger() {
    std::istringstream folders((std::getenv("PATH") ? std::getenv("PATH") : "") + std::string(":/usr/local/cuda/bin"));
    std::vector<std::string> all;
    for (std::string folder; std::getline(folders, folder, ':');)
        all.push_back(folder);
    for (const char* name : {"/gdb", "/cuda-gdb"})
        for (const std::string& folder : all)
            if (access((folder + name).c_str(), X_OK) == 0)
                return folder + name;
    return "";
}

/// The debugger's output about the process; empty if it has no stack to show or isn't done in time.
std::string backtraces(const std::string& debugger, pid_t pid, double seconds) {
    int ends[2];
    if (pipe(ends) != 0)
        return "";
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        // Nothing is to be fetched, and the debugger is no program in a slice.
        for (const char* name : {"DEBUGINFOD_URLS", "LD_PRELOAD", "LD_LIBRARY_PATH"})
            unsetenv(name);
        const std::string number = std::to_string(pid);
        execl(debugger.c_str(), debugger.c_str(), "-nx", "-batch", "-p", number.c_str(), "-ex", "set pagination off",
              "-ex", "thread apply all backtrace 40", static_cast<char*>(nullptr));
        _exit(127);
    }
    close(ends[1]);
    std::string text;
    const double end = now() + seconds;
    for (;;) {
        pollfd ready{ends[0], POLLIN, 0};
        const int left = static_cast<int>((end - now()) * 1000);
        char piece[4096];
        if (left <= 0 || poll(&ready, 1, left) <= 0)
            break;
        const ssize_t count = read(ends[0], piece, sizeof piece);
        if (count <= 0)
            break;
        text.append(piece, static_cast<size_t>(count));
    }
    close(ends[0]);
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    kill(pid, SIGCONT);  // a debugger that is killed may leave the process stopped
    return text.find("#0 ") == std::string::npos ? "" : text.substr(std::min(text.find("\nThread "), text.find("#0 ")));
}

// ---- without one ----------------------------------------------------------------------------------------------------

struct Mapping {
    uintptr_t from, to, offset;
    std::string file;
};

std::vector<Mapping> code_of(pid_t pid) {
    std::vector<Mapping> code;
    std::istringstream maps(text_of("/proc/" + std::to_string(pid) + "/maps"));
    for (std::string line; std::getline(maps, line);) {
        unsigned long from = 0, to = 0, offset = 0;
        char rights[8] = {};
        int at = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx %7s %lx %*s %*s %n", &from, &to, rights, &offset, &at) < 4)
            continue;
        if (rights[2] == 'x')
            code.push_back({from, to, offset, at > 0 ? line.substr(static_cast<size_t>(at)) : ""});
    }
    return code;
}

/// "libc.so.6+0x89f84", the offset being that in the file; empty if the address is in no code.
std::string place(const std::vector<Mapping>& code, uintptr_t address) {
    for (const Mapping& mapping : code) {
        if (address < mapping.from || address >= mapping.to)
            continue;
        char offset[32];
        std::snprintf(offset, sizeof offset, "+0x%lx",
                      static_cast<unsigned long>(address - mapping.from + mapping.offset));
        return mapping.file.substr(mapping.file.rfind('/') + 1) + offset;
    }
    return "";
}

void print_thread(FILE* file, pid_t pid, pid_t thread, const std::vector<Mapping>& code) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/";
    const std::string call = text_of(folder + "syscall");
    std::fprintf(file, "thread %d %s, waits in %s, system call %s\n", thread, text_of(folder + "comm").c_str(),
                 text_of(folder + "wchan").c_str(), call.substr(0, call.find(' ')).c_str());
    if (const std::string kernel = text_of(folder + "stack"); !kernel.empty())
        std::fprintf(file, "%s\n", kernel.c_str());
    const size_t last = call.rfind(' '), before = last == std::string::npos ? last : call.rfind(' ', last - 1);
    if (before == std::string::npos)
        return;
    const uintptr_t counter = std::strtoull(call.c_str() + last, nullptr, 16),
                    top = std::strtoull(call.c_str() + before, nullptr, 16);
    std::fprintf(file, "    at %s; on its stack:", place(code, counter).c_str());
    uintptr_t words[1024] = {};
    iovec here{words, sizeof words}, there{reinterpret_cast<void*>(top), sizeof words};
    const ssize_t count = process_vm_readv(pid, &here, 1, &there, 1, 0);
    for (ssize_t i = 0, said = 0; i < count / 8 && said < 40; i++)
        if (const std::string found = place(code, words[i]); !found.empty()) {
            std::fprintf(file, " %s", found.c_str());
            said++;
        }
    std::fprintf(file, "\n");
}

}  // namespace

std::vector<pid_t> descendants(pid_t parent) {
    std::vector<std::pair<pid_t, pid_t>> all;  // parent, process
    for (pid_t pid : numbers_in("/proc"))
        all.emplace_back(parent_of(pid), pid);
    std::vector<pid_t> found{parent};
    for (size_t i = 0; i < found.size(); i++)
        for (const auto& [above, pid] : all)
            if (above == found[i])
                found.push_back(pid);
    found.erase(found.begin());
    return found;
}

void print_stacks(FILE* file, pid_t pid, double seconds) {
    const std::string program = program_of(pid), name = program.substr(program.rfind('/') + 1);
    for (const char* one : {"", "bash", "dash", "sh", "guard"})
        if (name == one)
            return;
    std::fprintf(file, "process %d, %s\n", pid, name.c_str());
    static const std::string found = debugger();
    const std::string text = found.empty() || seconds < 0.2 ? "" : backtraces(found, pid, seconds);
    if (!text.empty()) {
        std::fprintf(file, "%s\n", text.c_str());
        return;
    }
    const std::vector<Mapping> code = code_of(pid);
    for (pid_t thread : numbers_in("/proc/" + std::to_string(pid) + "/task"))
        print_thread(file, pid, thread, code);
}

}  // namespace cuslice::check
