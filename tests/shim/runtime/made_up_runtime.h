// SPDX-License-Identifier: Apache-2.0
// NVIDIA's runtime, the driver and a split that a test makes up: 4 GPUs are shown, of which 0 and 1 are parts of the
// physical GPU 0, and 2 and 3 of the physical GPU 1. What is called is written down in words.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "shim/runtime/runtime_shim.h"

namespace cuslice::tests {

/// As long as it lives, the runtime shim stands before this. One at a time.
struct MadeUpRuntime {
    MadeUpRuntime();
    ~MadeUpRuntime();
    MadeUpRuntime(const MadeUpRuntime&) = delete;
    MadeUpRuntime& operator=(const MadeUpRuntime&) = delete;

    bool split = true;
    int current = -1;               // the part whose context the thread has
    bool company = false;           // another part of a GPU is in use
    std::map<int, int> priorities;  // of the parts that have one
    int version = 13;               // of the runtime that is loaded
    bool old_driver = false;        // it has the first forms of its functions alone
    CUresult made_current = CUDA_SUCCESS, driver_says = CUDA_SUCCESS;
    cudaError_t runtime_says = cudaSuccess;
    int runtime_device = 1;  // what it puts where it tells a GPU
    CUcontext context = nullptr;
    size_t items = 1;  // how many a pointer to places has behind it

    /// Result of the last `ask`, and the calls that it made.
    cudaError_t result = cudaSuccess;
    std::string calls;
    std::map<runtime::Id, void*> functions;

    /// Puts a function of the test's own, or a recorded one, in the runtime's place.
    template <typename... Arguments>
    void put(runtime::Id id, cudaError_t (*function)(Arguments...)) {
        functions[id] = reinterpret_cast<void*>(function);
    }
    void note(const std::string& call) { calls += (calls.empty() ? "" : "; ") + call; }
};

MadeUpRuntime& made_up();

/// How arguments are written down: numbers as they are, places as "gpu1" or "host", pointers as "0" or "*".
std::string text(long long number);
std::string text(const void* pointer);
std::string text(const char* word);
std::string text(cudaMemLocation place);
std::string text(const cudaMemLocation* places);
std::string text(const cudaMemcpyAttributes* hints);
std::string text(const cudaMemcpy3DBatchOp* boxes);
std::string text(const cudaMemcpy3DPeerParms* box);
std::string text(const cudaMemcpy3DParms* box);
std::string text(const cudaMemAllocNodeParams* node);
std::string text(const cudaGraphNodeParams* node);

template <typename... Arguments>
std::string in_words(const char* name, Arguments... arguments) {
    std::string words = name;
    [[maybe_unused]] const auto add = [&](auto one) {
        if constexpr (std::is_enum_v<decltype(one)> || std::is_integral_v<decltype(one)>)
            words += " " + text(static_cast<long long>(one));
        else if constexpr (std::is_function_v<std::remove_pointer_t<decltype(one)>>)
            words += one ? " *" : " 0";
        else
            words += " " + text(one);
    };
    (add(arguments), ...);
    return words;
}

const char* name_of(runtime::Id id);

template <runtime::Id kId, typename... Arguments>
cudaError_t recorded(Arguments... arguments) {
    made_up().note(in_words(name_of(kId), arguments...));
    return made_up().runtime_says;
}

/// Has the runtime's function of this name written down.
template <runtime::Id kId, typename... Arguments>
void record(cudaError_t (*)(Arguments...)) {
    made_up().put(kId, &recorded<kId, Arguments...>);
}

/// Calls the shim's function, with the runtime's own behind it unless the test has put another there. Answers what the
/// runtime and the driver were asked.
template <runtime::Id kId, typename... Arguments, typename... Given>
std::string ask(cudaError_t (*function)(Arguments...), Given... given) {
    if (!made_up().functions.count(kId))
        record<kId>(function);
    made_up().calls.clear();
    made_up().result = function(given...);
    return std::exchange(made_up().calls, "");
}

/// The same by the function's name, in the form of version 13 or, with ASK_12, of 12.
#define ASK(symbol, ...) ask<runtime::Id::symbol>(&runtime::symbol<13>, __VA_ARGS__)
#define ASK_12(symbol, ...) ask<runtime::Id::symbol>(&runtime::symbol<12>, __VA_ARGS__)
#define ASK_FORM(symbol, version, ...) ask<runtime::Id::symbol>(&runtime::symbol##_##version, __VA_ARGS__)

/// Has another function of the runtime written down that the shim needs, with the type that the header gives `type`.
#define RECORD_NEEDED(symbol, type) record<runtime::Id::symbol>(static_cast<decltype(&::type)>(nullptr))

inline cudaMemLocation on_gpu(int ordinal) { return {cudaMemLocationTypeDevice, ordinal}; }
inline cudaMemLocation on_host() { return {cudaMemLocationTypeHost, 3}; }

}  // namespace cuslice::tests
