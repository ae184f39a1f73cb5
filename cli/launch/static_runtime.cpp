// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/static_runtime.h"

#include "cli/launch/elf_file.h"

namespace cuslice::cli {

bool carries_static_runtime(const std::string& path) {
    const ElfFile file(path);
    return file.has_section(".nv_fatbin") && !file.needs("libcudart.so");
}

bool has_symbol_table(const std::string& path) { return ElfFile(path).has_section(".symtab"); }

}  // namespace cuslice::cli
