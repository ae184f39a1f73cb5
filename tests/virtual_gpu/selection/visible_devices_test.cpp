// SPDX-License-Identifier: Apache-2.0
// GPUs that the driver is to bring up where GPUs are split, and the variable that tells it. The rest is in
// tests/preload.
#include "virtual_gpu/selection/visible_devices.h"

#include <stdlib.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "tests/catch.h"

extern char** environ;

namespace cuslice {
namespace {

using Texts = std::vector<std::string>;

const GpuIdentity kGpus[] = {
    {0, "GPU-10aa", "0000:01:00.0"}, {1, "GPU-20aa", "0000:81:00.0"}, {2, "GPU-30aa", "0000:82:00.0"}};
const std::string kChosen = "CUSLICE_VISIBLE_DEVICES=";
const std::string kVisible = "CUDA_VISIBLE_DEVICES=";

class Lines {
  public:
    explicit Lines(const Texts& texts) : texts_(texts) {
        for (const std::string& text : texts_)
            pointers_.push_back(text.c_str());
        pointers_.push_back(nullptr);
    }
    const char* const* get() const { return pointers_.data(); }

  private:
    Texts texts_;
    std::vector<const char*> pointers_;
};

// `level`: 0 for what this process says itself, 1 for what a launcher handed on.
std::unique_ptr<Settings> settings_of(const std::optional<std::string>& gpus, uint8_t level = 0,
                                      const std::string& split = "2") {
    auto settings = std::make_unique<Settings>();
    ConfigError error;
    REQUIRE((split.empty() || add_list(*settings, Key::split, {}, "--split", split, error)));
    REQUIRE((!gpus || add_list(*settings, Key::gpus, {Source::environment, level}, "CUSLICE_GPUS", *gpus, error)));
    return settings;
}

// "unset", the list, or the line that refuses.
std::string driver_list(const Settings& settings, const Texts& environment) {
    const Lines lines(environment);
    VisibleText list;
    bool set = false;
    ConfigError error;
    if (!physical_list(settings, kGpus, lines.get(), list, &set, error))
        return std::string(line_of(error).view());
    if (!set)
        CHECK(list.empty());
    return set ? std::string(list.view()) : "unset";
}

std::optional<std::string> visible_now() {
    const char* const value = getenv("CUDA_VISIBLE_DEVICES");
    return value ? std::optional<std::string>(value) : std::nullopt;
}

Texts environment_now() {
    Texts lines;
    for (char** line = environ; *line; ++line)
        lines.emplace_back(*line);
    return lines;
}

}  // namespace

TEST_CASE("with a split the driver gets the list that was chosen, whatever the program has set") {
    const auto none = settings_of(std::nullopt);
    const Texts chosen{kChosen + "GPU-30aa,GPU-10aa"};
    CHECK(driver_list(*none, chosen) == "GPU-30aa,GPU-10aa");
    CHECK(driver_list(*none, {chosen[0], kVisible + "1"}) == "GPU-30aa,GPU-10aa");
    CHECK(driver_list(*none, {kChosen}).empty());
    CHECK(driver_list(*none, {}) == "unset");
    CHECK(driver_list(*none, {kVisible + "1"}) == "unset");
    // The launcher has resolved its own.
    CHECK(driver_list(*settings_of("2", 1), chosen) == "GPU-30aa,GPU-10aa");
}

TEST_CASE("with a split gpus is resolved here where nobody did, within what was chosen") {
    CHECK(driver_list(*settings_of("2,0"), {}) == "GPU-30aa,GPU-10aa");
    CHECK(driver_list(*settings_of("2,0"), {kVisible + "1"}) == "GPU-30aa,GPU-10aa");
    CHECK(driver_list(*settings_of("2,0", 1), {}) == "GPU-30aa,GPU-10aa");
    CHECK(driver_list(*settings_of(""), {}).empty());
    CHECK(driver_list(*settings_of("0"), {kChosen + "GPU-30aa,GPU-10aa", kVisible + "0"}) == "GPU-10aa");
    CHECK(driver_list(*settings_of("1"), {kChosen + "GPU-30aa,GPU-10aa"}) ==
          "cuslice: CUSLICE_GPUS: 1: '1' is not among the GPUs that are left to choose from: CUDA_VISIBLE_DEVICES "
          "allows 2 GPU-30aa, 0 GPU-10aa");
    CHECK(driver_list(*settings_of("3"), {}).find("'3' names no GPU that is here") != std::string::npos);
}

TEST_CASE("with a split the program's own variable is left as it is, and without one as before") {
    const Texts lines{kChosen + "GPU-30aa,GPU-10aa", kVisible + "1"};
    ConfigError error;
    REQUIRE(setenv("CUDA_VISIBLE_DEVICES", "1", 1) == 0);
    VisibleDevices split, whole, late;
    REQUIRE(split.decide(*settings_of(std::nullopt), kGpus, Lines(lines).get(), error));
    CHECK(split.apply());
    CHECK(visible_now() == "1");
    REQUIRE(whole.decide(*settings_of(std::nullopt, 0, ""), kGpus, Lines(lines).get(), error));
    REQUIRE(late.decide(*settings_of(std::nullopt, 0, ""), kGpus, Lines(lines).get(), error));
    CHECK(visible_now() == "1");
    CHECK(whole.apply());
    CHECK(visible_now() == "GPU-10aa");
    // A decision that was made for another line than the present one is not applied.
    CHECK_FALSE(late.apply());
    CHECK(visible_now() == "GPU-10aa");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_CASE("the driver's list is in the environment for the time of its cuInit, and then what the program had") {
    for (const char* own : {"1", "", "GPU-virtual", static_cast<const char*>(nullptr)}) {
        for (const char* list : {"GPU-30aa,GPU-10aa", "", "1", static_cast<const char*>(nullptr)}) {
            INFO((own ? own : "unset") << " " << (list ? list : "unset"));
            unsetenv("CUDA_VISIBLE_DEVICES");
            if (own)
                REQUIRE(setenv("CUDA_VISIBLE_DEVICES", own, 1) == 0);
            const char* const place = getenv("CUDA_VISIBLE_DEVICES");
            const Texts before = environment_now();
            {
                const VisibleDuringInit during(list ? std::string_view(list) : std::string_view(), list != nullptr);
                CHECK(visible_now() == (list ? std::optional<std::string>(list) : std::nullopt));
                CHECK(environment_now().size() == before.size() - (own ? 1 : 0) + (list ? 1 : 0));
            }
            CHECK(getenv("CUDA_VISIBLE_DEVICES") == place);
            CHECK(environment_now() == before);
        }
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_CASE("a line that the program keeps itself is the one that comes back") {
    static char line[] = "CUDA_VISIBLE_DEVICES=3";
    REQUIRE(putenv(line) == 0);
    { const VisibleDuringInit during("GPU-30aa", true); }
    CHECK(getenv("CUDA_VISIBLE_DEVICES") == std::strchr(line, '3'));
    { const VisibleDuringInit during({}, false); }
    CHECK(getenv("CUDA_VISIBLE_DEVICES") == std::strchr(line, '3'));
    unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_CASE("what the program sets while its driver starts stays") {
    REQUIRE(setenv("CUDA_VISIBLE_DEVICES", "1", 1) == 0);
    {
        const VisibleDuringInit during("GPU-30aa", true);
        REQUIRE(setenv("CUDA_VISIBLE_DEVICES", "2", 1) == 0);
    }
    CHECK(visible_now() == "2");
    {
        const VisibleDuringInit during({}, false);
        REQUIRE(setenv("CUDA_VISIBLE_DEVICES", "0", 1) == 0);
    }
    CHECK(visible_now() == "0");
    {
        const VisibleDuringInit during("GPU-30aa", true);
        unsetenv("CUDA_VISIBLE_DEVICES");
    }
    CHECK_FALSE(visible_now());
    {
        const VisibleDuringInit during("GPU-30aa", true);
        CHECK(visible_now() == "GPU-30aa");
    }
    CHECK_FALSE(visible_now());
}

}  // namespace cuslice
