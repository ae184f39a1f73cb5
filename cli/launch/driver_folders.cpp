// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/driver_folders.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/launch/elf_file.h"

namespace cuslice::cli {
namespace {

// A folder as the loader reads it: $ORIGIN is the one in which the program lies.
std::string expand(std::string folder, const std::string& origin) {
    for (const std::string name : {"$ORIGIN", "${ORIGIN}"})
        if (const size_t at = folder.find(name); at != folder.npos)
            folder.replace(at, name.size(), origin);
    return folder;
}

// Only those with a driver in them: others could lead the launcher to another C library.
std::string folders_with_driver(std::string_view list, const std::string& origin) {
    std::string found;
    while (!list.empty()) {
        const size_t end = std::min(list.find(':'), list.size());
        const std::string folder = expand(std::string(list.substr(0, end)), origin);
        list.remove_prefix(std::min(end + 1, list.size()));
        if (::access((folder + "/libcuda.so.1").c_str(), R_OK) != 0)
            continue;
        found += (found.empty() ? "" : ":") + folder;
    }
    return found;
}

}  // namespace

void search_as(const std::string& program, Environment& environment) {
    constexpr std::string_view kLibraryPath = "LD_LIBRARY_PATH";
    const ElfFile file(program);
    std::error_code failed;
    const std::string origin = std::filesystem::canonical(program, failed).parent_path().string();
    // An RPATH has no effect beside a RUNPATH.
    const std::string after = folders_with_driver(file.search_path(DT_RUNPATH), origin);
    const std::string before =
        file.search_path(DT_RUNPATH).empty() ? folders_with_driver(file.search_path(DT_RPATH), origin) : "";
    if (before.empty() && after.empty())
        return;
    std::string whole = before;
    for (const std::string& part : {environment.get(kLibraryPath).value_or(""), after})
        if (!part.empty())
            whole += (whole.empty() ? "" : ":") + part;
    environment.set(kLibraryPath, whole);
}

}  // namespace cuslice::cli
