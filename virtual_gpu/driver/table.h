// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "virtual_gpu/driver/cuda_api.h"
#include "virtual_gpu/driver/names.h"

namespace cuslice {

// The driver's functions as an index into the table below, e.g. Function::cuMemAlloc_v2.
enum class Function : uint16_t {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) symbol,
#include "virtual_gpu/driver/functions.def"
};

// Properties of a function in the list.
enum class Route : uint8_t { pass, hook, checked };
struct FunctionRow {
    std::string_view symbol;
    std::string_view name;  // without version and stream suffix, as cuGetProcAddress takes it
    int version = 0;
    bool per_thread = false;
    Route route = Route::pass;
    bool gated = false;  // it waits for its job's turn
};

// For what is worked out when this is compiled. Whoever needs a part of it at run time makes a table of that.
inline constexpr auto kFunctionRows = [] {
    using enum Route;
    constexpr bool legacy = false, per_thread = true, free = false, gated = true;
    return std::to_array<FunctionRow>({
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) \
    {#symbol, #name, version, stream, route, turn},
#include "virtual_gpu/driver/functions.def"
    });
}();
inline constexpr size_t kFunctionCount = kFunctionRows.size();

// A table of what `of` makes of each row.
template <typename Of>
consteval auto table_of_functions(Of of) {
    std::array<decltype(of(FunctionRow{})), kFunctionCount> all{};
    for (size_t i = 0; i < kFunctionCount; i++)
        all[i] = of(kFunctionRows[i]);
    return all;
}

// The functions whose rows are so, in the list's order.
template <auto kIs>
consteval auto functions_where() {
    constexpr auto count = [] {
        size_t all = 0;
        for (const FunctionRow& row : kFunctionRows)
            all += kIs(row);
        return all;
    }();
    std::array<Function, count> found{};
    size_t next = 0;
    for (size_t i = 0; i < kFunctionCount; i++)
        if (kIs(kFunctionRows[i]))
            found[next++] = static_cast<Function>(i);
    return found;
}
template <Route kRoute>
consteval auto functions_of_route() {
    return functions_where<[](const FunctionRow& row) { return row.route == kRoute; }>();
}

struct FunctionInfo {
    const char* symbol;
    const char* name;
};

inline constexpr auto kFunctionSymbols =
    names<[] { return table_of_functions([](const FunctionRow& row) { return row.symbol; }); }>();
inline constexpr auto kFunctionNames =
    names<[] { return table_of_functions([](const FunctionRow& row) { return row.name; }); }>();

struct FunctionList {
    FunctionInfo operator[](size_t i) const { return {kFunctionSymbols[i], kFunctionNames[i]}; }
};
inline constexpr FunctionList kFunctions;

// The real driver's addresses, as far as they have been asked for: a process calls a few dozen of these functions. The
// exported stubs (shim/driver/stubs.S) jump through the same table, hence the plain name.
extern "C" void* cuslice_driver_slots[kFunctionCount];

class LoadedObject;

// From now on functions are looked up in this object. Once, and by one thread.
void open_driver_table(const LoadedObject& driver);

// Looks the function up in the loaded driver and fills its slot. Null where the driver lacks it, and until there is
// one. Takes no lock, and is right in a forked child and in any number of threads.
void* look_up_driver_function(size_t function);

// The slot's value so far: null until the function has been looked up. Another thread may be filling it.
inline void* filled_driver_slot(size_t function) {
    return __atomic_load_n(&cuslice_driver_slots[function], __ATOMIC_ACQUIRE);
}
inline void* driver_slot(size_t function) {
    void* const known = filled_driver_slot(function);
    return known ? known : look_up_driver_function(function);
}
inline void* driver_slot(Function function) { return driver_slot(static_cast<size_t>(function)); }

// Set for good once the settings are refused: from then on a loaded driver is as good as none.
inline constinit std::atomic<bool> driver_refused{false};

// The answer of a function that the loaded driver does not have, and of every function without a driver. Out of line:
// inlined, it costs every hook two instructions to save a register.
[[gnu::cold, gnu::noinline]] inline CUresult unavailable() {
    const bool started = driver_slot(Function::cuInit) && !driver_refused.load(std::memory_order_relaxed);
    return started ? CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER : CUDA_ERROR_NOT_INITIALIZED;
}

namespace detail {

template <Function kFunction, typename... Arguments>
struct RealFunction {
    static constexpr Function function = kFunction;

    CUresult operator()(Arguments... arguments) const {
        const auto call = reinterpret_cast<CUresult(CUDAAPI*)(Arguments...)>(driver_slot(kFunction));
        return call ? call(arguments...) : unavailable();
    }
    /// The same where the function is known to have been looked up, and to be there.
    CUresult filled(Arguments... arguments) const {
        const auto slot = static_cast<size_t>(kFunction);
        return reinterpret_cast<CUresult(CUDAAPI*)(Arguments...)>(filled_driver_slot(slot))(arguments...);
    }
};

template <Function kFunction, typename... Arguments>
constexpr RealFunction<kFunction, Arguments...> real_function(CUresult(CUDAAPI*)(Arguments...)) {
    return {};
}

}  // namespace detail

}  // namespace cuslice

// CUSLICE_REAL(cuMemAlloc_v2)(&pointer, bytes): the real driver's function, with the type that cuda.h gives it.
// CUSLICE_REAL(cuMemAlloc_v2).function is Function::cuMemAlloc_v2.
#define CUSLICE_REAL(symbol) \
    (::cuslice::detail::real_function<::cuslice::Function::symbol>(static_cast<decltype(&::symbol)>(nullptr)))
