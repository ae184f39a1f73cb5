// SPDX-License-Identifier: Apache-2.0
// Does the installed driver's cuGetProcAddress return the exported address for every function that it exports, and what
// does it return under cuslice? cuslice relies on it: it exchanges the pointers that come back.
//
//   lookups dump               a line for each function of functions.def: what is exported, what the look-up gave
//   lookups compare RAW OURS   judges two dumps, one without and one under cuslice
//   lookups unknown            functions that this driver exports and the list does not have
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "lab/hardware/driver.h"

using namespace cuslice::check;

namespace {

struct Row {
    const char *symbol, *name;
    int version;
    bool per_thread, hooked;
};
constexpr bool legacy = false, per_thread = true, pass = false, hook = true,
               checked = false;  // passes through, as nothing is cached here
constexpr Row kRows[] = {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) {#symbol, #name, version, stream, route},
#include "virtual_gpu/driver/functions.def"
};

/// "libcuda.so.580.95.05+0x1a2b30": comparable between processes, unlike the address.
std::string place_of(const void* address) {
    if (!address)
        return "null";
    Dl_info info{};
    if (!dladdr(address, &info))
        return "nowhere";
    const char* slash = std::strrchr(info.dli_fname, '/');
    std::ostringstream text;
    text << (slash ? slash + 1 : info.dli_fname) << "+0x" << std::hex
         << static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
    return text.str();
}

/// The version to ask with: a function's own, or for one that cudaTypedefs.h doesn't list, this toolkit's.
int version_of(const Row& row) { return row.version ? row.version : CUDA_VERSION; }

int dump() {
    MUST(cuInit, 0);
    for (const Row& row : kRows) {
        void* answer = nullptr;
        CUdriverProcAddressQueryResult status{};
        const CUresult result = CU(cuGetProcAddress_v2)(
            row.name, &answer, version_of(row),
            row.per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM,
            &status);
        std::printf("%s %s %d %d %s\n", row.symbol, place_of(find(row.symbol)).c_str(), static_cast<int>(result),
                    static_cast<int>(status), place_of(answer).c_str());
    }
    return 0;
}

struct Answer {
    std::string exported, result, status, looked_up;
};

std::map<std::string, Answer> read_dump(const char* file) {
    std::map<std::string, Answer> answers;
    std::ifstream stream(file);
    for (std::string symbol; stream >> symbol;) {
        Answer& answer = answers[symbol];
        stream >> answer.exported >> answer.result >> answer.status >> answer.looked_up;
    }
    return answers;
}

void print_list(const char* what, const std::set<std::string>& names) {
    if (names.empty())
        return;
    std::printf("\n%s:", what);
    for (const std::string& name : names)
        std::printf(" `%s`", name.c_str());
    std::printf("\n");
}

int compare(const char* raw_file, const char* ours_file) {
    auto raw = read_dump(raw_file), ours = read_dump(ours_file);
    int exported = 0, same = 0, hooks = 0, passed = 0;
    std::set<std::string> missing, elsewhere, unlike_status, not_hooked, not_the_drivers;
    for (const Row& row : kRows) {
        const Answer &a = raw[row.symbol], &b = ours[row.symbol];
        if (a.exported == "null") {
            missing.insert(row.symbol);
        } else {
            exported++;
            // A look-up with a version gives the form of that version; a function without one has only itself.
            (a.looked_up == a.exported ? same++ : (elsewhere.insert(row.symbol), 0));
        }
        if (a.result != b.result || a.status != b.status)
            unlike_status.insert(row.symbol);
        if (a.looked_up == "null")
            continue;
        if (row.hooked)
            (b.looked_up.rfind("libcuslice.so+", 0) == 0 ? hooks++ : (not_hooked.insert(row.symbol), 0));
        else
            (b.looked_up == a.looked_up ? passed++ : (not_the_drivers.insert(row.symbol), 0));
    }
    std::printf("| | |\n|---|---|\n| functions of the list | %zu |\n| exported by this driver | %d |\n",
                std::size(kRows), exported);
    std::printf("| of these, cuGetProcAddress gives the exported address | %d |\n", same);
    std::printf("| under cuslice: result and status as without | %zu of %zu |\n",
                std::size(kRows) - unlike_status.size(), std::size(kRows));
    std::printf("| hooked functions that come back as cuslice's | %d, %zu do not |\n", hooks, not_hooked.size());
    std::printf("| others that come back as the driver's own pointer | %d, %zu do not |\n", passed,
                not_the_drivers.size());
    print_list("Not exported by this driver", missing);
    print_list("Look-up gives another address than the export", elsewhere);
    print_list("Result or status differ under cuslice", unlike_status);
    print_list("Hooked, and **not** exchanged", not_hooked);
    print_list("Not hooked, and **not** the driver's own", not_the_drivers);
    return unlike_status.empty() && not_hooked.empty() && not_the_drivers.empty() ? 0 : 1;
}

/// The names in the library's dynamic symbol table, whose length only its hash table tells.
std::set<std::string> exported_names(const link_map* map) {
    const Elf64_Sym* symbols = nullptr;
    const char* strings = nullptr;
    const uint32_t *gnu = nullptr, *classic = nullptr;
    for (const Elf64_Dyn* entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols = reinterpret_cast<const Elf64_Sym*>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRTAB)
            strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_GNU_HASH)
            gnu = reinterpret_cast<const uint32_t*>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_HASH)
            classic = reinterpret_cast<const uint32_t*>(entry->d_un.d_ptr);
    }
    size_t count = classic ? classic[1] : 0;
    if (gnu && !classic) {
        const uint32_t *buckets = gnu + 4 + 2 * gnu[2], *chains = buckets + gnu[0];
        for (uint32_t i = 0; i < gnu[0]; i++)
            count = std::max<size_t>(count, buckets[i]);
        while (count >= gnu[1] && !(chains[count - gnu[1]] & 1))
            count++;
        count++;
    }
    std::set<std::string> names;
    for (size_t i = 0; i < count; i++) {
        const bool exported = symbols[i].st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbols[i].st_info) != STB_LOCAL;
        if (exported)
            names.insert(strings + symbols[i].st_name);
    }
    return names;
}

int unknown() {
    const link_map* map = nullptr;
    if (dlinfo(driver_library(), RTLD_DI_LINKMAP, &map) != 0)
        return 1;
    std::set<std::string> names;
    for (const std::string& name : exported_names(map))
        if (name.rfind("cu", 0) == 0 && name.rfind("cudbg", 0) != 0 && name.size() > 2 && name[2] >= 'A' &&
            name[2] <= 'Z')
            names.insert(name);
    const size_t all = names.size();
    for (const Row& row : kRows)
        names.erase(row.symbol);
    std::printf("The driver exports %zu functions `cu…`; %zu of them are not in cuslice's list.\n", all, names.size());
    print_list("Through cuGetProcAddress they reach programs as the driver's own; through dlsym they do not", names);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "dump")
        return dump();
    if (what == "compare" && argc == 4)
        return compare(argv[2], argv[3]);
    if (what == "unknown")
        return unknown();
    return std::fprintf(stderr, "lookups dump | compare RAW OURS | unknown\n"), 64;
}
