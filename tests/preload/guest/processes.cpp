// SPDX-License-Identifier: Apache-2.0
// The process itself: its pid, its children, what a look-up gives it.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <thread>

#include "tests/preload/guest/guest.h"
#include "tests/preload/guest/refusal_check.h"

namespace guest {
namespace {

// Makes the calls that a forked child might. After cuInit the driver refuses the child everything, but nothing
// may hang or crash.
int ask_around(Program& p) {
    CUdeviceptr block = 0;
    size_t free = 0, total = 0;
    void* found = nullptr;
    p.driver.cuMemAlloc_v2(&block, 512);
    p.driver.cuMemGetInfo_v2(&free, &total);
    p.driver.cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, nullptr);
    dlopen("libcuda.so.1", RTLD_NOW);
    p.driver.cuInit(0);
    return 0;
}

// State that a library in somebody's process must leave alone, as the kernel reports it: threads, descriptors,
// signals, umask.
std::string self() {
    std::string text = "threads";
    text += " " + std::to_string(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
    std::multiset<std::string> open;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;  // the iterator's own
        const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
        if (!gone && target.rfind("/proc/", 0) != 0)
            open.insert(target.rfind("pipe:", 0) == 0 ? "pipe" : target);
    }
    text += " open";
    for (const std::string& target : open)
        text += " " + target;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        // SigQ counts for all processes of the user.
        if ((line.rfind("Sig", 0) == 0 && line.rfind("SigQ", 0) != 0) || line.rfind("Umask", 0) == 0 ||
            line.rfind("ShdPnd", 0) == 0)
            text += " " + line;
    for (char& c : text)
        if (c == '\t')
            c = ' ';
    return text;
}

}  // namespace

