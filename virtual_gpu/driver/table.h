#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "virtual_gpu/driver/cuda_api.h"
#include "virtual_gpu/driver/names.h"

namespace cuslice {

// The driver's functions as an index into the table below, e.g. Function::cuMemAlloc_v2.
enum class Function : std::uint16_t {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route) symbol,
#include "virtual_gpu/driver/functions.def"
#undef CUSLICE_FUNCTION
};

inline constexpr std::size_t kFunctionCount = 0
#define CUSLICE_FUNCTION(symbol, name, version, stream, route) +1
#include "virtual_gpu/driver/functions.def"
#undef CUSLICE_FUNCTION
    ;

struct FunctionInfo {
    const char* symbol;
    const char* name;  // without version and stream suffix, as cuGetProcAddress takes it
};

inline constexpr auto kFunctionSymbols = names<kFunctionCount>(
#define CUSLICE_FUNCTION(symbol, name, version, stream, route) #symbol "\0"
#include "virtual_gpu/driver/functions.def"
#undef CUSLICE_FUNCTION
);
inline constexpr auto kFunctionNames = names<kFunctionCount>(
#define CUSLICE_FUNCTION(symbol, name, version, stream, route) #name "\0"
#include "virtual_gpu/driver/functions.def"
#undef CUSLICE_FUNCTION
);

struct FunctionList {
    FunctionInfo operator[](std::size_t i) const { return {kFunctionSymbols[i], kFunctionNames[i]}; }
};
inline constexpr FunctionList kFunctions;

// The real driver's addresses; null where it lacks the function, and everywhere until a driver is loaded. The exported
// stubs (shim/driver/stubs_x86_64.S) jump through the same table, hence the plain name.
extern "C" void* cuslice_driver_slots[kFunctionCount];

inline void* driver_slot(Function function) { return cuslice_driver_slots[static_cast<std::size_t>(function)]; }

// Set for good once the settings are refused: from then on a loaded driver is as good as none.
inline constinit std::atomic<bool> driver_refused{false};

// What a function answers that the loaded driver does not have, and what every function answers without a driver.
inline CUresult unavailable() {
    const bool started = driver_slot(Function::cuInit) && !driver_refused.load(std::memory_order_relaxed);
    return started ? CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER : CUDA_ERROR_NOT_INITIALIZED;
}

namespace detail {

template <typename... Arguments>
struct RealFunction {
    using Pointer = CUresult(CUDAAPI*)(Arguments...);
    Function function;

    CUresult operator()(Arguments... arguments) const {
        const auto call = reinterpret_cast<Pointer>(driver_slot(function));
        return call ? call(arguments...) : unavailable();
    }
};

template <typename... Arguments>
constexpr RealFunction<Arguments...> real_function(CUresult(CUDAAPI*)(Arguments...), Function function) {
    return {function};
}

}  // namespace detail

}  // namespace cuslice

// CUSLICE_REAL(cuMemAlloc_v2)(&pointer, bytes): the real driver's function, with the type that cuda.h gives it.
#define CUSLICE_REAL(symbol) \
    (::cuslice::detail::real_function(static_cast<decltype(&::symbol)>(nullptr), ::cuslice::Function::symbol))
