// SPDX-License-Identifier: Apache-2.0
// A small GPU's books, and processes that hold memory of it.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "fake/books/books.h"
#include "tests/fake/child.h"

namespace fake_test::books {

constexpr uint64_t MiB = 1 << 20, capacity = 1000 * MiB;

inline cuslice::fake::GpuSpec small_gpu() {
    cuslice::fake::GpuSpec gpu;
    gpu.name = "small";
    gpu.memory = capacity;
    gpu.uuid[0] = 7;
    return gpu;
}

/// Opens the books of the small GPU, with a slot or without.
inline void open_books(const Report& report, cuslice::fake::Books& books, bool slot = true) {
    std::string error;
    EXPECT(books.open(small_gpu(), error));
    if (slot)
        EXPECT(books.claim_slot(error));
    EXPECT_EQUAL(error, std::string());
}

/// Starts a process that charges bytes and then does what `then` says; it is running when this returns.
template <typename F>
pid_t holder(const Report& report, uint64_t bytes, F&& then) {
    int ready[2];
    EXPECT(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
        close(ready[0]);  // and the parent's end of waiting alone
        auto& books = *new cuslice::fake::Books;
        open_books(report, books);
        EXPECT(books.charge(bytes));
        EXPECT(write(ready[1], "x", 1) == 1);
        then(books);
        _exit(0);
    }
    close(ready[1]);
    char byte = 0;
    EXPECT(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    return child;
}

inline void wait_for(pid_t child) { waitpid(child, nullptr, 0); }

}  // namespace fake_test::books
