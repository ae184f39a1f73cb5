// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest/conformance/report.h"

#include <cstdio>
#include <cstring>
#include <map>

namespace conformance {
namespace {

struct Block {
    std::string name;
    size_t bytes;
};
std::string prefix;
std::map<const void*, std::string> handles;
std::map<CUdeviceptr, Block> blocks;
std::map<std::string, std::string> identities;

std::string hex(const CUuuid& uuid) {
    std::string text = "GPU-";
    for (unsigned i = 0; i < sizeof uuid.bytes; i++) {
        char two[4];
        std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
        text += std::string(i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + two;
    }
    return text;
}

std::string known(const std::string& identity) {
    const auto found = identities.find(identity);
    return found == identities.end() ? "unknown " + identity : found->second;
}

}  // namespace

Scope::Scope(const std::string& name) : before_(prefix.size()) { prefix += name + ": "; }
Scope::~Scope() { prefix.resize(before_); }

CUresult say(const char* function, const std::string& arguments, CUresult result,
             const std::function<Words()>& answers) {
    std::string line = prefix + function + arguments + " = " + std::to_string(static_cast<int>(result));
    if (result == CUDA_SUCCESS)
        for (const std::string& answer : answers())
            line += " " + answer;
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    return result;
}

std::string as(const std::string& name, const void* handle) {
    if (!handle)
        return "none";
    handles[handle] = name;
    return name;
}

std::string as_block(const std::string& name, CUdeviceptr address, size_t bytes) {
    blocks[address] = {name, bytes};
    return name;
}

std::string named(const void* handle) {
    if (!handle)
        return "none";
    const auto found = handles.find(handle);
    return found == handles.end() ? "unknown" : found->second;
}

std::string block(CUdeviceptr address) {
    if (!address)
        return "none";
    auto after = blocks.upper_bound(address);
    if (after == blocks.begin())
        return "unknown";
    const auto& [start, found] = *--after;
    if (address - start >= found.bytes)
        return "unknown";
    return found.name + (address == start ? "" : "+" + std::to_string(address - start));
}

std::string device(CUdevice ordinal) { return "device " + std::to_string(ordinal); }
std::string number(long long value) { return std::to_string(value); }
std::string uuid(const CUuuid& uuid) { return known(hex(uuid)); }
std::string pci(const std::string& text) { return known(text); }

void learn(CUdevice ordinal, const CUuuid& uuid, const std::string& pci) {
    identities[hex(uuid)] = "U" + std::to_string(ordinal);
    identities[pci] = "P" + std::to_string(ordinal);
}

std::string place(const CUmemLocation& location) {
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return device(location.id);
    return "place " + std::to_string(location.type);
}

void start() {
    cuInit(0);
    int count = 0;
    cuDeviceGetCount(&count);
    for (CUdevice ordinal = 0; ordinal < count; ordinal++) {
        CUuuid own{};
        char address[32] = "";
        cuDeviceGetUuid_v2(&own, ordinal);
        cuDeviceGetPCIBusId(address, sizeof address, ordinal);
        learn(ordinal, own, address);
        // Not compared: what no physical GPU's identity may be among.
        std::printf("raw %s %s\n", hex(own).c_str(), address);
    }
}

}  // namespace conformance
