// SPDX-License-Identifier: Apache-2.0
// Gates before the functions that start work: which have one, and that a call comes through with all that it was given.
#include "shim/driver/gates.h"

#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "shim/driver/hook_map.h"
#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

const Variables kShared = {{"CUSLICE_SHARE", "50%"}};
constexpr CUresult kAnswer = CUDA_ERROR_ILLEGAL_STATE;  // which the driver gives to none of these

lease::Gate open_gate{lease::kOpen}, closed_gate{0};

bool has_gate(const FunctionRow& row) { return row.gated && row.route != Route::hook; }

/// An argument for this place: values differ from place to place, and in each byte of an integer.
template <typename T>
T value_at(size_t place) {
    static CUlaunchConfig config{.gridDimX = 1, .hStream = reinterpret_cast<CUstream>(0x7770)};
    if constexpr (std::is_same_v<T, const CUlaunchConfig*>)
        return &config;
    else if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<T>(0x5a5a'1000 + 0x10 * place);
    else
        return static_cast<T>(0x9182'7364'5546'3728 + 0x0101'0101'0101'0101 * place);
}

/// The driver's function, which notes what it is called with.
template <Function kFunction, typename Type>
struct Target;
template <Function kFunction, typename... Arguments>
struct Target<kFunction, CUresult(Arguments...)> {
    static inline std::tuple<Arguments...> given;
    static inline unsigned calls = 0;

    static CUresult CUDAAPI take(Arguments... arguments) {
        given = {arguments...};
        calls++;
        return kAnswer;
    }
    /// True if a call of the exported function comes through as it is.
    static bool comes_through(CUresult(CUDAAPI* exported)(Arguments...)) {
        return comes_through(exported, std::index_sequence_for<Arguments...>{});
    }

  private:
    template <size_t... i>
    static bool comes_through(CUresult(CUDAAPI* exported)(Arguments...), std::index_sequence<i...>) {
        const std::tuple<Arguments...> expected{value_at<Arguments>(i)...};
        given = {};
        calls = 0;
        return exported(value_at<Arguments>(i)...) == kAnswer && calls == 1 && given == expected;
    }
};

#define CASE_pass_free(symbol)
#define CASE_checked_free(symbol)
#define CASE_hook_free(symbol)
#define CASE_hook_gated(symbol)
#define CASE_pass_gated(symbol) GATED(symbol)
#define CASE_checked_gated(symbol) GATED(symbol)
#define TARGET(symbol) Target<Function::symbol, std::remove_pointer_t<decltype(&::symbol)>>

/// While it lives, all gated functions of the driver are targets.
struct Targets {
#define GATED(symbol) Instead instead_of_##symbol{Function::symbol, TARGET(symbol)::take};
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) CASE_##route##_##turn(symbol)
#include "virtual_gpu/driver/functions.def"
#undef GATED
};

/// Symbols of gated functions whose calls come through, each called while this is the process's gate; null: whatever
/// gate it has by then.
std::set<std::string> through(lease::Gate* gate) {
    std::set<std::string> came;
    const auto call = [&]<typename Target>(const char* symbol, auto* exported, Target*) {
        if (gate)
            cuslice_gate.store(gate);
        if (Target::comes_through(exported))
            came.insert(symbol);
    };
#define GATED(symbol) call(#symbol, &::symbol, static_cast<TARGET(symbol)*>(nullptr));
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) CASE_##route##_##turn(symbol)
#include "virtual_gpu/driver/functions.def"
#undef GATED
    return came;
}

std::set<std::string> all_with_gates() {
    std::set<std::string> all;
    for (const FunctionRow& row : kFunctionRows)
        if (has_gate(row))
            all.emplace(row.symbol);
    return all;
}

/// An address that is never followed.
void* at(uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

TEST_CASE("each gated function without a hook has a gate of its own, and all others have none") {
    std::set<void*> gates;
    for (size_t i = 0; i < kFunctionCount; i++) {
        CAPTURE(kFunctions[i].symbol);
        void* const behind = at(0x1000 + 0x10 * i);
        void* const gate = gate_before(static_cast<Function>(i), behind);
        CHECK((gate != behind) == has_gate(kFunctionRows[i]));
        if (gate != behind)
            CHECK(gates.insert(gate).second);
    }
    CHECK(gates.size() == all_with_gates().size());
    CHECK(gates.size() > 30);
}

TEST_CASE("an open gate hands each function all that it was given") {
    const Within within(kShared);
    if (!within)
        return;
    const Targets targets;
    CHECK(through(&open_gate) == all_with_gates());
    CHECK_FALSE(process().turns().has_started());
}

TEST_CASE("a closed gate, too, once it is the job's turn") {
    const Within within(kShared);
    if (!within)
        return;
    Within::use(0);
    const Targets targets;
    closed_gate.word = GENERATE(uint64_t{0}, uint64_t{lease::kWanted}, lease::kOpen | lease::kCompany,
                                lease::kOpen | lease::kWanted | lease::kCompany);
    CHECK(through(&closed_gate) == all_with_gates());
    CHECK(process().turns().has_started());
}

TEST_CASE("the first launch of a process enters the lease, and finds its gate open") {
    const Within within(kShared);
    if (!within)
        return;
    Within::use(0);
    const Targets targets;
    CHECK_FALSE(lease::is_open(cuslice_gate.load()->word));
    CHECK(through(nullptr) == all_with_gates());
    CHECK(process().turns().has_started());
    CHECK(goes_on_at_once());
}

TEST_CASE("without a share exported functions lead to the driver, and no lease is entered") {
    const Within within;
    if (!within)
        return;
    const Targets targets;
    CHECK(through(nullptr) == all_with_gates());
    CHECK_FALSE(process().turns().has_started());
}

TEST_CASE("where time is shared the functions that are gated are ours, too") {
    const Within within(kShared);
    if (!within)
        return;
    for (size_t i = 0; i < kFunctionCount; i++) {
        const FunctionRow& row = kFunctionRows[i];
        const void* const real = driver_slot(static_cast<Function>(i));
        CAPTURE(kFunctions[i].symbol);
        if (real)
            CHECK((hook_map().hook_for(real) != nullptr) == (row.gated || row.route == Route::hook));
    }
}

TEST_CASE("a launch in a form that isn't listed is unknown, and what starts nothing is not") {
    const Within within;
    if (!within)
        return;
    CHECK_FALSE(is_unknown_launch("cuLaunchKernel", driver_slot(Function::cuLaunchKernel)));
    CHECK_FALSE(is_unknown_launch("cuLaunchKernel", driver_slot(Function::cuLaunchKernel_ptsz)));
    CHECK_FALSE(is_unknown_launch("cuLaunchHostFunc", driver_slot(Function::cuLaunchHostFunc)));
    for (const char* const name : {"cuLaunchKernel", "cuLaunchOfTheFuture", "cuGraphLaunch", "cuMemsetD8"})
        CHECK(is_unknown_launch(name, at(0x7770)));
    for (const char* const name : {"cuMemcpy", "cuGraphAddNode", "cuStreamSynchronize", ""})
        CHECK_FALSE(is_unknown_launch(name, at(0x7770)));
    CHECK_FALSE(is_unknown_launch(nullptr, at(0x7770)));
}
