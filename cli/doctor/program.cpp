// SPDX-License-Identifier: Apache-2.0
// Checks that a slice reaches the program.
#include <filesystem>

#include "cli/doctor/checks.h"
#include "cli/doctor/script.h"
#include "cli/launch/elf_file.h"
#include "cli/launch/program.h"
#include "cli/launch/static_runtime.h"
#include "cli/text/exit_codes.h"
#include "config/resolve.h"
#include "config/split/plan.h"
#include "elf/machine.h"

namespace cuslice::cli::doctor {
namespace {

constexpr uintmax_t kScriptBytes = uintmax_t{256} * 1024;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Advice for one of Reach's reasons.
std::string advice_for(const std::string& why) {
    if (contains(why, "statically linked"))
        return "Link it dynamically, without -static; MIG and MPS limit programs of every kind";
    if (contains(why, "not an " ELF_MACHINE_NAME " program"))
        return "Use a build of the program for " ELF_MACHINE_NAME;
    if (contains(why, "its loader"))
        return "Use a build of the program for the GNU C library";
    return "Start what it starts with cuslice, as in sudo cuslice run -- PROGRAM; or put the library into "
           "/etc/ld.so.preload";
}

// A runtime that is linked in sees neither parts of a GPU nor the fake GPU, unless it is led to a shared one.
void check_runtime(const Setup& setup, const std::string& path, Findings& findings) {
    constexpr std::string_view kRelink =
        "relink it with nvcc -cudart shared: NVCC_APPEND_FLAGS=\"-cudart shared\" make";
    if (!setup.configured || !carries_static_runtime(path))
        return;
    const bool redirected = redirects_runtime(setup.settings);
    if (redirected && has_symbol_table(path))
        return;
    const bool fake = find(setup.settings, Key::fake) != nullptr;
    if (!fake && !splits_any(setup.settings))
        return;
    const std::string what = path + ": is linked with the static CUDA runtime, which " +
                             (fake ? "doesn't start on a fake GPU" : "sees each split GPU as one");
    if (redirected)
        findings.problem(
            "program-runtime",
            what + "; it can't be led to the shared one, as the program is stripped of its symbol table",
            "Leave the symbols in the program (strip --strip-debug takes the rest), or " + std::string(kRelink));
    else
        findings.problem("program-runtime", what,
                         "Start it with --redirect-runtime=program, or " + std::string(kRelink));
}

void check_script(const std::string& path, Findings& findings) {
    std::error_code none;
    const uintmax_t bytes = std::filesystem::file_size(path, none);
    if (none || bytes > kScriptBytes)
        return;
    const std::string line = line_without_preload(text_of(path));
    if (line.empty())
        return;
    findings.warning("program-script", path + ":" + line + " takes the library away from what it starts",
                     "Keep what is there: LD_PRELOAD=$LD_PRELOAD:OTHER; or write cuslice run into the script");
}

// The loader's namespaces are the one thing about opening a driver that a file shows; the flags of dlopen are not in
// it.
void check_namespaces(const std::string& path, Findings& findings) {
    const ElfFile file(path);
    if (!file.asks_for("dlmopen") || !file.contains("libcuda.so"))
        return;
    findings.warning("program-namespace", path + ": uses dlmopen, and names the driver: what it opens so has no limit",
                     "Open the driver with dlopen");
}

}  // namespace

void check_program(Setup& setup, Findings& findings) {
    const std::vector<std::string>& words = setup.invocation.arguments.program;
    if (words.empty())
        return;
    setup.program = find_program(words[0], setup.environment);
    if (setup.program.exit_code != 0)
        return findings.problem("program-missing", setup.program.message,
                                setup.program.exit_code == kNotFound
                                    ? "Name it with its folder, or put that into PATH"
                                    : "Make it a file that you may execute (chmod +x)");
    const size_t before = findings.all().size();
    const std::string& path = setup.program.path;
    if (const Reach reach = look_at_reach(path); !reach.why_not.empty())
        findings.problem("program-reach", reach.why_not, advice_for(reach.why_not));
    check_runtime(setup, path, findings);
    if (started_file(path) != path)
        check_script(path, findings);
    check_namespaces(path, findings);
    if (!findings.any_since(before))
        findings.ok("program", path + ": a slice reaches it");
}

}  // namespace cuslice::cli::doctor
