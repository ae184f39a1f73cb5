// SPDX-License-Identifier: Apache-2.0
// The parts of the launcher that need no process.
#include "cli/launch/environment.h"

#include "cli/gpus/framework_environment.h"
#include "cli/gpus/gpu_answer.h"
#include "cli/text/json.h"
#include "cli/text/table.h"
#include "policy/budget/headroom.h"
#include "policy/budget/library_reserve.h"
#include "tests/catch.h"

namespace cuslice::tests {

TEST_CASE("an environment keeps its order, and one value where one is set") {
    const char* const lines[] = {"A=1", "AB=2", "A=3", "odd", "C=", nullptr};
    cli::Environment environment(lines);
    CHECK(environment.get("A") == "1");
    CHECK(environment.get("C") == "");
    CHECK_FALSE(environment.get("odd"));
    CHECK_FALSE(environment.get("B"));
    environment.set("A", "x=y");
    environment.set("D", "4");
    CHECK(environment.lines() == std::vector<std::string>{"A=x=y", "AB=2", "odd", "C=", "D=4"});
    environment.unset("AB");
    environment.unset("odd");
    CHECK(environment.lines() == std::vector<std::string>{"A=x=y", "odd", "C=", "D=4"});
}

TEST_CASE("JSON keeps the order of its fields, and any bytes of a path become text") {
    CHECK(cli::json_text({{"b", nullptr}, {"a", "é€\"\n"}}) == "{\n  \"b\": null,\n  \"a\": \"é€\\\"\\n\"\n}\n");
    CHECK(cli::json_text("\xff/\xc3") == "\"\ufffd/\ufffd\"\n");
}

TEST_CASE("a table's columns are as wide as their widest cell") {
    CHECK(cli::format_table({{"A", "LONG"}, {"écrit", "x"}}) == "A      LONG\nécrit  x\n");
}

TEST_CASE("an answer about GPUs comes back as it was, and one that stops short is a failure") {
    cli::Gpus gpus;
    gpus.list.push_back({0, "a name", "GPU-1", "0000:01:00.0", 123, 45});
    gpus.list.push_back({1, "", "GPU-2", "", 0, std::nullopt});
    const std::string text = cli::write_answer(gpus);
    const cli::Gpus back = cli::parse_answer(text);
    CHECK(back.failure.empty());
    REQUIRE(back.list.size() == 2);
    CHECK(back.list[0].name == "a name");
    CHECK(back.list[0].free == 45);
    CHECK(back.list[1].uuid == "GPU-2");
    CHECK_FALSE(back.list[1].free);
    CHECK(cli::parse_answer("").failure == "the query ended without an answer");
    CHECK_FALSE(cli::parse_answer(text.substr(0, text.size() - 5)).failure.empty());
    gpus.failure = "no driver";
    CHECK(cli::parse_answer(cli::write_answer(gpus)).failure == "no driver");
}

namespace {

constexpr uint64_t kMiB = 1 << 20;

SliceRoom room(uint64_t limit, uint64_t context, bool known = true, bool plus_context = false) {
    const uint64_t headroom = plus_context ? 0 : derived_headroom(context * kMiB);
    return {true, limit * kMiB, context * kMiB, known, headroom, plus_context};
}

// "TensorFlow's JAX's", as they are set for these slices.
std::string told(const std::vector<SliceRoom>& rooms) {
    const char* const lines[] = {nullptr};
    cli::Environment environment(lines);
    const Settings settings;
    cli::tell_frameworks(environment, settings, rooms);
    return environment.get("TF_DEVICE_MIN_SYS_MEMORY_IN_MB").value_or("none") + " " +
           environment.get("XLA_PYTHON_CLIENT_MEM_FRACTION").value_or("none");
}

}  // namespace

TEST_CASE("a pool gets all of a slice but 320 MiB and the context, and never less of a larger one") {
    // Smallest to largest of the fake GPUs' contexts, in MiB.
    for (const uint64_t context : {104u, 210u, 256u, 300u, 306u, 376u, 414u, 520u, 620u}) {
        uint64_t before = 0;
        for (uint64_t limit = 700; limit <= 24u * 1024; ++limit) {
            INFO("context " << context << " limit " << limit);
            const SliceRoom slice = room(limit, context);
            REQUIRE(library_reserve(slice.left()) % kMiB == 0);
            const uint64_t pool = slice.left() - library_reserve(slice.left());
            REQUIRE(pool + (context + 320) * kMiB >= limit * kMiB);
            REQUIRE(pool >= before);
            REQUIRE(library_reserve(slice.left()) <= 225 * kMiB);
            // TensorFlow ignores a reserve that it can't have, for a larger one of its own.
            REQUIRE(library_reserve(slice.left()) <= slice.left());
            before = pool;
        }
    }
}

TEST_CASE("the frameworks' variables are right for the smallest of the slices") {
    CHECK(told({room(4096, 520)}) == "192 0.8007");
    CHECK(told({room(700, 300)}) == "85 0.3642");
    CHECK(told({room(4096, 520), room(1024, 104)}) == "192 0.6906");
    CHECK(told({room(700, 300), room(4096, 520)}) == "85 0.3642");
    // A context that doesn't fit leaves nothing to share out.
    CHECK(told({room(500, 520)}) == "0 none");
    // With a context whose size is not certain, a fraction below JAX's own is no better than a guess.
    CHECK(told({room(1024, 400, false)}) == "136 none");
    CHECK(told({room(4096, 400, false)}) == "192 0.8359");
    CHECK(told({}) == "none none");
    // Where the context comes on top, so do the libraries.
    CHECK(told({room(1024, 300, true, true)}) == "0 0.9999");
    CHECK(told({room(1024, 300, true, true), room(4096, 520)}) == "192 0.8007");
    SliceRoom whole = room(4096, 520);
    whole.limited = false;
    CHECK(told({whole}) == "none none");
    CHECK(told({whole, room(8192, 520)}) == "192 0.8007");
}

}  // namespace cuslice::tests
