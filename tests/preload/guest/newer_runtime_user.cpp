// SPDX-License-Identifier: Apache-2.0
// A program that was linked to a newer runtime, and one that opens it: both call what only that one has.
#include <dlfcn.h>

#include <cstdio>

extern "C" int cudaMadeUpLater();

int main(int, char** words) {
    void* handle = dlopen(words[1], RTLD_NOW);
    auto* opened = handle ? reinterpret_cast<int (*)()>(dlsym(handle, "cudaMadeUpLater")) : nullptr;
    std::printf("%d %d\n", cudaMadeUpLater(), opened ? opened() : -1);
}