void add_process_commands(Commands& commands) {
    // letchange free|stack|out: refusals of this program's may change that (refusal_check.h)
    commands["letchange"] = [](Program&, const Words& w) {
        let_change(w.at(0));
        return answer(CUDA_SUCCESS);
    };
    commands["pid"] = [](Program&, const Words&) { return std::to_string(getpid()); };
    // setenv NAME [VALUE], unsetenv NAME, getenv NAME
    commands["setenv"] = [](Program&, const Words& w) {
        return std::to_string(setenv(w.at(0).c_str(), w.size() > 1 ? w[1].c_str() : "", 1));
    };
    commands["unsetenv"] = [](Program&, const Words& w) { return std::to_string(unsetenv(w.at(0).c_str())); };
    commands["getenv"] = [](Program&, const Words& w) -> std::string {
        const char* value = getenv(w.at(0).c_str());
        return value ? "=" + std::string(value) : "unset";
    };
    commands["self"] = [](Program&, const Words&) { return self(); };
    // fork: the child goes on with the conversation, its parent waits for its end
    commands["fork"] = [](Program&, const Words&) {
        std::cout.flush();
        const pid_t child = fork();
        if (child > 0) {
            int status = 0;
            waitpid(child, &status, 0);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        }
        return answer(child == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
    };
    // rawfork: the same, behind the C library's back
    commands["rawfork"] = [](Program&, const Words&) {
        std::cout.flush();
        const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child > 0) {
            int status = 0;
            waitpid(static_cast<pid_t>(child), &status, 0);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        }
        return answer(child == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
    };
    // usurp FILE: closes every descriptor that it doesn't know, and has the file open under the numbers instead
    commands["usurp"] = [](Program&, const Words& w) {
        constexpr int kMax = 64;
        for (int file = 3; file < kMax; ++file)
            close(file);
        for (int file = 3; file < kMax; ++file)
            open(w.at(0).c_str(), O_RDWR | O_CREAT | O_APPEND, 0644);
        return answer(CUDA_SUCCESS);
    };
    // closeall FOLDER: closes every descriptor from 3 on, as daemons do, but the driver's own, which no program
    // survives the loss of: here they lie in that folder, or are memory
    commands["closeall"] = [](Program&, const Words& w) {
        std::vector<int> closed;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone;  // the iterator's own
            const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
            const int file = std::stoi(entry.path().filename());
            const bool drivers = target.rfind(w.at(0), 0) == 0 || target.rfind("/memfd:cuslice-fake", 0) == 0;
            if (!gone && file > 2 && !drivers)
                closed.push_back(file);
        }
        for (const int file : closed)
            close(file);
        return answer(CUDA_SUCCESS, closed.size());
    };
    // filelimit BYTES: as ulimit -f
    commands["filelimit"] = [](Program&, const Words& w) {
        const rlimit most{number(w.at(0)), RLIM_INFINITY};
        return std::to_string(setrlimit(RLIMIT_FSIZE, &most));
    };
    // nofiles: from now on no file can be opened
    commands["nofiles"] = [](Program&, const Words&) {
        rlimit files{};
        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = 0;
        return std::to_string(setrlimit(RLIMIT_NOFILE, &files));
    };
    // stacks BYTES: of the threads of a program that takes this one's place
    commands["stacks"] = [](Program&, const Words& w) {
        rlimit stack{};
        getrlimit(RLIMIT_STACK, &stack);
        stack.rlim_cur = number(w.at(0));
        return std::to_string(setrlimit(RLIMIT_STACK, &stack));
    };
    // exec: another program in the same process, which goes on with the conversation
    commands["exec"] = [](Program&, const Words& w) -> std::string {
        std::cout << "0" << std::endl;
        execl("/proc/self/exe", "guest", w.at(0).c_str(), nullptr);
        return "could not";
    };
    // forkends COUNT: forks so often, while a thread begins and ends device 1's primary context, of which the children
    // ask an end, too; how many ended badly
    commands["forkends"] = [](Program& p, const Words& w) {
        std::atomic<bool> stop{false};
        std::thread ender([&] {
            while (!stop) {
                CUcontext context = nullptr;
                p.driver.cuDevicePrimaryCtxRetain(&context, 1);
                p.driver.cuDevicePrimaryCtxRelease_v2(1);
            }
        });
        unsigned bad = 0;
        for (size_t i = 0; i < number(w.at(0)) && !bad; ++i) {
            const pid_t child = fork();
            if (child == 0) {
                alarm(120);  // a child that waits for what nobody ends any more is killed and counted
                for (const CUdevice device : {0, 1})
                    p.driver.cuDevicePrimaryCtxRelease_v2(device);
                p.driver.cuDevicePrimaryCtxReset_v2(1);
                p.driver.cuCtxDestroy_v2(p.current);
                _exit(ask_around(p));
            }
            int status = 0;
            waitpid(child, &status, 0);
            bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        }
        stop = true;
        ender.join();
        return answer(CUDA_SUCCESS, bad);
    };
    // forks COUNT THREADS: forks so often, while so many threads allocate and free; how many children ended badly
    commands["forks"] = [](Program& p, const Words& w) {
        std::atomic<bool> stop{false};
        std::vector<std::thread> busy;
        for (size_t i = 0; i < number(w.at(1)); ++i)
            busy.emplace_back([&] {
                p.driver.cuCtxSetCurrent(p.current);
                while (!stop) {
                    CUdeviceptr block = 0;
                    size_t free = 0, total = 0;
                    if (p.driver.cuMemAlloc_v2(&block, 4096) == CUDA_SUCCESS)
                        p.driver.cuMemFree_v2(block);
                    p.driver.cuMemGetInfo_v2(&free, &total);
                }
            });
        unsigned bad = 0;
        for (size_t i = 0; i < number(w.at(0)) && !bad; ++i) {
            const pid_t child = fork();
            if (child == 0) {
                alarm(120);  // a child that waits for a lock which nobody holds any more is killed and counted
                ask_around(p);
                _exit(fork() < 0);  // takes what locks there are
            }
            int status = 0;
            waitpid(child, &status, 0);
            bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        }
        stop = true;
        for (std::thread& thread : busy)
            thread.join();
        return answer(CUDA_SUCCESS, bad);
    };
}

}  // namespace guest
