// SPDX-License-Identifier: Apache-2.0
#include "shim/process/drop_in.h"

#include "config/drop_in.h"
#include "virtual_gpu/driver/loaded_object.h"

namespace cuslice {

namespace {

constinit const char here = 0;

}  // namespace

bool is_drop_in() {
    const std::string_view path(object_at(&here).path());
    const size_t slash = path.rfind('/');
    return slice(path, slash == path.npos ? 0 : slash + 1) == kDropInName;
}

}  // namespace cuslice
