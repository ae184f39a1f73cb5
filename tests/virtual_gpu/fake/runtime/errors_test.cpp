// Names and texts of errors, and the last error of a thread.

#include "tests/virtual_gpu/fake/runtime/scenario.h"

using namespace cuslice::tests;

SCENARIO_IN_CHILD("every error has the name that its enumerator has") {
#define CUSLICE_CUDART_ERROR(name, text)                     \
    CHECK(std::string(RT(cudaGetErrorName)(name)) == #name); \
    CHECK(std::string(RT(cudaGetErrorString)(name)) == text);
#include "virtual_gpu/fake/runtime/errors.def"
#undef CUSLICE_CUDART_ERROR
    CHECK(std::string(RT(cudaGetErrorString)(cudaErrorMemoryAllocation)) == "out of memory");
    CHECK(std::string(RT(cudaGetErrorName)(static_cast<cudaError_t>(11))) == "unrecognized error code");
    CHECK(std::string(RT(cudaGetErrorString)(static_cast<cudaError_t>(-1))) == "unrecognized error code");
}

SCENARIO_IN_CHILD("the last error stays until it is asked for") {
    void* pointer = nullptr;
    CHECK(RT(cudaGetLastError)() == cudaSuccess);
    CHECK(RT(cudaSetDevice)(99) == cudaErrorInvalidDevice);
    CHECK(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    CHECK(RT(cudaPeekAtLastError)() == cudaErrorInvalidDevice);
    CHECK(RT(cudaGetLastError)() == cudaErrorInvalidDevice);
    CHECK(RT(cudaGetLastError)() == cudaSuccess);
    CHECK(RT(cudaMemcpy)(pointer, &pointer, 8, static_cast<cudaMemcpyKind>(7)) == cudaErrorInvalidMemcpyDirection);
    CHECK(RT(cudaGetLastError)() == cudaErrorInvalidMemcpyDirection);
}
