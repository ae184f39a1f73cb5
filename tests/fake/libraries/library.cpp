// SPDX-License-Identifier: Apache-2.0
#include "tests/fake/libraries/library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace fake_test {

void* open_library(const Report& report, const std::string& file) {
    void* library = dlopen((std::string(CUSLICE_TEST_FAKE_FOLDER "/") + file).c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT(library != nullptr);
    return library;
}

void* function_of(void* library, const char* name) {
    void* function = dlsym(library, name);
    if (function == nullptr)
        std::abort();
    return function;
}

int count_of(const std::string& text, const std::string& part) {
    int count = 0;
    for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size())
        count++;
    return count;
}

}  // namespace fake_test
