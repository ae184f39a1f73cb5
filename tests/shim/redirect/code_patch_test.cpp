// SPDX-License-Identifier: Apache-2.0
// Jumps in this program's own code, in a child process.
#include "shim/redirect/code_patch.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/refused_calls.h"
#include "tests/skip.h"

extern "C" {
int redirect_test_symbol() { return 4; }
// As NVIDIA's runtime names what it keeps to itself: of a file without such a name no table is copied.
int libcudart_static_test() { return 5; }
}

namespace cuslice {

namespace {

// Never inlined, and the compiler doesn't know their answers. Two begin pages, with one between them.
[[gnu::noinline, gnu::aligned(4096)]] int first() {
    int answer = 1;
    asm volatile("" : "+r"(answer));
    return answer;
}
[[gnu::noinline, gnu::aligned(4096)]] int between() {
    int answer = 4;
    asm volatile("" : "+r"(answer));
    return answer;
}
[[gnu::noinline, gnu::aligned(4096)]] int second() {
    int answer = 2;
    asm volatile("" : "+r"(answer));
    return answer;
}
[[gnu::noinline]] int other() {
    int answer = 3;
    asm volatile("" : "+r"(answer));
    return answer;
}
[[gnu::noinline]] int shared() {
    int answer = 10;
    asm volatile("" : "+r"(answer));
    return answer;
}

[[gnu::noinline]] int told(const char* name) { return std::strcmp(name, "first") == 0 ? 20 : 30; }

template <typename Function>
uintptr_t address_of(Function* function) {
    return reinterpret_cast<uintptr_t>(function);
}

void* target() { return reinterpret_cast<void*>(shared); }

// True if `act` answers so in a child process, whose code nobody else runs.
bool in_child(bool (*act)()) {
    const pid_t child = fork();
    if (child == 0)
        _exit(act() ? 0 : 1);
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool redirect_both(Reason& why) {
    ObjectSymbols symbols;
    if (symbols.read_program() != ObjectSymbols::Found::table)
        return false;
    Redirection both[] = {{address_of(first), target(), "first"}, {address_of(second), target(), "second"}};
    if (both[1].from < both[0].from)
        std::swap(both[0], both[1]);
    Veneers veneers;
    return redirect(symbols, both, nullptr, veneers, why);
}

bool is_as_it_was() {
    ObjectSymbols symbols;
    symbols.read_program();
    char code[64];
    const uintptr_t places[] = {address_of(first), address_of(second)};
    for (const uintptr_t place : places) {
        const auto at = static_cast<off_t>(symbols.offset_of(place));
        if (pread(symbols.file(), code, sizeof code, at) != sizeof code ||
            std::memcmp(code, reinterpret_cast<const void*>(place), sizeof code) != 0)
            return false;
    }
    return first() == 1 && second() == 2 && other() == 3;
}

}  // namespace

TEST_CASE("the functions lead to their targets, and those beside them are as they were") {
    CHECK(in_child([] {
        Reason why;
        return redirect_both(why) && first() == 10 && second() == 10 && other() == 3 && between() == 4;
    }));
}

TEST_CASE("a target that is to be told the name gets it") {
    CHECK(in_child([] {
        Reason why;
        ObjectSymbols symbols;
        const Redirection one[] = {{address_of(first), reinterpret_cast<void*>(told), "first", true}};
        Veneers veneers;
        return symbols.read_program() == ObjectSymbols::Found::table && redirect(symbols, one, nullptr, veneers, why) &&
               first() == 20 && second() == 2;
    }));
}

TEST_CASE("where the kernel lets nobody change code, or run what was changed, all is as before") {
    if (!tests::can_filter_calls())
        return tests::skip("calls can't be filtered here");
#ifdef __SANITIZE_THREAD__
    return tests::skip("ThreadSanitizer ends a program that maps code anew");
#endif
    // mprotect(2): what makes code writable, and what makes it code again. The argument at place 2 is the protection.
    CHECK(in_child([] {
        Reason why;
        const bool filtered =
            tests::refuse_commands(SYS_mprotect, 2, PROT_READ | PROT_EXEC, PROT_READ | PROT_EXEC, EACCES);
        return filtered && !redirect_both(why) && is_as_it_was() && !why.empty();
    }));
    CHECK(in_child([] {
        Reason why;
        const bool filtered =
            tests::refuse_commands(SYS_mprotect, 2, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, EACCES);
        return filtered && !redirect_both(why) && is_as_it_was() &&
               why.view() == "the kernel lets nobody change its code (Permission denied)";
    }));
    // The page that comes last: by then the other one has been changed.
    CHECK(in_child([] {
        Reason why;
        const auto last = static_cast<unsigned>(std::max(address_of(first), address_of(second)));
        const bool filtered = tests::refuse_commands(SYS_mprotect, 0, last, last, EACCES);
        return filtered && !redirect_both(why) && is_as_it_was() && !why.empty();
    }));
}

TEST_CASE("this program's symbols are where its functions are") {
    ObjectSymbols symbols;
    REQUIRE(symbols.read_program() == ObjectSymbols::Found::table);
    const SymbolTable& table = symbols.table();
    bool found = false;
    for (const Elf64_Sym& symbol : table.all)
        found |= table.address_of(symbol) == address_of(redirect_test_symbol) &&
                 std::string(table.name_of(symbol)) == "redirect_test_symbol";
    CHECK(found);
    CHECK(table.code.holds(address_of(first), kJumpBytes));
    CHECK_FALSE(symbols.has_device_code());
    CHECK_FALSE(symbols.shares_runtime());
}

}  // namespace cuslice
