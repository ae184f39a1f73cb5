// SPDX-License-Identifier: Apache-2.0
// libcuslice-redirect.so: preloaded by `cuslice run --redirect-runtime=program`. A program that carries NVIDIA's static
// runtime then calls a shared one, as if it had been linked with -cudart shared: each public function of the static
// runtime begins with a jump to the function of that name. The static runtime's code is not read, and none of it is
// called. docs/boundaries.md says what this is and is not.
#include <sys/auxv.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "policy/base/own_descriptors.h"
#include "shim/log.h"
#include "shim/redirect/code_patch.h"
#include "shim/redirect/plan.h"
#include "shim/redirect/program_symbols.h"
#include "shim/redirect/runtime_library.h"

namespace cuslice {

namespace {

// Before the program and its libraries begin, and so before there are threads that call a runtime.
constinit RedirectPlan plan;
constinit RuntimeLibrary library;

bool is_wanted() {
    const char* const asked = std::getenv("CUSLICE_REDIRECT_RUNTIME");
    return asked && std::string_view(asked) == "program" && getauxval(AT_SECURE) == 0;
}

void say(std::string_view why) {
    const char* const program = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    LogLine line;
    line.append("cuslice: --redirect-runtime: ", std::string_view(program ? program : "the program"),
                " keeps its static CUDA runtime: ", why, "\n");
    write_at_once(2, line.c_str(), line.view().size());
}

// Why a program that needs a symbol table has none that could be used.
std::string_view explain(ProgramSymbols::Found found) {
    switch (found) {
        case ProgramSymbols::Found::stripped:
            return "it is stripped of its symbol table";
        case ProgramSymbols::Found::unreadable:
            return "its file can't be read, or there is no memory for its symbol table";
        case ProgramSymbols::Found::text_changes:
            return "the loader has changed its code (DT_TEXTREL)";
        default:
            return "";
    }
}

void redirect_program() {
    ProgramSymbols symbols;
    const ProgramSymbols::Found found = symbols.read();
    if (found != ProgramSymbols::Found::table) {
        // No line about a program that has no runtime to lead elsewhere, as far as that is known.
        const bool unknown = found == ProgramSymbols::Found::unreadable;
        if (!symbols.shares_runtime() && (unknown || symbols.has_device_code()))
            say(explain(found));
        return;
    }
    const StaticRuntime runtime = static_runtime_of(symbols.table());
    if (!runtime.there)
        return;
    if (!runtime.major)
        return say("it is none of CUDA 12 or 13");
    Reason why;
    const auto fits = [](const SharedRuntime& shared, void* table, Reason& lacks) {
        return plan.make(*static_cast<const SymbolTable*>(table), shared, lacks);
    };
    SymbolTable table = symbols.table();
    const bool redirected = library.open(runtime.major, fits, &table, why) && redirect(symbols, plan.all(), why);
    if (redirected)
        symbols.keep_names();
    else
        say(why.view());
}

[[gnu::constructor]] void begin() {
    const int before = errno;
    if (is_wanted())
        redirect_program();
    errno = before;
}

}  // namespace

}  // namespace cuslice
