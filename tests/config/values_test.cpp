// SPDX-License-Identifier: Apache-2.0
// Sizes, fractions, names of GPUs, texts: the pure readers. The messages of what they refuse are held in tests/cli.
#include <limits>
#include <random>
#include <utility>

#include "config/fraction.h"
#include "config/gpu_selector.h"
#include "config/log_setting.h"
#include "config/size.h"
#include "config/value.h"
#include "tests/catch.h"

namespace cuslice {
namespace {

__extension__ using Wide = unsigned __int128;

std::string format(uint64_t bytes) { return std::string(format_size(bytes).view()); }

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

}  // namespace

TEST_CASE("a count is a whole number from 1 on, also where a file has it without quotes") {
    static constexpr KeyTraits kBlocks{.key = Key::limit,
                                       .name = "max-blocks",
                                       .type = ValueType::count,
                                       .heading = Heading::memory,
                                       .placeholder = "N",
                                       .example = "1000",
                                       .default_value = "no bound",
                                       .help = "blocks at most"};
    CHECK(kBlocks.variable == "CUSLICE_MAX_BLOCKS");
    CHECK(may_be_number(kBlocks));
    uint64_t number = 0;
    bool automatic = true;
    Reason why;
    for (const auto& [text, value] :
         {std::pair<const char*, uint64_t>{"1", 1}, {"007", 7}, {"999999999999999999", 999'999'999'999'999'999}}) {
        CHECK(parse_value(kBlocks, text, number, automatic, why));
        CHECK(number == value);
        CHECK_FALSE(automatic);
    }
    for (const char* wrong : {"", "0", "000", "-1", "+1", "1.0", "1 ", "1k", "0x10", "1000000000000000000"}) {
        CHECK_FALSE(parse_value(kBlocks, wrong, number, automatic, why));
        CHECK(why.view() == "a whole number is needed, 1 or more");
    }
}

TEST_CASE("a choice is one of its row's words, and its number is the word's place") {
    static constexpr KeyTraits kMode{.key = Key::allocator,
                                     .name = "mode",
                                     .type = ValueType::choice,
                                     .heading = Heading::memory,
                                     .placeholder = "MODE",
                                     .words = "one two three",
                                     .example = "\"one\"",
                                     .default_value = "one",
                                     .help = "a mode"};
    uint64_t number = 7;
    bool automatic = false;
    Reason why;
    CHECK((parse_value(kMode, "three", number, automatic, why) && number == 2));
    for (const char* wrong : {"", " ", "on", "one two", "two ", "four"}) {
        CHECK_FALSE(parse_value(kMode, wrong, number, automatic, why));
        CHECK(number == 0);
        CHECK(why.view() == "one, two or three");
    }
}

TEST_CASE("the largest sizes that fit are read, the next are not") {
    uint64_t bytes = 0;
    Reason why;
    CHECK(parse_size("16777215TiB", bytes, why));
    CHECK(bytes == kMax - (uint64_t{1} << 40) + 1);
    CHECK(parse_size("16777215.999999999TiB", bytes, why));
    CHECK(parse_size("18014398509481983KiB", bytes, why));
    CHECK(bytes == kMax - 1023);
    CHECK(parse_size("18446744073709551KB", bytes, why));
    CHECK_FALSE(parse_size("18446744073709552KB", bytes, why));
    CHECK_FALSE(parse_size("18014398509481984KiB", bytes, why));
    CHECK_FALSE(parse_size("18446744073709551.999KB", bytes, why));
}

TEST_CASE("every decimal of a size counts, rounded down to a byte") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; ++i) {
        const uint64_t whole = random() % 1000;
        const uint64_t part = random() % 1'000'000'000;
        std::string digits = std::to_string(part);
        digits.insert(0, 9 - digits.size(), '0');
        uint64_t bytes = 0;
        Reason why;
        REQUIRE(parse_size(std::to_string(whole) + "." + digits + "TiB", bytes, why));
        const Wide tib = Wide{1} << 40;
        REQUIRE(bytes == static_cast<uint64_t>(tib * whole + tib * part / 1'000'000'000));
    }
}

TEST_CASE("bytes are written for people") {
    CHECK(format(0) == "0 bytes");
    CHECK(format(1023) == "1023 bytes");
    CHECK(format(1024) == "1.0 KiB");
    CHECK(format(1536) == "1.5 KiB");
    CHECK(format((1 << 20) - 1) == "1024.0 KiB");
    CHECK(format(1 << 20) == "1.0 MiB");
    CHECK(format(uint64_t{1024} << 20) == "1024.0 MiB");
    CHECK(format(uint64_t{2002} << 20) == "2002.0 MiB");
    CHECK(format((uint64_t{10} << 30) - 1) == "10240.0 MiB");
    CHECK(format(uint64_t{10} << 30) == "10.0 GiB");
    CHECK(format(uint64_t{143771} << 20) == "140.4 GiB");
    CHECK(format(kMax) == "17179869184.0 GiB");
}

TEST_CASE("a fraction of any total is exact, and never more than the total") {
    std::mt19937_64 random(2);
    for (int i = 0; i < 20000; ++i) {
        const uint64_t parts = 1 + random() % Fraction::kWhole;
        const uint64_t total = random() >> (random() % 60);
        const auto exact = static_cast<uint64_t>(Wide{parts} * total / Fraction::kWhole);
        REQUIRE(Fraction(parts).bytes_of(total) == exact);
    }
    CHECK(Fraction(Fraction::kWhole).bytes_of(kMax) == kMax);
    CHECK(Fraction(1).bytes_of(Fraction::kWhole - 1) == 0);
}

TEST_CASE("a percentage is the fraction that it says, to the last part") {
    Fraction fraction;
    Reason why;
    CHECK(parse_fraction("40%", fraction, why));
    CHECK(fraction.parts() == 400'000'000);
    CHECK(parse_fraction("0.4", fraction, why));
    CHECK(fraction.parts() == 400'000'000);
    CHECK(parse_fraction("99.9999999%", fraction, why));
    CHECK(fraction.parts() == 999'999'999);
    CHECK(parse_fraction("0.9999999999999", fraction, why));
    CHECK(fraction.parts() == 999'999'999);
    CHECK(parse_fraction("1.0000000000000", fraction, why));
    CHECK(fraction.parts() == Fraction::kWhole);
}

TEST_CASE("a name of a GPU fits the GPU that it names and no other") {
    const GpuIdentity gpu{3, "GPU-5f1c89ab-0000-1111-2222-333344445555", "0000:81:0a.1"};
    const GpuIdentity unknown;
    const auto matches = [&](std::string_view text) {
        GpuSelector selector;
        Reason why;
        REQUIRE(parse_gpu_selector(text, selector, why));
        CHECK(selector.matches(unknown) == (text == "*"));
        return selector.matches(gpu);
    };
    for (const char* name : {"*", "3", "GPU-5", "gpu-5F1C", "GPU-5f1c89ab-0000-1111-2222-333344445555", "0000:81:0a.1",
                             "0000:81:0A.1", "00000000:81:0a.1", "81:0a.1"}) {
        INFO(name);
        CHECK(matches(name));
    }
    for (const char* name : {"0", "33", "GPU-6", "MIG-5f1c", "GPU-5f1c89ab-0000-1111-2222-3333444455555",
                             "0001:81:0a.1", "0000:81:0a.0", "0000:18:0a.1"}) {
        INFO(name);
        CHECK_FALSE(matches(name));
    }
    GpuSelector selector;
    Reason why;
    CHECK(parse_gpu_selector("MIG-GPU-5f1c89ab-0000-1111-2222-333344445555/1", selector, why));
    CHECK_FALSE(parse_gpu_selector(std::string(64, '1').insert(0, "GPU-"), selector, why));
}

TEST_CASE("text in fixed space is cut, never written past its end") {
    FixedText<8> text("1234");
    CHECK_FALSE(text.cut());
    text.append("567");
    CHECK(text.view() == "1234567");
    CHECK_FALSE(text.cut());
    text.append("8");
    CHECK(text.cut());
    CHECK(std::string(text.c_str()) == "1234567");
    text.assign(slice(text.view(), 2, 3));
    CHECK(text.view() == "345");
    CHECK_FALSE(text.cut());
    CHECK(FixedText<32>().append(kMax).view() == "18446744073709551615");
    CHECK(FixedText<32>().append(0).view() == "0");
}

TEST_CASE("the distance between names counts letters added, dropped, changed and swapped") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("limit", "limit") == 0);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("limt", "limit") == 1);
    CHECK(edit_distance("limmit", "limit") == 1);
    CHECK(edit_distance("linit", "limit") == 1);
    CHECK(edit_distance("lmiit", "limit") == 1);
    CHECK(edit_distance("fraction", "limit") == edit_distance("limit", "fraction"));
    CHECK(edit_distance(std::string(1000, 'x'), std::string(1000, 'y')) == 48);
}

TEST_CASE("the readers stand any bytes", "[fuzz]") {
    static constexpr char kBytes[] = "0123456789.%=,:;- /*abefGMTKiBUPFInfowarndebugauto\0\xff\n";
    const std::string_view kAlphabet(kBytes, sizeof kBytes - 1);
    std::mt19937 random(3);
    for (int i = 0; i < 200000; ++i) {
        std::string text;
        for (unsigned length = random() % 24; length > 0; --length)
            text += kAlphabet[random() % kAlphabet.size()];
        uint64_t bytes = 0;
        Fraction fraction;
        GpuSelector selector;
        LogSetting log;
        Reason why;
        // A refusal says why; a value that is read is within bounds.
        REQUIRE((parse_size(text, bytes, why) || !why.empty()));
        why.clear();
        if (parse_fraction(text, fraction, why)) {
            REQUIRE((fraction.parts() > 0 && fraction.parts() <= Fraction::kWhole));
        } else {
            REQUIRE_FALSE(why.empty());
        }
        why.clear();
        REQUIRE((parse_gpu_selector(text, selector, why) || !why.empty()));
        why.clear();
        REQUIRE((parse_log(text, log, why) || !why.empty()));
    }
}

}  // namespace cuslice
