// SPDX-License-Identifier: Apache-2.0
// A table or a value of a TOML file that can't hold.
#pragma once

#include <string_view>

#include "config/config_error.h"
#include "config/toml/reader.h"

namespace cuslice {

/// Says in `error` what is wrong with an item of the file `path`: where it is, its key, and its value where it has one.
/// Returns false.
inline bool refuse_item(const cuslice_toml_item& item, std::string_view path, std::string_view reason,
                        ConfigError& error) {
    if (item.kind == CUSLICE_TOML_TABLE)
        error.set(path, reason);
    else
        error.set(path, {item.value, item.value_size}, reason);
    error.line = item.line;
    error.column = item.column;
    error.key.clear();
    for (size_t i = 0; i < item.depth; ++i) {
        if (i != 0)
            error.key.append(".");
        error.key.append(item.path[i]);
    }
    return false;
}

}  // namespace cuslice
