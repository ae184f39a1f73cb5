// SPDX-License-Identifier: Apache-2.0
// A program that makes its primary context without an exported function that anybody could stand before, as a runtime
// with a way of its own into the driver does, and then allocates as everybody does. With an argument it makes it
// through the exported function. CHECK_DRIVER is the driver's file. For the test of call_trace.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace {

template <typename... Arguments>
void must(void* library, const char* name, Arguments... arguments) {
    auto* function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
    if (function && function(arguments...) == 0)
        return;
    std::fprintf(stderr, "%s failed\n", name);
    std::exit(1);
}

}  // namespace

int main(int argc, char**) {
    const char* path = std::getenv("CHECK_DRIVER");
    void *everybodys = dlopen("libcuda.so.1", RTLD_NOW), *own = path ? dlopen(path, RTLD_NOW) : nullptr;
    if (!everybodys || !own)
        return std::fprintf(stderr, "no driver\n"), 2;
    void* context = nullptr;
    unsigned long long block = 0;
    must(everybodys, "cuInit", 0U);
    must(argc > 1 ? everybodys : own, "cuDevicePrimaryCtxRetain", &context, 0);
    must(everybodys, "cuCtxSetCurrent", context);
    must(everybodys, "cuMemAlloc_v2", &block, size_t{1} << 20);
}
