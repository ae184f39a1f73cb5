// SPDX-License-Identifier: Apache-2.0
// Files of recordings, for their tests.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "policy/trace/file.h"
#include "policy/trace/row.h"
#include "tests/catch.h"

namespace cuslice::trace {

struct TestFolder {
    TestFolder() { REQUIRE(mkdtemp(path)); }
    ~TestFolder() { REQUIRE(std::system(("rm -rf " + std::string(path)).c_str()) == 0); }
    std::string at(const std::string& name) const { return path + ("/" + name); }
    char path[32] = "/tmp/cuslice-trace-XXXXXX";
};

inline std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline constexpr char kGpu[] = "GPU-830cff1a-59d2-4d1e-8f0a-3c5b7e9d1f20";

/// A thread's row of this number, which all else in it goes by.
inline Row row_of(uint32_t thread, uint64_t number) {
    return {.thread = thread,
            .time = 1'790'000'000'000'000 + number * 999,
            .action = Action::allocate,
            .address = number,
            .bytes = number * 512,
            .stream = thread,
            .gpu = kGpu,
            .limit = 1 << 30,
            .held = number << 12};
}

// Without what follows them while the file is mapped.
inline std::string rows_in(const std::string& path) {
    std::string text = read(path);
    const size_t last = text.find_last_not_of('\n');
    return last == text.npos ? "" : text.substr(0, last + 1) + "\n";
}

inline File::Appended append(File& file, std::string_view row) {
    int error = 0;
    return file.append(row, error);
}

}  // namespace cuslice::trace
