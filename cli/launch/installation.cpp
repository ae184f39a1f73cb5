// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/installation.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

namespace cuslice::cli {
namespace {

// A caller that names no version gets the first. TensorFlow's do, as it has stand-ins of its own for the runtime's
// names; it is built for CUDA 12, and before that for 11, whose structures the functions of 12 with the same names
// have.
constexpr std::string_view kFakePreloads[] = {
    "/libcudart.so.12", "/libcudart.so.11.0", "/libcudart.so.13",   "/libcublas.so.13",   "/libcublas.so.12",
    "/libcublas.so.11", "/libcublasLt.so.13", "/libcublasLt.so.12", "/libcublasLt.so.11", "/libcudnn.so.9"};

std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == path.npos ? "." : path.substr(0, slash);
}

}  // namespace

bool fits_in_loader_list(const std::string& path) { return path.find_first_of(" \t\n:;$") == path.npos; }

Installation installation_of(const std::string& executable) {
    const std::string libraries = folder_of(folder_of(executable)) + "/" CUSLICE_LIBDIR;
    return {.executable = executable,
            .library = libraries + "/libcuslice.so",
            .runtime_shim = libraries + "/libcuslice-runtime.so",
            .redirect = libraries + "/libcuslice-redirect.so",
            .audit = libraries + "/libcuslice-audit.so",
            .fake_folder = libraries + "/fake",
            .demo = libraries + "/cuslice-demo",
            .plot = libraries + "/python/plot.py"};
}

std::vector<std::string> Installation::fake_preloads() const {
    std::vector<std::string> found;
    for (const std::string_view name : kFakePreloads) {
        std::string path = fake_folder + std::string(name);
        if (::access(path.c_str(), R_OK) == 0)
            found.push_back(std::move(path));
    }
    return found;
}

bool is_fake_preload(std::string_view path) {
    return std::ranges::any_of(kFakePreloads, [&](std::string_view name) {
        return path.ends_with(std::string("/cuslice/fake").append(name));
    });
}

bool find_installation(Installation& installation, ConfigError& error) {
    // The kernel's own answer: argv[0] may be anything, and a symbolic link must lead to the tree behind it.
    char path[PATH_MAX];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0 || length == sizeof path) {
        return error.set("/proc/self/exe", "cannot be read, so the library cannot be found: is /proc mounted?");
    }
    installation = installation_of(std::string(path, static_cast<size_t>(length)));
    if (!fits_in_loader_list(installation.library)) {
        return error.set(
            installation.library,
            "LD_PRELOAD ignores a path with a space, colon, semicolon or dollar sign: move the installation");
    }
    if (::access(installation.library.c_str(), R_OK) != 0) {
        return error.set(installation.library, "no such file: this installation is not whole");
    }
    return true;
}

}  // namespace cuslice::cli
