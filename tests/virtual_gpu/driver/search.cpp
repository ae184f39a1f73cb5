// SPDX-License-Identifier: Apache-2.0
// search NAME [PATH [OPENED...]]: prints which library of that name is the real one, or "none: " and why. The program
// has opened the others before, by whatever they are called there.
#include <cstdio>

#include "virtual_gpu/driver/locate.h"

static const int in_the_program = 0;

int main(int count, char** words) {
    char text[512];
    if (count < 2)
        return 64;
    for (int i = 3; i < count; i++)
        cuslice::remember_opening(words[1], words[i], &in_the_program);
    void* found = cuslice::open_real_library(words[1], count > 2 && *words[2] ? words[2] : nullptr, text, sizeof text);
    std::printf("%s%s\n", found ? "" : "none: ", text);
}
