// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/sanitizer_environment.h"

#include "cli/launch/elf_file.h"

namespace cuslice::cli {

void add_sanitizer_variables(Environment& environment, const std::string& program) {
    constexpr const char* kOptions = "ASAN_OPTIONS";
    if (!ElfFile(program).needs("libasan.so"))
        return;
    const std::string options = environment.get(kOptions).value_or("");
    if (options.find("verify_asan_link_order") != options.npos)
        return;
    environment.set(kOptions, options + (options.empty() ? "" : ":") + "verify_asan_link_order=0");
}

}  // namespace cuslice::cli
