// SPDX-License-Identifier: Apache-2.0
// Jumps in this program's own code, in child processes, whose targets are found at the first call.
#include "shim/redirect/late_binding.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "shim/redirect/code_patch.h"
#include "tests/catch.h"

namespace cuslice {

namespace {

const std::string kRuntime = CUSLICE_TEST_LATE_RUNTIME;

struct Large {
    long values[5];
};

// As tests/shim/redirect/late_runtime.c has them. The compiler doesn't know their answers.
[[gnu::noinline]] long many(int, long, const char*, long, unsigned, short, double, float, double, double, double,
                            double, double, double, Large, int) {
    long answer = -1;
    asm volatile("" : "+r"(answer));
    return answer;
}
[[gnu::noinline]] Large large(long) {
    long answer = -2;
    asm volatile("" : "+r"(answer));
    return {{answer}};
}
[[gnu::noinline]] const char* error_name(int) {
    const char* answer = "none";
    asm volatile("" : "+r"(answer));
    return answer;
}

template <typename Function>
uintptr_t address_of(Function* function) {
    return reinterpret_cast<uintptr_t>(function);
}

long call_many() { return many(1, 2, "3", 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, {{0, 0, 0, 0, 15}}, 16); }

bool lead_away(const std::string& runtime, std::vector<Redirection> all) {
    std::ranges::sort(all, {}, &Redirection::from);
    ObjectSymbols symbols;
    const LateBinding late{reinterpret_cast<const void*>(cuslice_redirect_first_call), "the test", runtime.c_str(), 99};
    Veneers veneers;
    Reason why;
    return symbols.read_program() == ObjectSymbols::Found::table && redirect(symbols, all, &late, veneers, why);
}

// ThreadSanitizer doesn't know the loader's lock, under which one thread loads what the others then find.
void load_for_sanitizer() {
#ifdef __SANITIZE_THREAD__
    dlopen(kRuntime.c_str(), RTLD_LAZY);
#endif
}

std::vector<Redirection> both() {
    return {{address_of(many), nullptr, "cudaMany"}, {address_of(large), nullptr, "cudaLarge"}};
}

// True if `act` answers so in a child process, whose code nobody else runs. `said`: what it writes to stderr.
bool in_child(bool (*act)(), std::string* said = nullptr) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        _exit(act() ? 0 : 1);
    }
    close(ends[1]);
    char text[4096];
    for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;)
        if (said)
            said->append(text, static_cast<size_t>(got));
    close(ends[0]);
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("the first call finds its target and keeps all its arguments, as later ones do") {
    CHECK(in_child([] {
        if (!lead_away(kRuntime, both()) || call_many() != 1616 || call_many() != 1616)
            return false;
        const Large got = large(77);
        return got.values[0] == 1 && got.values[4] == 77;
    }));
}

TEST_CASE("threads that make the first call at once all find the target") {
    CHECK(in_child([] {
        load_for_sanitizer();
        if (!lead_away(kRuntime, both()))
            return false;
        int right[8] = {};
        std::vector<std::thread> threads;
        for (int& one : right)
            threads.emplace_back([&one] { one = call_many() == 1616; });
        for (std::thread& thread : threads)
            thread.join();
        return std::ranges::count(right, 1) == 8;
    }));
}

TEST_CASE("where the runtime is gone the calls fail with an error of CUDA's, and one line says so") {
    std::string said;
    CHECK(in_child(
        [] {
            const bool led =
                lead_away("/nowhere/libcudart.so.99", {{address_of(many), nullptr, "cudaMany"},
                                                       {address_of(large), nullptr, "cudaCreateChannelDesc"},
                                                       {address_of(error_name), nullptr, "cudaGetErrorName"}});
            if (!led || call_many() != 303 || call_many() != 303)
                return false;
            const Large none = large(77);
            return none.values[0] == 0 && std::string(error_name(303)) == "cudaErrorSharedObjectInitFailed";
        },
        &said));
    CHECK(said ==
          "cuslice: --redirect-runtime: the test: /nowhere/libcudart.so.99 can't be loaded: its calls fail with "
          "cudaErrorSharedObjectInitFailed\n");
}

TEST_CASE("a runtime that lacks a function that it had before stands in for none") {
    std::string said;
    CHECK(in_child(
        [] {
            return lead_away(kRuntime,
                             {{address_of(many), nullptr, "cudaMany"}, {address_of(large), nullptr, "cudaGone"}}) &&
                   call_many() == 303;
        },
        &said));
    CHECK(said.find("can't be loaded") != said.npos);
}

}  // namespace cuslice
