// SPDX-License-Identifier: Apache-2.0
// One line for each call of the driver, in words that mean the same on every machine: handles, addresses and identities
// are named by the program, so that two runs can be compared line by line.
//
//     contexts: cuCtxGetDevice(&device) = 0 device 1
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "virtual_gpu/driver/cuda_api.h"

namespace conformance {

using Words = std::vector<std::string>;

/// Prefixes every line with `name` while the object lives; scopes nest.
class Scope {
  public:
    explicit Scope(const std::string& name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

  private:
    size_t before_;
};

/// `answers` is asked only where the call succeeded.
CUresult say(const char* function, const std::string& arguments, CUresult result,
             const std::function<Words()>& answers);

/// Gives a handle its name, and says it.
std::string as(const std::string& name, const void* handle);
std::string as_block(const std::string& name, CUdeviceptr address, size_t bytes);
/// The name of a handle; "none", or "unknown".
std::string named(const void* handle);
/// The block that an address is in, and by how much.
std::string block(CUdeviceptr address);
std::string device(CUdevice ordinal);
std::string number(long long value);
std::string uuid(const CUuuid& uuid);
std::string pci(const std::string& text);
/// Learns that this GPU's are "U0" and "P0", and so on.
void learn(CUdevice ordinal, const CUuuid& uuid, const std::string& pci);
/// "device 1", "host", …
std::string place(const CUmemLocation& location);

inline CUmemLocation on(int ordinal) { return {CU_MEM_LOCATION_TYPE_DEVICE, ordinal}; }
inline CUmemLocation host() { return {CU_MEM_LOCATION_TYPE_HOST, 0}; }

/// cuInit and what the GPUs are called by.
void start();

constexpr size_t kBlock = 2 << 20;

// The sections, each in a process of its own.
void devices();
void contexts();
void stacks();
void attaching();
void settings();
void primaries();
void resets();
void endings();
void peers();
void peer_copies();
void pointers();
void sharing();
void managed();
void batches();
void pools();
void streams_of_pools();
void pieces();
void multicast();
void streams();
void modules();
void arrays();
void graphs();
void graph_memory();
void green();
void threads();
// With a third GPU, which is not split where the first two are one.
void third();

}  // namespace conformance

// ASK(cuCtxGetDevice, (&device), device(device)): the arguments' own text is the line's.
#define ASK(function, arguments, ...)                               \
    ::conformance::say(#function, #arguments, ::function arguments, \
                       [&]() -> ::conformance::Words { return {__VA_ARGS__}; })
