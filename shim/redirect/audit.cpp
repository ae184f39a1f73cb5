// SPDX-License-Identifier: Apache-2.0
// libcuslice-audit.so: in LD_AUDIT under `cuslice run --redirect-runtime=all`. The loader tells it of each library
// before the library's code runs (rtld-audit(7)). One that carries NVIDIA's static runtime is led to a shared one, as
// redirect.cpp does it for the program.
//
// It lies in a namespace of its own, with a C library of its own, and its calls come one after another, under the
// loader's lock. So it only reads files and writes jumps; the shared runtime is loaded at the first call, by
// libcuslice-redirect.so, in the program's namespace.
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "config/text.h"
#include "elf/object.h"
#include "shim/redirect/chosen_runtime.h"
#include "shim/redirect/code_patch.h"
#include "shim/redirect/keeps_runtime.h"
#include "shim/redirect/object_symbols.h"
#include "shim/redirect/obstacle.h"
#include "shim/redirect/plan.h"
#include "shim/redirect/veneers.h"

namespace cuslice {

namespace {

constinit RedirectPlan plan;
// In libcuslice-redirect.so; null as long as that isn't there.
constinit const void* first_call = nullptr;

// A library that was led elsewhere, as long as it is mapped. What jumps to its veneers goes with its mapping: some time
// after the loader says that it closes, and at the end of a process never, where others still call its functions.
struct Redirected {
    AddressRange library;  // ends at 0: unused
    Veneers veneers;

    bool is_used() const { return library.end != 0; }
    bool is_unmapped() const {
        unsigned char resident = 0;
        const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
        return mincore(reinterpret_cast<void*>(library.begin / page * page), page, &resident) != 0 && errno == ENOMEM;
    }
    bool overlaps(const AddressRange& other) const { return library.begin < other.end && other.begin < library.end; }
};
constinit Redirected all_redirected[256];

bool is_wanted() {
    const char* const asked = std::getenv("CUSLICE_REDIRECT_RUNTIME");
    return asked && std::string_view(asked) == "all" && getauxval(AT_SECURE) == 0;
}

// `opened`: a library that has just been mapped.
void remove_unmapped(const AddressRange& opened) {
    for (Redirected& one : all_redirected) {
        if (!one.is_used() || !(one.overlaps(opened) || one.is_unmapped()))
            continue;
        one.veneers.remove();
        one = {};
    }
}

// Where there are too many they stay for good.
void remember(const Redirected& redirected) {
    const auto unused = std::find_if(std::begin(all_redirected), std::end(all_redirected),
                                     [](const Redirected& one) { return !one.is_used(); });
    if (unused != std::end(all_redirected))
        *unused = redirected;
}

void note_redirect_library(const link_map& library) {
    constexpr char kName[] = "cuslice_redirect_first_call";
    const elf_object object = elf_object_at(library.l_addr, library.l_ld);
    const ElfW(Sym)* const symbol = elf_find_symbol(&object, kName, elf_gnu_hash(kName));
    if (symbol)
        first_call = reinterpret_cast<const void*>(library.l_addr + symbol->st_value);
}

// A shared runtime has the same names, and is where calls are led.
bool is_shared_runtime(const link_map& library) {
    const char* const soname = elf_object_at(library.l_addr, library.l_ld).soname;
    return soname && std::string_view(soname).starts_with("libcudart.so");
}

bool lead_away(const ObjectSymbols& symbols, const StaticRuntime& its, const link_map& library, Veneers& veneers,
               Reason& why) {
    ChosenRuntime runtime;
    why.assign(obstacle_of(symbols, its));
    if (!why.empty() || !runtime.choose(its.major, symbols.table(), library, plan, why))
        return false;
    const LateBinding late{first_call, library.l_name, runtime.path(), its.major};
    return redirect(symbols, plan.all(), &late, veneers, why);
}

// Says nothing of one that is stripped, as NVIDIA's own libraries are (cuBLAS, cuDNN): nothing is known of its runtime.
void redirect_library(const link_map& library) {
    ObjectSymbols symbols;
    const ObjectSymbols::Found found = symbols.read_library(library);
    if (found == ObjectSymbols::Found::unreadable)
        say_keeps_runtime(library.l_name, obstacle_of(found));
    const StaticRuntime its =
        found == ObjectSymbols::Found::table ? static_runtime_of(symbols.table()) : StaticRuntime();
    if (!its.there)
        return;
    remove_unmapped(symbols.table().whole);
    Reason why;
    Veneers veneers;
    if (lead_away(symbols, its, library, veneers, why))
        remember({symbols.table().whole, veneers});
    else
        say_keeps_runtime(library.l_name, why);
}

void heed(const link_map& library) {
    const std::string_view path = library.l_name ? library.l_name : "";
    // The program has no name, and the vDSO no file.
    const size_t slash = path.rfind('/');
    if (slash == path.npos)
        return;
    const std::string_view name = slice(path, slash + 1);
    if (name == "libcuslice-redirect.so")
        note_redirect_library(library);
    if (first_call && !name.starts_with("libcuslice") && !is_shared_runtime(library))
        redirect_library(library);
}

}  // namespace

}  // namespace cuslice

extern "C" {

[[gnu::visibility("default")]] unsigned la_version(unsigned version) { return cuslice::is_wanted() ? version : 0; }

[[gnu::visibility("default")]] unsigned la_objopen(link_map* library, Lmid_t place, uintptr_t*) {
    const int before = errno;
    if (place == LM_ID_BASE)
        cuslice::heed(*library);
    errno = before;
    return 0;
}
}
