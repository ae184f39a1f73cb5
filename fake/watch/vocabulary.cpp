// SPDX-License-Identifier: Apache-2.0
#include "fake/watch/vocabulary.h"

#include <cuda.h>

#include <set>

#include "fake/spec/machine.h"

namespace cuslice::fake {
namespace {

// Both have a row for each name. No name needs an escape.
constexpr const char* kFunctions[][2] = {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) {#symbol, #name},
#include "virtual_gpu/driver/functions.def"
};

struct Result {
    const char* name;
    int code;
};
constexpr Result kResults[] = {
#define ERROR(code, meaning) {#code, code},
#include "fake/driver/errors.def"
#undef ERROR
};

}  // namespace

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += '\\';
        if (static_cast<unsigned char>(c) >= 0x20)
            out += c;
    }
    return out + '"';
}

std::string vocabulary() {
    std::set<std::string> functions;
    for (const auto& row : kFunctions)
        functions.insert({row[0], row[1]});
    std::string text = "{\"functions\": [";
    for (const std::string& function : functions)
        text.append(text.back() == '[' ? "" : ", ").append(quoted(function));
    text += "],\n \"results\": {";
    for (const Result& result : kResults)
        text.append(text.back() == '{' ? "" : ", ").append(quoted(result.name) + ": " + std::to_string(result.code));
    return text + "}}\n";
}

bool describe_machine(const std::string& machine, std::string& description, std::string& error) {
    MachineSpec spec;
    if (!parse_machine(machine, profile_folder(), spec, error))
        return false;
    description = "[";
    for (const GpuSpec& gpu : spec)
        description.append(description.back() == '[' ? "" : ",\n ")
            .append("{\"uuid\": " + quoted(uuid_text(gpu.uuid)) + ", \"name\": " + quoted(gpu.name) + "}");
    description += "]\n";
    return true;
}

}  // namespace cuslice::fake
