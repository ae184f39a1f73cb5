// SPDX-License-Identifier: Apache-2.0
// Checks the other preloaded libraries: those of LD_PRELOAD, and of the file that counts for everybody.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/doctor/checks.h"
#include "cli/doctor/loader_probe.h"
#include "cli/launch/elf_file.h"
#include "cli/launch/program_environment.h"
#include "cli/launch/sanitizer_environment.h"

namespace cuslice::cli::doctor {
namespace {

constexpr const char* kVariable = "LD_PRELOAD";
constexpr const char* kFile = "/etc/ld.so.preload";

// As ld.so takes it apart; in the file a # begins a comment.
std::vector<std::string> parts_of(const std::string& list) {
    std::vector<std::string> parts;
    for (size_t at = 0; at < list.size();) {
        if (list[at] == '#') {
            at = std::min(list.find('\n', at), list.size());
            continue;
        }
        const size_t end = std::min(list.find_first_of(" \t\n:#", at), list.size());
        if (end > at)
            parts.push_back(list.substr(at, end - at));
        at = end < list.size() && list[end] == '#' ? end : end + 1;
    }
    return parts;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool same_file(const std::string& one, const std::string& other) {
    std::error_code none;
    return one == other || std::filesystem::equivalent(one, other, none);
}

// True if `path` is a library of the installation under examination, whichever way it is named.
bool is_own(const std::string& path, const Installation& installation) {
    return same_file(path, installation.library) || same_file(path, installation.runtime_shim) ||
           same_file(path, installation.redirect) || is_fake_preload(path) ||
           file_name(path) == "libcuslice-preload.so";
}

// Names that a sanitizer's runtime interposes too aren't looked at in one.
bool is_sanitizer(const ElfFile& file) { return file.exports("__asan_init") || file.exports("__tsan_init"); }

// "dlsym and cuMemAlloc_v2": functions by which programs reach the driver and that `path` has of its own.
std::string own_functions(const std::string& path) {
    const ElfFile file(path);
    if (is_sanitizer(file))
        return {};
    constexpr const char* kFunctions[] = {
        "dlsym", "dlopen", "dlvsym", "cuInit", "cuGetProcAddress", "cuGetProcAddress_v2", "cuMemAlloc_v2"};
    std::vector<std::string> own;
    for (const char* const function : kFunctions)
        if (file.exports(function))
            own.emplace_back(function);
    std::string text;
    for (size_t i = 0; i < own.size(); ++i)
        text.append(i == 0 ? "" : i + 1 == own.size() ? " and " : ", ").append(own[i]);
    return text;
}

// Where in the loader's order the library that a list names is. One without a folder is known by its name.
size_t place_of(const std::string& path, const std::vector<std::string>& objects) {
    const bool by_name = path.find('/') == path.npos;
    const auto is_it = [&](const std::string& object) {
        return by_name ? file_name(object) == path : same_file(object, path);
    };
    return static_cast<size_t>(std::find_if(objects.begin(), objects.end(), is_it) - objects.begin());
}

void add_interposer(const std::string& path, const std::string& list, const std::string& functions, bool first,
                    Findings& findings) {
    const std::string own = functions.empty() ? "functions" : functions;
    if (first)
        return findings.warning(
            "preload-interposer",
            list + " loads " + path + " before libcuslice.so, with " + own +
                " of its own: what it hands out by itself, cuslice doesn't count",
            "Put libcuslice.so first into " + list + ", as cuslice run does, or take " + file_name(path) + " out");
    findings.warning("preload-interposer",
                     list + " loads " + path + ", which stands before the driver with " + own +
                         " of its own; cuslice run loads it behind libcuslice.so, and each sees what the other leaves",
                     "Take it out of " + list + " for programs that cuslice starts");
}

void look_at(const std::string& path, const std::string& list, const LoaderAnswer& loader, const Setup& setup,
             Findings& findings) {
    if (is_own(path, setup.installation))
        return;
    // A variable of ld.so's in it leads somewhere that only ld.so knows.
    const bool a_file = path.find('/') != path.npos && path.find('$') == path.npos;
    const bool refused = loader.words.find("'" + path + "' from " + list + " cannot be preloaded") != std::string::npos;
    if (file_name(path) == "libcuslice.so")
        return findings.warning("preload-cuslice",
                                list + " has another cuslice, " + path + ": of two libraries the first one counts",
                                "Take it out of " + list + ", or start programs with the launcher beside it");
    const size_t place = place_of(path, loader.objects);
    const std::string functions = own_functions(place < loader.objects.size() ? loader.objects[place] : path);
    // HAMi's, of which ld.so may know the folder.
    if (!functions.empty() || file_name(path) == "libvgpu.so") {
        const size_t own = place_of(setup.installation.library, loader.objects);
        return add_interposer(path, list, functions, own < loader.objects.size() && place < own, findings);
    }
    if (refused || (a_file && ::access(path.c_str(), R_OK) != 0))
        findings.warning("preload-missing", list + " names " + path + ", which can't be preloaded",
                         "Take it out of " + list + ", or mend its path");
}

}  // namespace

void check_preload(Setup& setup, Findings& findings) {
    if (setup.installation.executable.empty())
        return;
    Environment others = setup.environment;
    remove_preload(others);
    const size_t before = findings.all().size();
    const std::vector<std::string> everybody = parts_of(text_of(setup.machine_file(kFile)));
    LoaderAnswer loader;
    if (others.get(kVariable) || !everybody.empty()) {
        Environment asking = setup.environment;
        add_sanitizer_variables(asking, setup.installation.executable);
        loader = ask_loader(setup.installation, asking);
    }
    for (const std::string& path : parts_of(setup.environment.get(kVariable).value_or("")))
        look_at(path, kVariable, loader, setup, findings);
    for (const std::string& path : everybody)
        look_at(path, kFile, loader, setup, findings);
    if (!findings.any_since(before))
        findings.ok("preload", "nothing that is preloaded stands in the way");
}

}  // namespace cuslice::cli::doctor
