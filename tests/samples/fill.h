// SPDX-License-Identifier: Apache-2.0
// Shared by the sample programs, which take all the memory of a GPU that they are given, use it, report what they got
// and give it back. They are ordinary CUDA programs. C++17, as nvcc's host compiler reads this, too.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace sample {

struct Options {
    bool json = false;
    bool hold = false;
    int device = 0;
};

struct Memory {
    size_t free = 0;
    size_t total = 0;
};

struct Result {
    char device[256] = {};
    Memory before;
    Memory full;
    Memory after;
    size_t got = 0;
    size_t blocks = 0;
    bool verified = true;
    const char* kernel = "none";  ///< "ran", "did not run", or "none": there is no kernel in this program
};

inline Options parse(int count, char** arguments, const char* name) {
    Options options;
    for (int i = 1; i < count; ++i) {
        if (std::strcmp(arguments[i], "--json") == 0) {
            options.json = true;
        } else if (std::strcmp(arguments[i], "--hold-stdin") == 0) {
            options.hold = true;
        } else if (std::strcmp(arguments[i], "--device") == 0 && i + 1 < count) {
            options.device = std::atoi(arguments[++i]);
        } else {
            const bool asked = std::strcmp(arguments[i], "--help") == 0;
            std::fprintf(asked ? stdout : stderr,
                         "usage: %s [--device N] [--json] [--hold-stdin]\n"
                         "Allocates all memory of a GPU, uses it, and says how much it got.\n"
                         "  --json        one JSON object a line: when it is full, and when it is free again\n"
                         "  --hold-stdin  keeps the memory until standard input ends\n",
                         name);
            std::exit(asked ? 0 : 2);
        }
    }
    return options;
}

inline double mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

inline void print_full(const Options& options, const char* name, const Result& result) {
    if (options.json) {
        std::printf(
            "{\"program\": \"%s\", \"phase\": \"full\", \"device\": \"%s\", \"total\": %zu, \"free_before\": %zu, "
            "\"got\": %zu, \"blocks\": %zu, \"free\": %zu, \"verified\": %s, \"kernel\": \"%s\"}\n",
            name, result.device, result.before.total, result.before.free, result.got, result.blocks, result.full.free,
            result.verified ? "true" : "false", result.kernel);
    } else {
        std::printf("%s on %s\n", name, result.device);
        std::printf("  total         %10.2f MiB\n  free          %10.2f MiB\n", mebibytes(result.before.total),
                    mebibytes(result.before.free));
        std::printf("  got           %10.2f MiB (%zu bytes in %zu blocks, %s; kernel: %s)\n", mebibytes(result.got),
                    result.got, result.blocks, result.verified ? "contents right" : "CONTENTS WRONG", result.kernel);
        std::printf("  free when full%10.2f MiB\n", mebibytes(result.full.free));
    }
    std::fflush(stdout);
}

inline void print_freed(const Options& options, const char* name, const Result& result) {
    if (options.json) {
        std::printf("{\"program\": \"%s\", \"phase\": \"freed\", \"free\": %zu}\n", name, result.after.free);
    } else {
        std::printf("  free again    %10.2f MiB\n", mebibytes(result.after.free));
    }
    std::fflush(stdout);
}

inline void hold_until_end_of_input() {
    char rest[256];
    while (std::fread(rest, 1, sizeof rest, stdin) > 0) {
    }
}

/// The whole of such a program. Gpu has, for one API:
///   Memory memory()
///   void* allocate(size_t bytes)       null: out of memory; on any other error it ends the program
///   void set(void*, unsigned char value, size_t bytes)
///   void read(void* host, const void*, size_t bytes)
///   void free(void*)
template <class Gpu>
int fill(Gpu& gpu, const Options& options, const char* name, Result& result) {
    constexpr size_t largest = size_t{64} << 20;
    constexpr size_t smallest = size_t{1} << 20;
    struct Block {
        void* pointer;
        size_t bytes;
    };
    std::vector<Block> blocks;
    result.before = gpu.memory();
    for (size_t bytes = largest; bytes >= smallest;) {
        void* const pointer = gpu.allocate(bytes);
        if (pointer == nullptr) {
            bytes /= 2;
            continue;
        }
        blocks.push_back({pointer, bytes});
        result.got += bytes;
    }
    result.blocks = blocks.size();
    result.full = gpu.memory();
    // All blocks are written before any is read, so that two that overlap are found out.
    for (size_t i = 0; i < blocks.size(); ++i) {
        gpu.set(blocks[i].pointer, static_cast<unsigned char>(i % 251 + 1), blocks[i].bytes);
    }
    std::vector<unsigned char> back(smallest);
    for (size_t i = 0; i < blocks.size(); ++i) {
        const unsigned char expected = static_cast<unsigned char>(i % 251 + 1);
        for (const size_t offset : {size_t{0}, blocks[i].bytes - back.size()}) {
            gpu.read(back.data(), static_cast<const char*>(blocks[i].pointer) + offset, back.size());
            for (const unsigned char byte : back) {
                result.verified = result.verified && byte == expected;
            }
        }
    }
    print_full(options, name, result);
    if (options.hold) {
        hold_until_end_of_input();
    }
    for (const Block& block : blocks) {
        gpu.free(block.pointer);
    }
    result.after = gpu.memory();
    print_freed(options, name, result);
    return result.verified ? 0 : 1;
}

}  // namespace sample
