// SPDX-License-Identifier: Apache-2.0
#include "lab/hardware/report.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuslice::check {

namespace {

int socket_of_watcher() {
    const char* number = std::getenv("CHECK_WATCHER");
    return number ? std::atoi(number) : -1;
}

}  // namespace

void tell(const std::string& key, const std::string& value) {
    const std::string line = key + " " + value + "\n";
    const int socket = socket_of_watcher();
    if (socket < 0) {
        std::fputs(line.c_str(), stdout);
    } else if (write(socket, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        std::fprintf(stderr, "the watcher is gone\n");
        std::exit(1);
    }
}

void tell(const std::string& key, uint64_t bytes) { tell(key, std::to_string(bytes)); }

namespace {

/// The answer is the gate's first letter. It is for all who share the socket, so nobody takes it out.
void stop_at(const char* gate) {
    const int socket = socket_of_watcher();
    if (socket < 0)
        return;
    tell(gate, std::string("1"));
    char answers[16];
    for (;; usleep(2'000)) {
        const ssize_t count = recv(socket, answers, sizeof answers, MSG_PEEK);
        if (count <= 0)
            std::exit(1);
        if (std::memchr(answers, *gate, static_cast<size_t>(count)))
            return;
    }
}

}  // namespace

void held() { stop_at("held"); }
void ready() { stop_at("ready"); }

}  // namespace cuslice::check
