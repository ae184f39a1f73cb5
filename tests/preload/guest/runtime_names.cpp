// SPDX-License-Identifier: Apache-2.0
// Looks names up in a CUDA runtime: `guest_runtime_names LIBRARY VERSION FILE`. Each has to be found by the handle of
// dlopen, and for all of the process as those that link to it are bound: by name and version. Prints what is not.
#include <dlfcn.h>

#include <fstream>
#include <iostream>
#include <string>

int main(int count, char** words) {
    if (count != 4)
        return 64;
    void* handle = dlopen(words[1], RTLD_LAZY | RTLD_GLOBAL);
    if (!handle)
        return std::cout << dlerror() << std::endl, 1;
    unsigned found = 0;
    std::ifstream names(words[3]);
    for (std::string name; std::getline(names, name);) {
        const bool opened = dlsym(handle, name.c_str()), linked = dlvsym(RTLD_DEFAULT, name.c_str(), words[2]);
        if (!opened)
            std::cout << "not by its handle: " << name << std::endl;
        if (!linked)
            std::cout << "not by its version: " << name << std::endl;
        found += opened && linked;
    }
    std::cout << "found " << found << std::endl;
}
