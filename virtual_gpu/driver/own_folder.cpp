// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/own_folder.h"

#include <cstring>

#include "virtual_gpu/driver/loaded_object.h"
#include "virtual_gpu/driver/real_dlopen.h"

namespace cuslice {

bool path_in_own_folder(const char* file, char* path, size_t size) {
    const size_t length = std::strlen(file) + 1;
    if (length >= size || !folder_of(kOwnPlace, path, size - length)) {
        path[0] = '\0';
        return false;
    }
    std::memcpy(path + std::strlen(path), file, length);
    return true;
}

}  // namespace cuslice
