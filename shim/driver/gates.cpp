// SPDX-License-Identifier: Apache-2.0
// Calls at a gate that isn't open, or where others wait.
#include "shim/driver/gates.h"

#include <cstring>

#include "shim/driver/copy_gpus.h"
#include "shim/driver/hook_map.h"

namespace cuslice {

namespace {

// Each function's number among those that have a gate of their own, from 1 on; 0: it has none. And how many have.
struct GateNumbers {
    uint8_t of[kFunctionCount] = {}, count = 0;
};
constexpr GateNumbers kGates = [] {
    GateNumbers gates;
    for (size_t i = 0; i < kFunctionCount; i++)
        if (kFunctionRows[i].gated && kFunctionRows[i].route != Route::hook)
            gates.of[i] = ++gates.count;
    return gates;
}();

// A launch by a configuration has its stream in there.
template <Function kFunction, typename... Arguments>
CUstream stream_of(Arguments... arguments) {
    CUstream stream = stream_among(arguments...);
    const auto look = [&](auto argument) {
        if constexpr (std::is_same_v<decltype(argument), const CUlaunchConfig*>)
            stream = argument ? argument->hStream : nullptr;
    };
    (look(arguments), ...);
    return meant_by<kFunction>(stream);
}

}  // namespace

extern "C" {
// The next place behind each gate.
__attribute__((visibility("hidden"))) void* cuslice_behind_gates[kGates.count] = {};
}

namespace {

template <Function kFunction, typename... Arguments>
CUresult CUDAAPI at_closed_gate(Arguments... arguments) {
    const GatedLaunch turn(stream_of<kFunction>(arguments...));
    constexpr size_t number = kGates.of[static_cast<size_t>(kFunction)] - 1;
    void* const behind = __atomic_load_n(&cuslice_behind_gates[number], __ATOMIC_ACQUIRE);
    return reinterpret_cast<CUresult(CUDAAPI*)(Arguments...)>(behind)(arguments...);
}

template <Function kFunction, typename... Arguments>
constexpr auto closed_gate_of(CUresult(CUDAAPI*)(Arguments...)) {
    return &at_closed_gate<kFunction, Arguments...>;
}

}  // namespace

#define CUSLICE_GATES_free(route, symbol)
#define CUSLICE_GATES_gated(route, symbol) CUSLICE_GATE_##route(symbol)
#define CUSLICE_GATE_hook(symbol)
#define CUSLICE_GATE_checked(symbol) CUSLICE_GATE_pass(symbol)

extern "C" {
#define CUSLICE_GATE_pass(symbol) __attribute__((visibility("hidden"))) void cuslice_gate_of_##symbol();
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) CUSLICE_GATES_##turn(route, symbol)
#include "virtual_gpu/driver/functions.def"
#undef CUSLICE_GATE_pass

// Targets of gates that aren't open.
extern __attribute__((visibility("hidden"))) void* const cuslice_closed_gates[kGates.count];
#define CUSLICE_GATE_pass(symbol) \
    reinterpret_cast<void*>(closed_gate_of<Function::symbol>(static_cast<decltype(&::symbol)>(nullptr))),
void* const cuslice_closed_gates[kGates.count] = {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) CUSLICE_GATES_##turn(route, symbol)
#include "virtual_gpu/driver/functions.def"
};
#undef CUSLICE_GATE_pass
}

void* gate_before(Function function, void* behind) {
    static void* const gates[] = {
#define CUSLICE_GATE_pass(symbol) reinterpret_cast<void*>(&cuslice_gate_of_##symbol),
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) CUSLICE_GATES_##turn(route, symbol)
#include "virtual_gpu/driver/functions.def"
    };
    const size_t number = kGates.of[static_cast<size_t>(function)];
    if (number == 0)
        return behind;
    __atomic_store_n(&cuslice_behind_gates[number - 1], behind, __ATOMIC_RELEASE);
    return gates[number - 1];
}

bool GatedLaunch::is_captured(CUstream stream) {
    if (process().caches().captures().none_known())
        return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUSLICE_REAL(cuStreamIsCapturing)(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void GatedLaunch::begin() {
    Turns& turns = process().turns();
    if (!turns.has_started()) {
        const HookEntry entry;  // what is asked in here is no call of the program's
        process().current();
        turns.start();
    }
    turns.await_turn();
    waited_ = true;
}

bool is_unknown_launch(const char* name, const void* real) {
    if (!name || HookMap::is_listed_form(name, real))
        return false;
    for (const char* const begins : {"cuLaunch", "cuGraphLaunch", "cuMemset"})
        if (std::strncmp(name, begins, std::strlen(begins)) == 0)
            return true;
    return false;
}

}  // namespace cuslice
