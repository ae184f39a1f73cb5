#include "tests/hardware/report.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

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

void tell(const std::string& key, std::uint64_t bytes) { tell(key, std::to_string(bytes)); }

void held() {
    const int socket = socket_of_watcher();
    if (socket < 0) return;
    tell("held", std::string("1"));
    char answer = 0;
    if (read(socket, &answer, 1) != 1) std::exit(1);
}

}  // namespace cuslice::check
