// SPDX-License-Identifier: Apache-2.0
// libcuslice-redirect.so: preloaded by `cuslice run --redirect-runtime=program|all`. A program that carries NVIDIA's
// static runtime then calls a shared one, as if it had been linked with -cudart shared: each public function of the
// static runtime begins with a jump to the function of that name. The static runtime's code is not read, and none of it
// is called. docs/boundaries.md says what this is and is not.
#include <sys/auxv.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "shim/redirect/code_patch.h"
#include "shim/redirect/keeps_runtime.h"
#include "shim/redirect/object_symbols.h"
#include "shim/redirect/obstacle.h"
#include "shim/redirect/plan.h"
#include "shim/redirect/runtime_library.h"
#include "shim/redirect/veneers.h"

namespace cuslice {

namespace {

// Before the program and its libraries begin, and so before there are threads that call a runtime.
constinit RedirectPlan plan;
constinit RuntimeLibrary library;

bool is_wanted() {
    const char* const asked = std::getenv("CUSLICE_REDIRECT_RUNTIME");
    const std::string_view word = asked ? asked : "";
    return (word == "program" || word == "all") && getauxval(AT_SECURE) == 0;
}

void say(std::string_view why) {
    const char* const program = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    say_keeps_runtime(program ? program : "the program", why);
}

void redirect_program() {
    ObjectSymbols symbols;
    const ObjectSymbols::Found found = symbols.read_program();
    if (found != ObjectSymbols::Found::table) {
        // No line about a program that has no runtime to lead elsewhere, as far as that is known.
        const bool unknown = found == ObjectSymbols::Found::unreadable;
        const std::string_view obstacle = obstacle_of(found);
        if (!obstacle.empty() && !symbols.shares_runtime() && (unknown || symbols.has_device_code()))
            say(obstacle);
        return;
    }
    const StaticRuntime runtime = static_runtime_of(symbols.table());
    if (!runtime.there)
        return;
    if (const std::string_view obstacle = obstacle_of(symbols, runtime); !obstacle.empty())
        return say(obstacle);
    Reason why;
    const auto fits = [](const SharedRuntime& shared, void* table, Reason& lacks) {
        return plan.make(*static_cast<const SymbolTable*>(table), shared, lacks);
    };
    SymbolTable table = symbols.table();
    Veneers veneers;
    if (!library.open(runtime.major, fits, &table, why) || !redirect(symbols, plan.all(), nullptr, veneers, why))
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
