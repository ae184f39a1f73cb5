// SPDX-License-Identifier: Apache-2.0
#include "shim/process/toml_module.h"

#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/loaded_object.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/real_dlopen.h"

namespace cuslice {

cuslice_toml_parse_function* open_toml_module(Reason& why) {
    static const char anchor = 0;
    char path[4096];
    constexpr const char kName[] = "/libcuslice-config.so";
    if (!folder_of(&anchor, path, sizeof(path) - sizeof(kName)))
        path[0] = '\0';
    std::memcpy(path + std::strlen(path), kName, sizeof(kName));
    void* module = real_dlopen()(path, RTLD_NOW | RTLD_LOCAL);
    void* function = object_of(module).find("cuslice_toml_parse");
    if (!function) {
        const char* reason = Libdl::dlerror();
        why.assign("the module that reads files can't be opened: ", reason ? reason : path);
    }
    return reinterpret_cast<cuslice_toml_parse_function*>(function);
}

}  // namespace cuslice
