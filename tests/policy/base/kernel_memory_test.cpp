// SPDX-License-Identifier: Apache-2.0
// Pages of the kernel's, and the word about those that it doesn't give.
#include "policy/base/kernel_memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

#include "tests/catch.h"
#include "tests/no_memory.h"

namespace cuslice {
namespace {

struct Told {
    size_t bytes = 0;
    int error = 0, times = 0, cancellation = PTHREAD_CANCEL_ENABLE;
} told;

void tell(size_t bytes, int error) {
    told.bytes = bytes;
    told.error = error;
    told.times++;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &told.cancellation);
    errno = 1;
}

}  // namespace

TEST_CASE("memory that the kernel doesn't give is reported, by a thread that can't be cancelled, and errno is kept") {
    errno = 4711;
    const tests::NoMappings none;
    CHECK(map_kernel_memory(4096) == nullptr);  // nobody listens
    report_no_kernel_memory.store(&tell);
    CHECK(map_kernel_memory(8192) == nullptr);
    report_no_kernel_memory.store(nullptr);
    CHECK(told.times == 1);
    CHECK(told.bytes == 8192);
    CHECK(told.error == ENOMEM);
    CHECK(told.cancellation == PTHREAD_CANCEL_DISABLE);
    CHECK(errno == 4711);
}

TEST_CASE("memory that the kernel gives is zeroed, and nobody is told") {
    told = {};
    report_no_kernel_memory.store(&tell);
    auto* const memory = static_cast<const unsigned char*>(map_kernel_memory(8192));
    report_no_kernel_memory.store(nullptr);
    REQUIRE(memory);
    CHECK(memory[0] == 0);
    CHECK(memory[8191] == 0);
    CHECK(told.times == 0);
    munmap(const_cast<unsigned char*>(memory), 8192);
}

}  // namespace cuslice
