// SPDX-License-Identifier: Apache-2.0
// A library that opens others, so that its folders are those that count.
#include <dlfcn.h>

void* stub_open(const char* name, int flags);
__attribute__((visibility("default"))) void* stub_open(const char* name, int flags) {
    void* volatile library = dlopen(name, flags);  // a call, and no jump, which would come from our caller
    return library;
}
