// SPDX-License-Identifier: Apache-2.0
// Variables on the device.

#include <cstddef>

#include "tests/fake/runtime/registered.h"

using namespace cuslice::tests;

SCENARIO_IN_CHILD("a variable has the size it was registered with and memory on each device") {
    Registered code;
    size_t bytes = 0;
    void* first = nullptr;
    void* second = nullptr;
    CHECK(RT(cudaGetSymbolSize)(&bytes, &code.counter) == cudaSuccess);
    CHECK(bytes == 16);
    REQUIRE(RT(cudaGetSymbolAddress)(&first, &code.counter) == cudaSuccess);
    REQUIRE(RT(cudaSetDevice)(1) == cudaSuccess);
    REQUIRE(RT(cudaGetSymbolAddress)(&second, &code.counter) == cudaSuccess);
    CHECK(first != second);
    REQUIRE(RT(cudaSetDevice)(0) == cudaSuccess);
    void* again = nullptr;
    REQUIRE(RT(cudaGetSymbolAddress)(&again, &code.counter) == cudaSuccess);
    CHECK(again == first);
    CHECK(RT(cudaGetSymbolAddress)(&again, &code.fill) == cudaErrorInvalidSymbol);
}

SCENARIO_IN_CHILD("a variable keeps what is copied to it") {
    Registered code;
    const int sent[4] = {1, 2, 3, 4};
    int back[4] = {};
    const auto to = RT(cudaMemcpyToSymbol);
    const auto from = RT(cudaMemcpyFromSymbol);
    // Initial values stay in the device code, which nobody reads: all is zero.
    CHECK(from(back, &code.counter, 16, 0, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(back[0] == 0);
    CHECK(to(&code.counter, sent, 16, 0, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(from(back, &code.counter, 8, 8, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(back[0] == 3);
    CHECK(back[1] == 4);
    CHECK(to(&code.counter, sent, 16, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    for (const char* symbol : {&code.counter, &code.scale}) {  // one of them lies behind the other
        for (const long offset : {-4, -8, -16, -256}) {
            CHECK(to(symbol, sent, 4, static_cast<size_t>(offset), cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
        }
    }
    CHECK(to(&code.counter, sent, 4, 0, cudaMemcpyDeviceToHost) == cudaErrorInvalidMemcpyDirection);
    CHECK(to(sent, sent, 4, 0, cudaMemcpyHostToDevice) == cudaErrorInvalidSymbol);
    CHECK(RT(cudaMemcpyToSymbolAsync)(&code.scale, sent, 4, 0, cudaMemcpyHostToDevice, nullptr) == cudaSuccess);
    CHECK(RT(cudaMemcpyFromSymbolAsync)(back, &code.scale, 4, 0, cudaMemcpyDeviceToHost, nullptr) == cudaSuccess);
    CHECK(RT(cudaDeviceSynchronize)() == cudaSuccess);
    CHECK(back[0] == 1);
}

SCENARIO_IN_CHILD("a managed variable is one and the same for host and device") {
    Registered code;
    const auto initialise = reinterpret_cast<char (*)(void**)>(runtime_function("__cudaInitModule"));
    REQUIRE(initialise(code.handle) != 0);
    REQUIRE(code.managed != nullptr);
    *code.managed = 12;
    int back = 0;
    CHECK(RT(cudaMemcpyFromSymbol)(&back, code.managed, sizeof back, 0, cudaMemcpyDefault) == cudaSuccess);
    CHECK(back == 12);
    CHECK(RT(cudaMemcpyFromSymbol)(&back, &code.managed, sizeof back, 0, cudaMemcpyDefault) == cudaSuccess);
    CHECK(back == 12);
}

SCENARIO_IN_CHILD("a managed variable has new memory after a reset") {
    Registered code;
    const int sent = 3;
    int back = 0;
    REQUIRE(RT(cudaMemcpyToSymbol)(&code.managed, &sent, sizeof sent, 0, cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(RT(cudaDeviceReset)() == cudaSuccess);
    CHECK(RT(cudaMemcpyToSymbol)(&code.managed, &sent, sizeof sent, 0, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(RT(cudaMemcpyFromSymbol)(&back, &code.managed, sizeof back, 0, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(back == 3);
}

SCENARIO_IN_CHILD("variables are made anew after a reset and gone after unregistering") {
    Registered code;
    const int sent = 5;
    int back = 9;
    REQUIRE(RT(cudaMemcpyToSymbol)(&code.scale, &sent, 4, 0, cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(RT(cudaDeviceReset)() == cudaSuccess);
    CHECK(RT(cudaMemcpyFromSymbol)(&back, &code.scale, 4, 0, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(back == 0);
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    CHECK(RT(cudaMemGetInfo)(&before, &total) == cudaSuccess);
    code.unregister();
    CHECK(RT(cudaMemGetInfo)(&after, &total) == cudaSuccess);
    CHECK(after >= before);
    CHECK(RT(cudaMemcpyFromSymbol)(&back, &code.scale, 4, 0, cudaMemcpyDeviceToHost) == cudaErrorInvalidSymbol);
    CHECK(RT(cudaLaunchKernel)(&code.bump, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaErrorInvalidDeviceFunction);
    Registered once_more;
    CHECK(RT(cudaMemcpyFromSymbol)(&back, &once_more.scale, 4, 0, cudaMemcpyDeviceToHost) == cudaSuccess);
}
