// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/driver_facade.h"

#include <dlfcn.h>

#include <cerrno>

#include "virtual_gpu/driver/own_folder.h"
#include "virtual_gpu/driver/real_dlopen.h"

namespace cuslice {

namespace {

constinit void* handle = nullptr;  // the same value whoever writes it
constinit bool sought = false;

void* open_facade() {
    char path[4096];
    return path_in_own_folder("/libcuda.so", path, sizeof(path)) ? real_dlopen()(path, RTLD_LAZY) : nullptr;
}

}  // namespace

void* driver_facade() {
    if (__atomic_load_n(&sought, __ATOMIC_ACQUIRE))
        return handle;
    const int before = errno;
    __atomic_store_n(&handle, open_facade(), __ATOMIC_RELAXED);
    __atomic_store_n(&sought, true, __ATOMIC_RELEASE);
    errno = before;
    return handle;
}

}  // namespace cuslice
