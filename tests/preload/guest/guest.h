// SPDX-License-Identifier: Apache-2.0
// A CUDA program that does what it reads from its input, a line at a time, and answers each line with a line: first the
// CUresult, then figures. Names stand for the handles and addresses that it has got.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/preload/guest/routes.h"

namespace guest {

using Words = std::vector<std::string>;

struct Program {
    Driver driver;
    std::map<std::string, CUcontext> contexts;  // the primary context of device 0 is "0"
    std::map<std::string, CUgreenCtx> greens;   // and their contexts, by the same name
    std::map<std::string, CUdeviceptr> blocks;
    std::map<std::string, CUmemoryPool> pools;
    std::map<std::string, CUstream> streams;
    std::map<std::string, CUmodule> modules;
    std::map<std::string, CUmemGenericAllocationHandle> pieces;  // physical memory
    std::map<std::string, std::pair<CUdeviceptr, size_t>> mappings;
    std::map<std::string, CUevent> events;
    std::map<std::string, CUexternalMemory> externals;
    std::map<std::string, int> exported;  // the last descriptor of a piece
    std::map<std::string, CUarray> arrays;
    std::map<std::string, CUmipmappedArray> mipmaps;
    struct Graph {
        CUgraph graph = nullptr;
        CUgraphExec instance = nullptr;
        std::vector<CUdeviceptr> blocks;  // left to the program
    };
    std::map<std::string, Graph> graphs;
    CUcontext current = nullptr;
};

/// Words after the command's own; the answer.
using Command = std::function<std::string(Program&, const Words&)>;
using Commands = std::map<std::string, Command>;

void add_capture_commands(Commands& commands);
void add_context_commands(Commands& commands);
void add_ending_commands(Commands& commands);
void add_first_commands(Commands& commands);
void add_graph_commands(Commands& commands);
void add_host_commands(Commands& commands);
void add_leave_commands(Commands& commands);
void add_memory_commands(Commands& commands);
void add_object_commands(Commands& commands);
void add_random_commands(Commands& commands);
void add_sharing_commands(Commands& commands);
void add_nvml_commands(Commands& commands);
void add_process_commands(Commands& commands);
void add_thread_commands(Commands& commands);
void add_turn_commands(Commands& commands);
void add_work_commands(Commands& commands);

/// How a thread treats captures of others; afterwards *mode is how it did before.
CUresult exchange_mode(Program& program, CUstreamCaptureMode* mode);
/// "relaxed", "local" and "global".
CUstreamCaptureMode mode_of(const std::string& word);

std::string execute(Program& program, const Words& words);

/// "0", "2": a CUresult as the first word of an answer.
inline std::string answer(CUresult result) { return std::to_string(static_cast<int>(result)); }
template <typename... Figures>
std::string answer(CUresult result, Figures... figures) {
    std::string text = answer(result);
    ((text += " " + std::to_string(figures)), ...);
    return text;
}
inline size_t number(const std::string& text) { return std::stoull(text, nullptr, 0); }

}  // namespace guest
