// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "config/text.h"
#include "shim/redirect/symbol_table.h"

namespace cuslice {

// A function of a static runtime, and the one that is to be called in its place.
struct Redirection {
    uintptr_t from = 0;
    void* to = nullptr;
    const char* name = nullptr;  // of the symbol table
    bool lacking = false;        // `to` stands for all that the runtime lacks, and is to be told the name
};

// NVIDIA's runtime in a program or library, by the names in its symbol table.
struct StaticRuntime {
    bool there = false;
    int major = 0;  // 12 or 13; 0: another one
};
StaticRuntime static_runtime_of(const SymbolTable& symbols);

// A shared runtime's functions.
struct SharedRuntime {
    const char* path;
    // The address of a function that it exports, or of the one that stands before it; null if it has none of this name.
    void* (*find)(const char* name, void* argument);
    void* argument;
    // To be called with the name in place of a function that it lacks. Null: then it can't stand in. Only the fake
    // GPU's runtime has one: what it lacks it refuses by name.
    void* lacking = nullptr;
};

// The name under which the fake GPU's runtime exports what to call in place of a function that it lacks.
inline constexpr char kLacking[] = "cuslice_lacks";

// Bytes that a jump takes at the beginning of a function.
#if defined(__x86_64__)
inline constexpr size_t kJumpBytes = 5;
#else
inline constexpr size_t kJumpBytes = 4;
#endif

// All of a static runtime's functions, each with its target; or none and why.
class RedirectPlan {
  public:
    // Runtimes have some 430 functions.
    static constexpr size_t kMost = 1024;

    bool make(const SymbolTable& symbols, const SharedRuntime& runtime, Reason& why);
    std::span<const Redirection> all() const { return {all_, count_}; }

  private:
    bool collect(const SymbolTable& symbols, const SharedRuntime& runtime, Reason& why);
    bool complete(const SymbolTable& symbols, const SharedRuntime& runtime, Reason& why);
    bool add(const SymbolTable& symbols, const Elf64_Sym& symbol, void* target, Reason& why);
    bool is_unambiguous(Reason& why);
    bool has_room(const SymbolTable& symbols, Reason& why) const;

    Redirection all_[kMost];
    size_t size_of_[kMost]{};  // in the order of all_, as long as they are collected
    size_t count_ = 0;
    // Addresses of the runtime's functions, from the first public one on. What lies before may be the program's:
    // linkers put code that is seldom run together, of all objects.
    uintptr_t first_ = 0, last_ = 0;
};

}  // namespace cuslice
