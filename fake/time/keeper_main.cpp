// SPDX-License-Identifier: Apache-2.0
// timekeeper FOLDER real|virtual   decides when the work of a fake machine's GPUs ends
//
// Started by the fake driver. Ends when it has been alone for a moment, or at once if the machine has one.

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "fake/time/keeper.h"

using namespace cuslice::fake;

namespace {

/// The program's files and terminal are none of ours.
void leave_program() {
    setsid();
    const int null = open("/dev/null", O_RDWR);
    for (int file = 0; file < 3 && null >= 0; file++)
        dup2(null, file);
    for (int file = 3; file < 1024; file++)
        close(file);
    if (chdir("/") != 0)
        return;
    prctl(PR_SET_TIMERSLACK, 1UL);
}

}  // namespace

int main(int argc, char** argv) {
    const bool is_virtual = argc == 3 && std::strcmp(argv[2], "virtual") == 0;
    if (argc != 3 || (!is_virtual && std::strcmp(argv[2], "real") != 0)) {
        std::fprintf(stderr, "usage: timekeeper FOLDER real|virtual\n");
        return 64;
    }
    const std::string folder = argv[1];
    leave_program();
    TimeMapping mapping;
    std::string error;
    if (!mapping.open_lock(folder, error) || !mapping.lock(0))
        return 0;
    if (!mapping.create(folder, is_virtual, error))
        return 1;
    Timekeeper(mapping).run();
    return 0;
}
