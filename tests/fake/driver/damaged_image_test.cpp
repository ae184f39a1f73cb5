// SPDX-License-Identifier: Apache-2.0
// Images that are cut off or damaged: they are refused or read, and nothing beyond their end is touched.

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fake/driver/image.h"
#include "tests/catch.h"
#include "tests/fake/driver/guarded.h"
#include "tests/fake/driver/made_up_cubin.h"
#include "tests/fake/driver/made_up_fat_binary.h"

using namespace cuslice::fake;
using fake_test::Cubin;
using fake_test::Guarded;

namespace {

const std::string kPtx =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .b8 table[4096];\n"
    ".visible .entry kernel(.param .u64 kernel_param_0, .param .u32 kernel_param_1)\n{\nret;\n}\n";

std::string fat_binary() {
    using fake_test::container;
    using fake_test::entry;
    return container(entry(2, 86, 0, Cubin(86, 7).bytes()) + entry(1, 80, 0, kPtx) +
                     entry(2, 90, 0, Cubin(90, 8).bytes()));
}

// AddressSanitizer's own memory can be read, and ends the program that does: a damaged image may lead anywhere.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kHasOwnMemory = true;
#else
constexpr bool kHasOwnMemory = false;
#endif

struct Kind {
    const char* name;
    std::string bytes;
};
std::vector<Kind> kinds() {
    return {{"old cubin", Cubin(86, 7).bytes()}, {"cubin", Cubin(90, 8).bytes()}, {"fat binary", fat_binary()}};
}

bool is_documented(CUresult result) {
    return result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_INVALID_PTX ||
           result == CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/// By its beginning alone, and with its size, as from a file; for any device and for one.
void read_all_ways(Guarded& memory, const std::string& bytes, std::vector<CUresult>& results,
                   bool by_beginning = true) {
    const char* const at = memory.put(bytes);
    for (const int capability : {0, 86, 90}) {
        Image image, sized;
        if (by_beginning)
            results.push_back(read_image(at, capability, image));
        results.push_back(read_image(at, capability, sized, bytes.size()));
    }
    Image linked;
    read_cubin(reinterpret_cast<const unsigned char*>(at), bytes.size(), linked);
}

}  // namespace

TEST_CASE("images: every cut of a cubin or fat binary is refused as invalid") {
    Guarded memory;
    for (const Kind& kind : kinds()) {
        CAPTURE(kind.name);
        for (size_t length = 1; length < kind.bytes.size(); ++length) {
            std::vector<CUresult> results;
            read_all_ways(memory, kind.bytes.substr(0, length), results);
            for (const CUresult result : results)
                if (result != CUDA_ERROR_INVALID_IMAGE)
                    FAIL("cut to " << length << ": " << result);
        }
        Image image;
        CHECK(read_image(memory.put(kind.bytes), 0, image) == CUDA_SUCCESS);
        CHECK(read_image(memory.put(kind.bytes), 0, image, kind.bytes.size()) == CUDA_SUCCESS);
    }
}

TEST_CASE("images: a text that is cut, or has no end, is read to where memory ends") {
    Guarded memory;
    for (size_t length = 1; length <= kPtx.size(); ++length) {
        std::vector<CUresult> results;
        read_all_ways(memory, kPtx.substr(0, length), results);
        for (const CUresult result : results)
            if (!is_documented(result))
                FAIL("cut to " << length << ": " << result);
    }
    Image image;
    CHECK(read_image(memory.put(kPtx), 0, image) == CUDA_SUCCESS);
}

TEST_CASE("images: a damaged one is refused with an error that is documented, or read") {
    Guarded memory;
    std::mt19937_64 random(20260701);  // the standard says what follows
    const auto below = [&](size_t end) { return static_cast<size_t>(random() % end); };
    for (const Kind& kind : kinds()) {
        CAPTURE(kind.name);
        for (int round = 0; round < 6000; ++round) {
            std::string bytes = kind.bytes;
            for (size_t change = 0; change <= below(4); ++change) {
                static constexpr uint64_t kWords[] = {0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, ~0ULL, 1ULL << 63};
                const size_t size = size_t{1} << below(4);
                const size_t at = below(bytes.size() - size);
                const uint64_t word = below(2) != 0 ? random() : kWords[below(8)];
                std::memcpy(bytes.data() + at, &word, size);
            }
            if (below(8) == 0)
                bytes.resize(1 + below(bytes.size()));
            std::vector<CUresult> results;
            read_all_ways(memory, bytes, results, !kHasOwnMemory);
            for (const CUresult result : results)
                if (!is_documented(result))
                    FAIL("round " << round << ": " << result);
        }
    }
}

TEST_CASE("images: a wrapper leads to no container that isn't there") {
    struct {
        uint32_t magic, version;
        const void* container;
        const void* name;
    } wrapper = {0x466243b1, 1, nullptr, nullptr};
    Guarded memory;
    Image image;
    const std::string whole = fat_binary();
    wrapper.container = memory.put(whole);
    CHECK(read_image(&wrapper, 0, image) == CUDA_SUCCESS);
    // A file has no addresses in it.
    CHECK(read_image(&wrapper, 0, image, sizeof wrapper) == CUDA_ERROR_INVALID_IMAGE);
    for (const void* const wrong : {static_cast<const void*>(nullptr), reinterpret_cast<const void*>(8),
                                    reinterpret_cast<const void*>(~0ULL - 7)}) {
        wrapper.container = wrong;
        CHECK(read_image(&wrapper, 0, image) == CUDA_ERROR_INVALID_IMAGE);
    }
    for (size_t length = 0; length < whole.size(); length += 7) {
        wrapper.container = memory.put(whole.substr(0, length));
        CHECK(read_image(&wrapper, 0, image) == CUDA_ERROR_INVALID_IMAGE);
    }
}
