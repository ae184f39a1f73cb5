// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/plan.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace cuslice {

namespace {

bool is_function(const Elf64_Sym& symbol) {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
}

// As NVIDIA's runtime spells its public functions, and programs few of theirs. C++ names begin otherwise.
bool is_spelled_public(std::string_view name) {
    if (name.starts_with("__"))
        name.remove_prefix(2);
    return name.starts_with("cuda") && name.size() > 4;
}

bool is_spelled_private(std::string_view name) { return name.starts_with(kPrivateNames); }

}  // namespace

// By functions that one major version alone has (the headers of CUDA 12.0 to 13.0). An older runtime has the first name
// and neither of the others. A newer one would have the last, and names besides that no shared runtime here has.
// Others than NVIDIA's runtime have its public names as well: tools that stand before it, and stand-ins of tests.
StaticRuntime static_runtime_of(const SymbolTable& symbols) {
    bool named = false, nvidias = false, only_12 = false, from_13 = false;
    for (const Elf64_Sym& symbol : symbols.all) {
        if (!is_function(symbol))
            continue;
        const std::string_view name = symbols.name_of(symbol);
        named |= name == "cudaGetDeviceCount";
        nvidias |= is_spelled_private(name);
        only_12 |= name == "cudaGetDeviceProperties_v2";
        from_13 |= name == "cudaMemGetDefaultMemPool";
    }
    const bool there = named && nvidias;
    if (only_12 == from_13)
        return {there, 0};
    return {there, only_12 ? 12 : 13};
}

bool RedirectPlan::make(const SymbolTable& symbols, const SharedRuntime& runtime, Reason& why) {
    count_ = 0;
    const bool good = collect(symbols, runtime, why) && complete(symbols, runtime, why) && has_room(symbols, why) &&
                      is_unambiguous(why);
    if (!good)
        count_ = 0;
    return good;
}

bool RedirectPlan::add(const SymbolTable& symbols, const Elf64_Sym& symbol, void* target, Reason& why) {
    const char* const name = symbols.name_of(symbol);
    const uintptr_t address = symbols.address_of(symbol);
    if (!symbols.code.holds(address, kJumpBytes)) {
        why.assign("its symbol table has ", name, " outside its code");
        return false;
    }
    if (count_ == kMost) {
        why.assign("its symbol table has more functions of a runtime than any version has");
        return false;
    }
    size_of_[count_] = symbol.st_size;
    all_[count_++] = {address, target, name};
    return true;
}

// The functions that the shared runtime has.
bool RedirectPlan::collect(const SymbolTable& symbols, const SharedRuntime& runtime, Reason& why) {
    first_ = ~uintptr_t{0};
    last_ = 0;
    for (const Elf64_Sym& symbol : symbols.all) {
        if (!is_function(symbol))
            continue;
        const char* const name = symbols.name_of(symbol);
        void* const target = is_spelled_public(name) ? runtime.find(name, runtime.argument) : nullptr;
        if (target && !add(symbols, symbol, target, why))
            return false;
        if (target)
            first_ = std::min(first_, symbols.address_of(symbol));
        if (target || is_spelled_private(name))
            last_ = std::max(last_, symbols.address_of(symbol));
    }
    if (count_ == 0)
        why.assign("its runtime has no function of ", runtime.path);
    return count_ != 0;
}

// The others. The linker puts a static runtime's functions beside each other: what is spelled like one of them
// elsewhere is the program's own, such as __cudaRegisterLinkedBinary_*.
bool RedirectPlan::complete(const SymbolTable& symbols, const SharedRuntime& runtime, Reason& why) {
    for (const Elf64_Sym& symbol : symbols.all) {
        const char* const name = symbols.name_of(symbol);
        const uintptr_t address = symbols.address_of(symbol);
        const bool among = address >= first_ && address <= last_ && symbol.st_shndx != SHN_UNDEF;
        if (!among || !is_spelled_public(name))
            continue;
        if (!is_function(symbol)) {
            why.assign("its ", name, " is no function like others");
            return false;
        }
        if (runtime.find(name, runtime.argument))
            continue;
        if (!runtime.lacking) {
            why.assign("its runtime has ", name, ", which ", runtime.path,
                       " lacks: name a newer one of the same major version with --runtime FILE");
            return false;
        }
        if (!add(symbols, symbol, runtime.lacking, why))
            return false;
        all_[count_ - 1].lacking = true;
    }
    return true;
}

// A function may be shorter than the jump, as long as what comes behind it is nobody's.
bool RedirectPlan::has_room(const SymbolTable& symbols, Reason& why) const {
    for (size_t i = 0; i < count_; i++) {
        const Redirection& one = all_[i];
        if (size_of_[i] >= kJumpBytes)
            continue;
        const auto is_in_the_way = [&](const Elf64_Sym& symbol) {
            const uintptr_t address = symbols.address_of(symbol);
            return symbol.st_shndx != SHN_UNDEF && address > one.from && address < one.from + kJumpBytes;
        };
        if (std::none_of(symbols.all.begin(), symbols.all.end(), is_in_the_way))
            continue;
        why.assign("its ", one.name, " is too short to be led elsewhere");
        return false;
    }
    return true;
}

// Leaves them in the order of their addresses, each once.
bool RedirectPlan::is_unambiguous(Reason& why) {
    const auto end = all_ + count_;
    std::sort(all_, end, [](const Redirection& a, const Redirection& b) { return std::strcmp(a.name, b.name) < 0; });
    const auto twice = std::adjacent_find(
        all_, end, [](const Redirection& a, const Redirection& b) { return std::strcmp(a.name, b.name) == 0; });
    if (twice != end) {
        why.assign("it has ", twice->name, " twice");
        return false;
    }
    std::sort(all_, end, [](const Redirection& a, const Redirection& b) { return a.from < b.from; });
    const auto overlapping = std::adjacent_find(
        all_, end, [](const Redirection& a, const Redirection& b) { return b.from - a.from < kJumpBytes; });
    if (overlapping != end) {
        why.assign("its ", overlapping[0].name, " and ", overlapping[1].name, " lie at one place");
        return false;
    }
    return true;
}

}  // namespace cuslice
