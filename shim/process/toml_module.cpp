// SPDX-License-Identifier: Apache-2.0
#include "shim/process/toml_module.h"

#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/loaded_object.h"
#include "virtual_gpu/driver/own_folder.h"
#include "virtual_gpu/driver/real_dlopen.h"

namespace cuslice {

cuslice_toml_parse_function* open_toml_module(Reason& why) {
    char path[4096];
    const bool known = path_in_own_folder("/libcuslice-config.so", path, sizeof(path));
    void* module = known ? real_dlopen()(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    void* function = object_of(module).find("cuslice_toml_parse");
    if (!function) {
        const char* reason = Libdl::dlerror();
        why.assign("the module that reads files can't be opened: ", reason ? reason : path);
    }
    return reinterpret_cast<cuslice_toml_parse_function*>(function);
}

}  // namespace cuslice
