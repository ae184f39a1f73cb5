// SPDX-License-Identifier: Apache-2.0
// Shares of a GPU's time: how they are written, which of them holds, and what they can't be had with.
#include <string>
#include <utility>
#include <vector>

#include "config/combination.h"
#include "config/percent.h"
#include "tests/config/made_rules.h"

namespace cuslice {
namespace {

const std::string kNeeds = "a whole percent from 1% to 100% is needed, as 30% or 0.3";

using Options = std::vector<std::pair<Key, const char*>>;

// "weight/cap by origin" on the two GPUs, or why the options can't hold together.
std::string shares(const Options& options) {
    Settings settings;
    ConfigError error;
    for (const auto& [key, text] : options) {
        const std::string origin = "--" + std::string(traits_of(key).name);
        if (!add_list(settings, key, {}, origin, text, error))
            return std::string(line_of(error).view());
    }
    if (!check_combination(settings, error))
        return std::string(line_of(error).view());
    return text_of_shares(settings);
}

}  // namespace

TEST_CASE("a percent is a whole one, with its sign or as a part of 1") {
    uint64_t percent = 0;
    Reason why;
    for (const auto& [text, value] : {std::pair<const char*, uint64_t>{"1%", 1},
                                      {"30%", 30},
                                      {"030%", 30},
                                      {"30.0%", 30},
                                      {"100%", 100},
                                      {"0.3", 30},
                                      {"0.30", 30},
                                      {".3", 30},
                                      {"0.01", 1},
                                      {"1.0", 100}}) {
        CAPTURE(text);
        CHECK((parse_percent(text, percent, why) && percent == value));
    }
    for (const char* wrong : {"", "%", "0%", "101%", "0.5%", "0.305", "0.0", "1.1", "-30%", "30 %", "a third"}) {
        CAPTURE(wrong);
        CHECK_FALSE(parse_percent(wrong, percent, why));
        CHECK(why.view() == kNeeds);
    }
    for (const char* bare : {"1", "30", "100"}) {
        CHECK_FALSE(parse_percent(bare, percent, why));
        CHECK(why.view() == kNeeds + "; did you mean " + bare + "%");
    }
    for (const char* bare : {"0", "101", "1000", "18446744073709551646"}) {
        CHECK_FALSE(parse_percent(bare, percent, why));
        CHECK(why.view() == kNeeds);
    }
}

TEST_CASE("a share and its cap hold for every GPU or for one") {
    CHECK(shares({}) == "- -");
    CHECK(shares({{Key::share, "30%"}}) == "30/100 by --share 30/100 by --share");
    CHECK(shares({{Key::share, "0=30%"}}) == "30/100 by --share -");
    CHECK(shares({{Key::share, "0.3,1=70%"}, {Key::share_cap, "50%,1=100%"}}) == "30/50 by --share 70/100 by --share");
    CHECK(shares({{Key::share, "0=30%"}, {Key::share_cap, "50%"}}) == "30/50 by --share -");
    CHECK(shares({{Key::share, "30%"}, {Key::share_cap, "30%"}}) == "30/30 by --share 30/30 by --share");
}

TEST_CASE("a cap needs a share of its GPU, and is not below it") {
    CHECK(shares({{Key::share_cap, "50%"}}) ==
          "cuslice: --share-cap: 50%: it needs a share of that GPU, as --share 30%");
    CHECK(shares({{Key::share, "0=30%"}, {Key::share_cap, "1=50%"}}) ==
          "cuslice: --share-cap: 1=50%: it needs a share of that GPU, as --share 30%");
    const std::string below = ": below the share, which is ";
    CHECK(shares({{Key::share, "50%"}, {Key::share_cap, "40%"}}) ==
          "cuslice: --share-cap: 40%" + below + "50% by --share");
    CHECK(shares({{Key::share, "10%,1=70%"}, {Key::share_cap, "60%"}}) ==
          "cuslice: --share-cap: 60%" + below + "70% by --share");
    CHECK(shares({{Key::share, "70%"}, {Key::share_cap, "1=60%"}}) ==
          "cuslice: --share-cap: 1=60%" + below + "70% by --share");
    // A value that doesn't hold there is no reason.
    CHECK(shares({{Key::share, "30%,1=70%"}, {Key::share_cap, "60%,1=80%"}}) == "30/60 by --share 70/80 by --share");
}

TEST_CASE("a stronger source's share hides a weaker one's from its cap") {
    Settings settings;
    ConfigError error;
    REQUIRE(add_list(settings, Key::share, {Source::user_file}, "FILE", "90%", error));
    REQUIRE(add_list(settings, Key::share, {}, "--share", "20%", error));
    REQUIRE(add_list(settings, Key::share_cap, {}, "--share-cap", "40%", error));
    CHECK(check_combination(settings, error));
    CHECK(text_of_shares(settings) == "20/40 by --share 20/40 by --share");
}

TEST_CASE("a cap in a file waits for a share") {
    Settings settings;
    ConfigError error;
    REQUIRE(add_list(settings, Key::share_cap, {Source::user_file}, "FILE", "40%", error));
    CHECK(check_combination(settings, error));
    CHECK(text_of_shares(settings) == "- -");
    CHECK_FALSE(shares_time(settings));
}

TEST_CASE("a share beside a split is refused, and names both") {
    CHECK(shares({{Key::split, "1=2"}, {Key::share, "30%"}}) ==
          "cuslice: --share: 30%: not supported yet together with split, which is from --split");
}

TEST_CASE("a turn's length is 50 ms unless it is set, from 5 to 500") {
    Settings settings;
    CHECK(share_quantum_of(settings) == 50'000'000);
    ConfigError error;
    REQUIRE(add_list(settings, Key::share_quantum, {}, "--share-quantum", "5ms", error));
    CHECK(share_quantum_of(settings) == 5'000'000);
    CHECK_FALSE(shares_time(settings));
    uint64_t number = 0;
    bool automatic = false;
    Reason why;
    CHECK((parse_value(Key::share_quantum, "500ms", number, automatic, why) && number == 500));
    for (const char* wrong : {"4ms", "501ms", "1s", "0ms", "no", ""}) {
        CAPTURE(wrong);
        CHECK_FALSE(parse_value(Key::share_quantum, wrong, number, automatic, why));
        CHECK(why.view() == "a time from 5ms to 500ms, as 20ms");
    }
    CHECK_FALSE(parse_value(Key::share_quantum, "50", number, automatic, why));
    CHECK(why.view() == "a time from 5ms to 500ms, as 20ms; did you mean 50ms");
}

TEST_CASE("HAMi's limit of multiprocessors is the weakest share") {
    Made made;
    CHECK(made.shares({"CUDA_DEVICE_SM_LIMIT=30"}) == "30/100 by CUDA_DEVICE_SM_LIMIT 30/100 by CUDA_DEVICE_SM_LIMIT");
    CHECK(made.shares({"CUDA_DEVICE_SM_LIMIT=30", "CUDA_DEVICE_SM_LIMIT_1=60"}) ==
          "30/100 by CUDA_DEVICE_SM_LIMIT 60/100 by CUDA_DEVICE_SM_LIMIT_1");
    CHECK(made.shares({"CUDA_DEVICE_SM_LIMIT=30", "CUSLICE_SHARE=0=50%"}) ==
          "50/100 by CUSLICE_SHARE 30/100 by CUDA_DEVICE_SM_LIMIT");
    for (const char* none : {"CUDA_DEVICE_SM_LIMIT=", "CUDA_DEVICE_SM_LIMIT=0", "CUDA_DEVICE_SM_LIMIT=100",
                             "CUDA_DEVICE_SM_LIMITS=30", "CUDA_DEVICE_SM_LIMIT_X=30"})
        CHECK(made.shares({none}) == "- -");
    for (const char* wrong : {"101", "30%", "-1", "x", "0000030"})
        CHECK(made.shares({"CUDA_DEVICE_SM_LIMIT=" + std::string(wrong)}) ==
              "cuslice: CUDA_DEVICE_SM_LIMIT: " + std::string(wrong) +
                  ": HAMi takes a whole percent from 0 to 100, as 30");
    CHECK(made.shares({"CUDA_DEVICE_SM_LIMIT=30", "CUSLICE_SPLIT=2"})
              .starts_with("cuslice: CUDA_DEVICE_SM_LIMIT: 30: not supported yet together with split"));
}

TEST_CASE("a rule's share is what a job gets that asks for none, and the most that it gets") {
    Made made;
    const std::string path = made.rules("10.toml",
                                        "[[rule]]\nname = \"a\"\ntime-share = \"40%\"\n"
                                        "time-share-cap = 0.8\ngpu.1.time-share = \"20%\"\n");
    const std::string by_rule = "by rule a (" + path + ":3:1)";
    const std::string on_second = " 20/80 by rule a (" + path + ":5:7)";
    CHECK(made.shares() == "40/80 " + by_rule + on_second);
    CHECK(made.shares({"CUSLICE_SHARE=30%"}) == "30/80 by CUSLICE_SHARE" + on_second);
    CHECK(made.shares({"CUSLICE_SHARE=50%"}) == "40/80 " + by_rule + on_second);
    CHECK(made.shares({"CUSLICE_SHARE=50%", "CUSLICE_SHARE_CAP=90%"}) == "40/80 " + by_rule + on_second);
    CHECK(made.shares({"CUSLICE_SHARE_CAP=50%"}) == "40/50 " + by_rule + " 20/50 by rule a (" + path + ":5:7)");
    // The cap that a user asks for holds for the rule's share, too.
    CHECK(made.shares({"CUSLICE_SHARE_CAP=30%"}) == "30/30 " + by_rule + " 20/30 by rule a (" + path + ":5:7)");
    CHECK(made.shares({"CUSLICE_SETTINGS=1;flag.0 share * 90%25 --share"}) == "40/80 " + by_rule + on_second);
    CHECK(made.shares({"CUSLICE_SPLIT=2"}).find("not supported yet together with split") != std::string::npos);
    CHECK(made.seen() == "8589934592 by ");
}

TEST_CASE("a rule's cap is for its share, and neither is a slice that could be shared") {
    const std::string begin = "[[rule]]\nname = \"a\"\n";
    CHECK(refused(begin + "time-share = 30\n") == ":3:1: rule.time-share: 30: " + kNeeds + "; did you mean 30%");
    CHECK(refused(begin + "time-share-cap = \"30%\"\n") == ":1:1: rule: time-share-cap needs a time-share");
    CHECK(refused(begin + "gpu.0.time-share = \"30%\"\ngpu.1.time-share-cap = \"40%\"\n") ==
          ":1:1: rule: time-share-cap needs a time-share");
    CHECK(refused(begin + "time-share = \"50%\"\ntime-share-cap = \"40%\"\n") ==
          ":1:1: rule: time-share-cap is below time-share");
    CHECK(refused(begin + "time-share = \"50%\"\ntime-share = \"40%\"\n").starts_with(":4:"));
    CHECK(refused(begin + "time-share = \"50%\"\nshare = \"user\"\n") ==
          ":1:1: rule: share needs a limit or a fraction");
}

}  // namespace cuslice
