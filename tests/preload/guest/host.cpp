// SPDX-License-Identifier: Apache-2.0
// Commands that change the guest's own descriptors, environment and threads. cuslice must not harm a program that does
// so.
#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "tests/preload/guest/guest.h"

extern char** environ;

namespace guest {
namespace {

// The first stderr stays open for the test to read from, under a number that nothing else looks for.
void put_on_stderr(int file) {
    static const int first = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 900);
    (void)first;
    dup2(file, STDERR_FILENO);
    close(file);
}

int broken_pipe() {
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    close(ends[0]);
    return ends[1];
}

int full_pipe() {
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    const int flags = fcntl(ends[1], F_GETFL);
    fcntl(ends[1], F_SETFL, flags | O_NONBLOCK);
    const char text[512] = {};
    while (write(ends[1], text, sizeof text) > 0) {
    }
    fcntl(ends[1], F_SETFL, flags);
    return ends[1];
}

int broken_socket() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return -1;
    close(ends[0]);
    return ends[1];
}

struct Call {
    Program& program;
    const Words& words;
    std::string answer;
};

}  // namespace

void add_host_commands(Commands& commands) {
    // stderr broken|full|socket, or stderr append FILE: descriptor 2 is that from now on
    commands["stderr"] = [](Program&, const Words& w) {
        const std::string& kind = w.at(0);
        if (kind == "append")
            put_on_stderr(open(w.at(1).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644));
        else
            put_on_stderr(kind == "broken" ? broken_pipe() : kind == "full" ? full_pipe() : broken_socket());
        return answer(CUDA_SUCCESS);
    };
    // reuse FILE: closes stderr, and has a file of its own under the number
    commands["reuse"] = [](Program&, const Words& w) {
        put_on_stderr(open("/dev/null", O_WRONLY));
        close(STDERR_FILENO);
        const int file = open(w.at(0).c_str(), O_RDWR | O_CREAT, 0644);
        return std::to_string(file == STDERR_FILENO ? 0 : 1);
    };
    // clearenv NAMES…: but these
    commands["clearenv"] = [](Program&, const Words& w) {
        std::map<std::string, std::string> kept;
        for (const std::string& name : w)
            if (const char* value = getenv(name.c_str()))
                kept[name] = value;
        clearenv();
        for (const auto& [name, value] : kept)
            setenv(name.c_str(), value.c_str(), 1);
        return answer(CUDA_SUCCESS);
    };
    // nullenv: there is none at all
    commands["nullenv"] = [](Program&, const Words&) {
        environ = nullptr;
        return answer(CUDA_SUCCESS);
    };
    // secure: 1 in a program with more rights than whoever started it
    commands["secure"] = [](Program&, const Words&) { return std::to_string(getauxval(AT_SECURE)); };
    // stack BYTES COMMAND…: the command, by a thread with a stack of this size, in the same context
    commands["stack"] = [](Program& p, const Words& w) {
        const Words command(w.begin() + 1, w.end());
        Call call{p, command, {}};
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        if (pthread_attr_setstacksize(&attributes, number(w.at(0))) != 0)
            return std::string("no such stack");
        pthread_t thread;
        const auto run = [](void* own) -> void* {
            auto& one = *static_cast<Call*>(own);
            one.program.driver.cuCtxSetCurrent(one.program.current);
            one.answer = execute(one.program, one.words);
            return nullptr;
        };
        if (pthread_create(&thread, &attributes, run, &call) != 0)
            return std::string("no thread");
        pthread_join(thread, nullptr);
        pthread_attr_destroy(&attributes);
        return call.answer;
    };
}

}  // namespace guest
