// search NAME [PATH]: prints which library of that name is the real one, or "none: " and why.
#include <cstdio>

#include "virtual_gpu/driver/locate.h"

int main(int count, char** words) {
    char text[512];
    if (count < 2) return 64;
    void* found = cuslice::open_real_library(words[1], count > 2 && *words[2] ? words[2] : nullptr, text, sizeof text);
    std::printf("%s%s\n", found ? "" : "none: ", text);
}
