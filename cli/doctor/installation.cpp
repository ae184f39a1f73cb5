// SPDX-License-Identifier: Apache-2.0
// Checks that the installation is complete, and that ld.so accepts the library.
#include <unistd.h>

#include "cli/doctor/checks.h"
#include "cli/doctor/loader_probe.h"
#include "cli/gpus/ask_child.h"
#include "cli/launch/program_environment.h"
#include "cli/launch/sanitizer_environment.h"

namespace cuslice::cli::doctor {
namespace {

constexpr const char* kLibraries[] = {"libcuslice.so",          "libcuda.so",
                                      "libnvidia-ml.so.1",      "libcuslice-config.so",
                                      "libcuslice-runtime.so",  "libcuslice-cudart11.so",
                                      "libcuslice-cudart12.so", "libcuslice-cudart13.so",
                                      "libcuslice-redirect.so", "libcuslice-audit.so"};
constexpr const char* kFakeLibraries[] = {"libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.11.0", "libcudart.so.12",
                                          "libcudart.so.13"};

bool readable(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

// "/opt/cuslice/lib/cuslice/ lacks libcuslice.so, libcuda.so".
template <typename Names>
bool has_all(const std::string& folder, const Names& names, Findings& findings) {
    std::string missing;
    for (const char* const name : names)
        if (!readable(folder + "/" + name))
            missing.append(missing.empty() ? "" : ", ").append(name);
    if (missing.empty())
        return true;
    findings.problem("installation-file", folder + " lacks " + missing + ", or they may not be read",
                     "Install cuslice again, the whole tree");
    return false;
}

bool check_files(const Installation& installation, Findings& findings) {
    const bool whole = has_all(installation.library.substr(0, installation.library.rfind('/')), kLibraries, findings);
    // Somebody may have left the fake GPU out; but not a part of it.
    const bool fake =
        !readable(installation.fake_folder) || has_all(installation.fake_folder, kFakeLibraries, findings);
    return whole && fake;
}

// Its own words are all that ld.so has: it goes on without what it could not preload.
void check_loader(Setup& setup, Findings& findings) {
    Environment alone = setup.environment;
    remove_preload(alone);
    alone.set("LD_PRELOAD", setup.installation.library);
    add_sanitizer_variables(alone, setup.installation.executable);
    const LoaderAnswer answer = ask_loader(setup.installation, alone);
    if (answer.library_there) {
        findings.ok("installation", setup.installation.library + " is preloaded");
        return;
    }
    const std::string why = answer.words.empty() ? "a program starts without it, and nothing says why" : answer.words;
    findings.problem("library-preload", setup.installation.library + " can't be preloaded: " + why,
                     "Install cuslice again, on a file system that is not mounted noexec; it needs the GNU C library "
                     "2.17 or newer");
}

}  // namespace

void check_installation(Setup& setup, Findings& findings) {
    ConfigError error;
    setup.installed = find_installation(setup.installation, error);
    if (setup.installation.executable.empty()) {
        findings.problem("proc", "/proc/self/exe can't be read, so nothing of the installation is found",
                         "Mount /proc, as mount -t proc proc /proc does");
        return;
    }
    if (!fits_in_loader_list(setup.installation.library)) {
        findings.problem("installation-path",
                         setup.installation.library +
                             ": LD_PRELOAD ignores a path with a space, colon, semicolon or "
                             "dollar sign",
                         "Move the installation to another folder, as /opt/cuslice");
        return;
    }
    if (check_files(setup.installation, findings))
        check_loader(setup, findings);
}

}  // namespace cuslice::cli::doctor
