// SPDX-License-Identifier: Apache-2.0
// Asks cuGetProcAddress, in both forms, for every "name version flags" that it reads; "(empty)" is the empty name.
// Answers with what each form gave: result, and for the second form the status, and where the pointer leads to.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "virtual_gpu/driver/cuda_api.h"

namespace {

int untouched;

// FILE:OFFSET:SYMBOL. Two processes have the same libraries at different addresses; offsets are the same in both.
std::string place(const void* pointer) {
    if (!pointer)
        return "null";
    if (pointer == &untouched)
        return "untouched";
    Dl_info info{};
    if (!dladdr(pointer, &info) || !info.dli_fname)
        return "nowhere";
    const std::string file = info.dli_fname;
    std::ostringstream out;
    out << file.substr(file.rfind('/') + 1) << ':'
        << static_cast<const char*>(pointer) - static_cast<char*>(info.dli_fbase) << ':'
        << (info.dli_sname && info.dli_saddr == pointer ? info.dli_sname : "?");
    return out.str();
}

}  // namespace

int main(int count, char**) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return std::fprintf(stderr, "lookups: %s\n", dlerror()), 3;
    const auto v1 = reinterpret_cast<decltype(&cuGetProcAddress)>(dlsym(library, "cuGetProcAddress"));
    const auto v2 = reinterpret_cast<decltype(&cuGetProcAddress_v2)>(dlsym(library, "cuGetProcAddress_v2"));
    if (count > 1)
        reinterpret_cast<decltype(&cuInit)>(dlsym(library, "cuInit"))(0);
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in(line);
        std::string name;
        int version = 0;
        cuuint64_t flags = 0;
        if (!(in >> name >> version >> flags))
            continue;
        void *first = &untouched, *second = &untouched;
        auto status = static_cast<CUdriverProcAddressQueryResult>(99);
        const char* asked = name == "(empty)" ? "" : name.c_str();
        const CUresult one = v1(asked, &first, version, flags);
        // Drivers before 525 have the first form alone.
        const CUresult two = v2 ? v2(asked, &second, version, flags, &status) : CUDA_ERROR_NOT_FOUND;
        std::cout << one << ' ' << place(first) << ' ' << two << ' ' << static_cast<int>(status) << ' '
                  << place(second);
        // Without a status to write to it is the same.
        void* third = &untouched;
        std::cout << (!v2 || (v2(asked, &third, version, flags, nullptr) == two && third == second)
                          ? ""
                          : " differs-without-status");
        if (name == "cuFakeNewerDriverFunction" && two == CUDA_SUCCESS && second) {
            int effect = 0;
            reinterpret_cast<CUresult (*)(int*)>(second)(&effect);
            std::cout << " effect " << effect;
        }
        std::cout << '\n';
    }
}
