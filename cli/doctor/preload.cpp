// What else is preloaded: LD_PRELOAD, and the file that counts for everybody.
#include <unistd.h>

#include <filesystem>

#include "cli/doctor/checks.h"
#include "cli/doctor/loader_probe.h"
#include "cli/elf_file.h"
#include "cli/program_environment.h"
#include "cli/sanitizer_environment.h"

namespace cuslice::cli::doctor {
namespace {

constexpr const char* kVariable = "LD_PRELOAD";
constexpr const char* kFile = "/etc/ld.so.preload";

// As ld.so takes it apart; in the file a # begins a comment.
std::vector<std::string> parts_of(const std::string& list) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < list.size();) {
        if (list[at] == '#') {
            at = std::min(list.find('\n', at), list.size());
            continue;
        }
        const std::size_t end = std::min(list.find_first_of(" \t\n:#", at), list.size());
        if (end > at) parts.push_back(list.substr(at, end - at));
        at = end < list.size() && list[end] == '#' ? end : end + 1;
    }
    return parts;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Of the installation that is examined, whichever way it is named.
bool is_own(const std::string& path, const Installation& installation) {
    for (const std::string& own : {installation.library, installation.runtime_shim}) {
        std::error_code none;
        if (path == own || std::filesystem::equivalent(path, own, none)) return true;
    }
    return is_fake_preload(path);
}

bool stands_before_driver(const std::string& path) {
    const ElfFile file(path);
    if (file_name(path) == "libvgpu.so") return true;  // HAMi's, of which ld.so may know the folder
    for (const char* const function : {"cuInit", "cuGetProcAddress", "cuGetProcAddress_v2", "cuMemAlloc_v2", "dlsym"})
        if (file.exports(function)) return true;
    return false;
}

void look_at(const std::string& path, const std::string& list, const std::string& words, const Setup& setup,
             Findings& findings) {
    if (is_own(path, setup.installation)) return;
    // A variable of ld.so's in it leads somewhere that only ld.so knows.
    const bool a_file = path.find('/') != path.npos && path.find('$') == path.npos;
    const bool refused = words.find("'" + path + "' from " + list + " cannot be preloaded") != words.npos;
    if (file_name(path) == "libcuslice.so")
        return findings.warning("preload-cuslice",
                                list + " has another cuslice, " + path + ": of two libraries the first one counts",
                                "Take it out of " + list + ", or start programs with the launcher beside it");
    if (stands_before_driver(path))
        return findings.warning("preload-interposer",
                                list + " has " + path +
                                    ", which stands before the driver as cuslice does: each sees "
                                    "what the other leaves",
                                "Take it out of " + list + " for programs that cuslice starts");
    if (refused || (a_file && ::access(path.c_str(), R_OK) != 0))
        findings.warning("preload-missing", list + " names " + path + ", which can't be preloaded",
                         "Take it out of " + list + ", or mend its path");
}

}  // namespace

void check_preload(Setup& setup, Findings& findings) {
    if (setup.installation.executable.empty()) return;
    Environment others = setup.environment;
    remove_preload(others);
    const std::size_t before = findings.all().size();
    const std::vector<std::string> everybody = parts_of(text_of(setup.machine_file(kFile)));
    std::string words;
    if (others.get(kVariable) || !everybody.empty()) {
        add_sanitizer_variables(others, setup.installation.executable);
        words = ask_loader(setup.installation, others).words;
    }
    for (const std::string& path : parts_of(setup.environment.get(kVariable).value_or("")))
        look_at(path, kVariable, words, setup, findings);
    for (const std::string& path : everybody) look_at(path, kFile, words, setup, findings);
    if (!findings.any_since(before)) findings.ok("preload", "nothing that is preloaded stands in the way");
}

}  // namespace cuslice::cli::doctor
