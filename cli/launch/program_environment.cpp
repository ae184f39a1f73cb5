// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/program_environment.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "config/handover.h"
#include "config/load.h"
#include "config/resolve.h"
#include "config/split/plan.h"

namespace cuslice::cli {
namespace {

// The loader takes spaces and colons as separators in the first, colons in the second, and skips what is empty.
constexpr std::string_view kPreload = "LD_PRELOAD", kAudit = "LD_AUDIT";
constexpr std::string_view kLibraryPath = "LD_LIBRARY_PATH";
// One string of an environment may have 128 KiB with its name (MAX_ARG_STRLEN).
constexpr size_t kMaxHandOver = size_t{120} * 1024;

std::vector<std::string> split(const std::string& list, const char* separators) {
    std::vector<std::string> parts;
    for (size_t at = 0; at <= list.size();) {
        const size_t end = std::min(list.find_first_of(separators, at), list.size());
        parts.push_back(list.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

// By name, not by path: of two installations the inner one replaces the outer, or both would claim to be the driver.
bool is_ours(const std::string& path) {
    for (const std::string_view name :
         {"libcuslice.so", "libcuslice-runtime.so", "libcuslice-redirect.so", "libcuslice-audit.so"})
        if (path == name || path.ends_with("/" + std::string(name)))
            return true;
    return is_fake_preload(path);
}

// The parts of one of these lists for which `leaves_out` is false.
template <typename LeavesOut>
std::string list_without(const Environment& environment, std::string_view name, LeavesOut leaves_out) {
    std::string others;
    for (const std::string& part : split(environment.get(name).value_or(""), name == kAudit ? ":" : " :")) {
        if (part.empty() || leaves_out(part))
            continue;
        if (!others.empty())
            others += ":";
        others += part;
    }
    return others;
}

std::string others_in(const Environment& environment, std::string_view name) {
    return list_without(environment, name, is_ours);
}

void set_list(Environment& environment, std::string_view name, const std::string& list) {
    if (list.empty()) {
        environment.unset(name);
    } else {
        environment.set(name, list);
    }
}

// Ours first, and what others have put there behind it.
void put_in_front(Environment& environment, std::string_view name, std::string ours) {
    const std::string others = others_in(environment, name);
    if (!ours.empty() && !others.empty())
        ours += ":";
    if (environment.get(name) || !ours.empty())
        set_list(environment, name, ours + others);
}

bool is_loaded(const std::string& path) {
    void* const handle = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    return handle != nullptr && ::dlclose(handle) == 0;
}

// An empty element of LD_LIBRARY_PATH is the current folder, so the rest must be kept to the letter.
void prepend_library_path(Environment& environment, const std::string& folder) {
    const auto before = environment.get(kLibraryPath);
    if (!before || before->empty())
        return environment.set(kLibraryPath, folder);
    if (*before == folder || before->starts_with(folder + ":"))
        return;
    environment.set(kLibraryPath, folder + ":" + *before);
}

}  // namespace

void remove_preload(Environment& environment) {
    put_in_front(environment, kPreload, "");
    put_in_front(environment, kAudit, "");
}

void remove_refused_preloads(Environment& environment) {
    const char* const own = ::getenv(kPreload.data());
    if (own == nullptr || !environment.get(kPreload))
        return;
    const std::vector<std::string> tried = split(own, " :");
    const auto was_refused = [&](const std::string& part) {
        return std::find(tried.begin(), tried.end(), part) != tried.end() && !is_loaded(part);
    };
    set_list(environment, kPreload, list_without(environment, kPreload, was_refused));
}

void add_fake_programs(Environment& environment, const Settings& settings, const Installation& installation) {
    if (find(settings, Key::fake) == nullptr)
        return;
    const std::string folder = installation.fake_programs();
    // Without PATH a program has the system's folders; an empty element is the current folder.
    const std::string before = environment.get("PATH").value_or("/bin:/usr/bin");
    if (before == folder || before.starts_with(folder + ":"))
        return;
    environment.set("PATH", folder + ":" + before);
}

bool prepare_environment(Environment& environment, const Settings& settings, const Installation& installation,
                         ConfigError& error) {
    // Written first: if it does not fit, nothing has been changed yet.
    std::string handover(kMaxHandOver, '\0');
    const size_t length = write_handover(settings, handover);
    if (length == 0)
        return error.set(kHandOver, "too many settings to hand on: at most 120 KiB of text");
    handover.resize(length);

    for (const KeyTraits& traits : all_keys())
        environment.unset(traits.variable);
    environment.set(kHandOver, handover);
    const bool fake = find(settings, Key::fake) != nullptr;
    std::string preload = installation.library;
    if (splits_any(settings))
        preload += ":" + installation.runtime_shim;
    if (redirects_runtime(settings))
        preload += ":" + installation.redirect;
    if (fake) {
        // Before LD_LIBRARY_PATH the loader asks the DT_RPATH of who needs a library, and PyTorch's leads to NVIDIA's
        // own. One that is there already, by its SONAME, comes before both. Nothing of these runs until it is called.
        for (const std::string& path : installation.fake_preloads())
            preload += ":" + path;
    }
    put_in_front(environment, kPreload, std::move(preload));
    put_in_front(environment, kAudit, redirects_libraries(settings) ? installation.audit : "");

    for (const Key key : {Key::fake, Key::fake_kernels, Key::redirect_runtime, Key::runtime}) {
        if (const Entry* entry = find(settings, key))
            environment.set(traits_of(key).variable, entry->value);
    }
    if (fake)
        prepend_library_path(environment, installation.fake_folder);
    return true;
}

}  // namespace cuslice::cli
