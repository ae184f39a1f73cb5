// SPDX-License-Identifier: Apache-2.0
// Answers of a set of settings, its refusals once the GPUs are known, and the hand-over.
#include <random>

#include "config/combination.h"
#include "config/handover.h"
#include "config/load.h"
#include "config/resolve.h"
#include "tests/catch.h"

namespace cuslice {
namespace {

const GpuIdentity kFirst{0, "GPU-5f10", "0000:01:00.0"};
const GpuIdentity kSecond{1, "GPU-5f20", "0000:81:00.0"};
const GpuIdentity kBoth[] = {kFirst, kSecond};
constexpr uint64_t kGiB = uint64_t{1} << 30;

std::string line(const ConfigError& error) { return std::string(line_of(error).view()); }

void add(Settings& settings, Key key, Rank rank, std::string_view text) {
    ConfigError error;
    const std::string origin = "--" + std::string(traits_of(key).name);
    const bool added = add_list(settings, key, rank, origin, text, error);
    INFO(line(error));
    REQUIRE(added);
}

std::string check(Key key, std::string_view text, bool all = true) {
    Settings settings;
    add(settings, key, {}, text);
    ConfigError error;
    return check_against(settings, kBoth, all, error) ? "good" : line(error);
}

std::string write(const Settings& settings) {
    std::string buffer(4096, '\0');
    buffer.resize(write_handover(settings, buffer));
    return buffer;
}

}  // namespace

TEST_CASE("once the GPUs are known, names that fit none or two are refused") {
    CHECK(check(Key::limit, "0=1GiB,GPU-5f2=2GiB") == "good");
    CHECK(check(Key::limit, "1GiB") == "good");
    CHECK(check(Key::limit, "2=1GiB") ==
          "cuslice: --limit: 1GiB: '2' names no GPU that is here; there are 2 GPUs: 0 GPU-5f10, 1 GPU-5f20");
    CHECK(check(Key::headroom, "0000:02:00.0=1GiB") ==
          "cuslice: --headroom: 1GiB: '0000:02:00.0' names no GPU that is here; there are 2 GPUs: 0 GPU-5f10, 1 "
          "GPU-5f20");
    CHECK(check(Key::limit, "GPU-5f=1GiB") ==
          "cuslice: --limit: 1GiB: 'GPU-5f' names 2 GPUs; write more of its UUID: 0 GPU-5f10, 1 GPU-5f20");
    CHECK(check(Key::limit, "0=1GiB,GPU-5f1=2GiB") ==
          "cuslice: --limit: 2GiB: 'GPU-5f1' and '0' are the same GPU GPU-5f10, which --limit gives 1GiB; keep one of "
          "them");
    CHECK(check(Key::headroom, "01:00.0=1GiB,GPU-5f1=2GiB") ==
          "cuslice: --headroom: 2GiB: 'GPU-5f1' and '01:00.0' are the same GPU GPU-5f10, which --headroom gives 1GiB; "
          "keep one "
          "of them");
    // Where only some of the GPUs are known, one that is not there may be among the others.
    CHECK(check(Key::limit, "2=1GiB", false) == "good");
}

TEST_CASE("a value that is hidden by a stronger source is no rival of its equals") {
    Settings settings;
    add(settings, Key::limit, {Source::environment, 0}, "0=1GiB,GPU-5f1=2GiB");
    add(settings, Key::limit, {Source::flag, 0}, "3GiB");
    ConfigError error;
    CHECK(check_against(settings, kBoth, true, error));
    CHECK(amount_for(settings, kFirst, 8 * kGiB).bytes == 3 * kGiB);
}

TEST_CASE("fraction and limit are rivals on one GPU under two names") {
    Settings settings;
    add(settings, Key::fraction, {}, "0=0.5");
    add(settings, Key::limit, {}, "GPU-5f1=2GiB");
    ConfigError error;
    CHECK_FALSE(check_against(settings, kBoth, true, error));
    CHECK(line(error) ==
          "cuslice: --limit: 2GiB: 'GPU-5f1' and '0' are the same GPU GPU-5f10, which --fraction gives 0.5; keep one "
          "of them");
}

// "1073741824+context by --limit": what a limit and a ceiling make of a GPU of 16 GiB.
std::string amount(const std::string& limit, const std::string& ceiling = "") {
    Settings settings;
    Reason why;
    REQUIRE((limit.empty() || settings.add({.key = Key::limit, .value = limit, .origin = "--limit"}, why)));
    REQUIRE((ceiling.empty() ||
             settings.add({.key = Key::limit, .ceiling = true, .value = ceiling, .origin = "ceiling"}, why)));
    const Amount found = amount_for(settings, kFirst, 16 * kGiB);
    return std::to_string(found.bytes / kGiB) + (found.plus_context ? "+context by " : " by ") +
           std::string(found.origin);
}

TEST_CASE("the context comes on top of a limit that says so, unless a ceiling counts it") {
    CHECK(amount("4GiB") == "4 by --limit");
    CHECK(amount("4GiB+context") == "4+context by --limit");
    CHECK(amount("40GiB+context") == "16+context by --limit");
    CHECK(amount("4GiB+context", "8GiB") == "4 by --limit");
    CHECK(amount("4GiB+context", "2GiB") == "2 by ceiling");
    CHECK(amount("4GiB+context", "8GiB+context") == "4+context by --limit");
    CHECK(amount("4GiB+context", "2GiB+context") == "2+context by ceiling");
    CHECK(amount("4GiB", "8GiB+context") == "4 by --limit");
    CHECK(amount("4GiB", "2GiB+context") == "2 by ceiling");
    CHECK(amount("", "2GiB+context") == "2+context by ceiling");
    for (const char* wrong : {"+context", "4GiB+Context", "4GiB+context+context", "4GiB +context", "0GiB+context"}) {
        Settings settings;
        Reason why;
        CAPTURE(wrong);
        CHECK_FALSE(settings.add({.key = Key::limit, .value = wrong, .origin = "--limit"}, why));
        CHECK_FALSE(why.view().empty());
    }
    Settings others;
    Reason why;
    CHECK_FALSE(others.add({.key = Key::headroom, .value = "1GiB+context", .origin = "--headroom"}, why));
    CHECK_FALSE(others.add({.key = Key::group_limit, .value = "1GiB+context", .origin = "--group-limit"}, why));
    CHECK_FALSE(others.add({.key = Key::fraction, .value = "0.5+context", .origin = "--fraction"}, why));
}

// The message about these settings beside --group, or "good".
std::string in_group(const std::string& limit, const std::string& stronger = "") {
    Settings settings;
    add(settings, Key::group, {}, "team");
    add(settings, limit.find("=") == limit.npos ? Key::limit : Key::split, {Source::user_file}, limit);
    if (!stronger.empty())
        add(settings, Key::limit, {}, stronger);
    ConfigError error;
    return check_combination(settings, error) ? "good" : line(error);
}

TEST_CASE("in a group no context comes on top") {
    CHECK(in_group("4GiB") == "good");
    CHECK(in_group("4GiB+context") ==
          "cuslice: --limit: memory.limit: 4GiB+context: +context can't be had in a group, whose limit counts contexts "
          "as well");
    CHECK(in_group("4GiB+context", "4GiB") == "good");
    CHECK(in_group("0=1GiB+2GiB") == "good");
    CHECK(in_group("0=1GiB+2GiB+context").find("+context can't be had in a group") != std::string::npos);
}

TEST_CASE("settings tell whether the order of the GPUs matters") {
    Settings settings;
    add(settings, Key::limit, {}, "GPU-5f1=2GiB,0000:81:00.0=1GiB,4GiB");
    CHECK_FALSE(settings.needs_index());
    add(settings, Key::headroom, {}, "1=64MiB");
    CHECK(settings.needs_index());
}

TEST_CASE("there is room for 256 settings and 32 KiB of text, and more is refused") {
    Settings settings;
    ConfigError error;
    for (unsigned i = 0; i < Settings::kMaxEntries; ++i)
        add(settings, Key::limit, {}, std::to_string(i) + "=1GiB");
    CHECK_FALSE(add_list(settings, Key::limit, {}, "--limit", "300=1GiB", error));
    CHECK(line(error) == "cuslice: --limit: 300=1GiB: too many settings in all: 256 values, 32 KiB of text");
    CHECK(settings.entries().size() == Settings::kMaxEntries);

    Settings long_texts;
    const std::string path = "/" + std::string(20000, 'x');
    add(long_texts, Key::driver, {Source::flag, 0}, path);
    CHECK_FALSE(add_list(long_texts, Key::driver, {Source::environment, 0}, "CUSLICE_DRIVER", path, error));
    CHECK(line(error).ends_with("...: too many settings in all: 256 values, 32 KiB of text"));
}

TEST_CASE("a hand-over brings back what was written, one level weaker, whatever the texts hold") {
    Settings settings;
    add(settings, Key::log, {Source::flag, 3}, "info:/tmp/a b;c%d\xc3\xa9=,.log");
    add(settings, Key::limit, {Source::environment, 255}, "0=4GiB");
    const std::string text = write(settings);
    CHECK(text == "1;flag.3 log * info:/tmp/a%20b%3Bc%25d\xc3\xa9=,.log --log;environment.255 limit 0 4GiB --limit");
    Settings back;
    ConfigError error;
    REQUIRE(read_handover(back, text, HandOverPart::all, error));
    REQUIRE(back.entries().size() == 2);
    CHECK(back.entries()[0].value == "info:/tmp/a b;c%d\xc3\xa9=,.log");
    CHECK(back.entries()[0].rank == Rank{Source::flag, 4});
    CHECK(back.entries()[1].rank == Rank{Source::environment, 255});
    CHECK(back.entries()[1].number == 4 * kGiB);
}

TEST_CASE("a hand-over that does not fit is not written at all") {
    Settings settings;
    add(settings, Key::limit, {}, "4GiB");
    const size_t length = write(settings).size();
    std::string buffer(length + 1, '\0');
    CHECK(write_handover(settings, buffer) == length);
    buffer.resize(length);
    CHECK(write_handover(settings, buffer) == 0);
}

TEST_CASE("a hand-over with any byte changed is read or refused, with the variable's name", "[fuzz]") {
    const std::string good = "1;flag.0 limit * 4GiB --limit;system-file.1 ceiling.limit 0 8GiB ceiling%20/x:1:1";
    std::mt19937 random(4);
    int refused = 0;
    for (int i = 0; i < 50000; ++i) {
        std::string text = good;
        for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
            text[random() % text.size()] = static_cast<char>(random() % 256);
        }
        Settings settings;
        ConfigError error;
        if (read_handover(settings, text, HandOverPart::all, error))
            continue;
        ++refused;
        REQUIRE(line(error).starts_with("cuslice: CUSLICE_SETTINGS: "));
        REQUIRE_FALSE(error.reason.empty());
    }
    CHECK(refused > 10000);
}

}  // namespace cuslice
