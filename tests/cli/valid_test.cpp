// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "cli/launch/program_environment.h"
#include "cli/settings/launcher_settings.h"
#include "config/resolve.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/valid_cases.h"

namespace cuslice::tests {
namespace {

struct TestGpu {
    GpuIdentity identity;
    uint64_t total;
};

const TestGpu kGpus[] = {
    {{0, "GPU-5f1c0000-0000-0000-0000-000000000000", "0000:01:00.0"}, 8 * kGiB},
    {{1, "GPU-5f2d0000-0000-0000-0000-000000000000", "00000000:81:00.0"}, 40 * kGiB},
    {{2, "GPU-0a000000-0000-0000-0000-000000000000", "0001:C1:00.0"}, 80 * kGiB},
    {{3, "MIG-0c000000-0000-0000-0000-000000000000", "0000:c2:00.0"}, 10 * kGiB},
};

std::vector<std::string> words_of(const char* text) {
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;)
        words.push_back(word);
    return words;
}

std::string replace(std::string text, const std::string& what, const std::string& with) {
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size())) {
        text.replace(at, what.size(), with);
    }
    return text;
}

// The settings' answer to a row's question, as text: "4294967296 by --limit".
std::string answer(const Settings& settings, const Valid& row) {
    const std::string ask = row.ask;
    const TestGpu& gpu = kGpus[row.gpu];
    std::string value = "none";
    std::string origin;
    if (ask == "amount") {
        const Amount amount = amount_for(settings, gpu.identity, gpu.total);
        if (amount.limited)
            value = std::to_string(amount.bytes);
        if (!amount.limited)
            CHECK(amount.bytes == gpu.total);
        origin = amount.origin;
    } else if (ask == "headroom") {
        const auto bytes = headroom_for(settings, gpu.identity);
        const Entry* entry = find(settings, Key::headroom, gpu.identity);
        value = bytes ? std::to_string(*bytes) : "auto";
        if (entry != nullptr)
            origin = entry->origin;
    } else {
        // Entries of a key that is not per GPU are for every GPU.
        const Entry* entry = find(settings, find_key(ask)->key, gpu.identity);
        value = entry == nullptr ? "warn" : std::string(entry->value);
        if (entry != nullptr)
            origin = entry->origin;
    }
    return value + " by " + origin;
}

class Row {
  public:
    explicit Row(const Valid& row) : row_(row) {
        std::filesystem::create_directories(folder_.path() + "/work");
        place(row.config_file, "config.toml");
        place(row.current_folder, "work/cuslice.toml");
        place(row.user_file, "home/.config/cuslice/cuslice.toml");
        place(row.system_file, "system.toml");
        lines_ = {"HOME=" + folder_.path() + "/home"};
        for (const std::string& line : words_of(row.variables)) {
            // The table writes a hand-over's spaces as %, its rows being divided by spaces.
            lines_.push_back(line.starts_with("CUSLICE_SETTINGS") ? replace(line, "%", " ") : line);
        }
    }

    std::vector<std::string> words() const {
        std::vector<std::string> words = words_of(row_.options);
        words.insert(words.begin(), "config");
        if (row_.config_file != nullptr)
            words.push_back("--config=" + folder_.path() + "/config.toml");
        return words;
    }
    cli::Environment environment() const {
        std::vector<const char*> lines;
        for (const std::string& line : lines_)
            lines.push_back(line.c_str());
        lines.push_back(nullptr);
        return cli::Environment(lines.data());
    }
    std::string system_file() const { return folder_.path() + "/system.toml"; }
    std::string work() const { return folder_.path() + "/work"; }

    std::string expected() const {
        std::string text = row_.text != nullptr ? row_.text : std::to_string(row_.bytes);
        text = replace(text + " by " + row_.origin, "%CONFIG%", folder_.path() + "/config.toml");
        text = replace(text, "%USER%", folder_.path() + "/home/.config/cuslice/cuslice.toml");
        text = replace(replace(text, "%CWD%", work() + "/cuslice.toml"), "%FOLDER%", work());
        return replace(text, "%SYSTEM%", system_file());
    }

  private:
    void place(const char* text, const char* name) const {
        if (text != nullptr)
            folder_.write(name, text);
    }

    const Valid& row_;
    Folder folder_;
    std::vector<std::string> lines_;
};

cuslice_toml_parse_function* parser(Reason&) { return cuslice_toml_parse; }

// Checks how the preloaded library reads the environment that a launcher with these settings prepares.
void check_handed_on(const Settings& settings, const Row& row, const Valid& valid) {
    const std::string ask = valid.ask;
    cli::Environment environment = row.environment();
    const auto installation = cli::installation_of("/opt/bin/cuslice");
    ConfigError error;
    REQUIRE(cli::prepare_environment(environment, settings, installation, error));
    const auto lines = environment.pointers();
    Settings guest;
    const bool loaded =
        load_in_program(guest, lines.data(), parser, {row.system_file().c_str(), "", ::geteuid()}, error);
    INFO(line_of(error).view());
    REQUIRE(loaded);
    if (ask == "fake" || ask == "fake-kernels" || ask == "redirect-runtime" || ask == "runtime") {
        // These go by their own variables, which others than the library read.
        CHECK(std::string(find(guest, find_key(ask)->key)->value) ==
              std::string(find(settings, find_key(ask)->key)->value));
    } else if (ask == "fake-machine") {
        // It is the launcher's: programs find its folder in CUSLICE_FAKE_DIR.
        CHECK(find(guest, Key::fake_machine) == nullptr);
    } else {
        CHECK(answer(guest, valid) == answer(settings, valid));
    }
}

}  // namespace

TEST_CASE("a configuration gives its value and says where it came from, in the launcher and in the library") {
    STATIC_REQUIRE(std::size(kValid) >= 100);
    const std::filesystem::path before = std::filesystem::current_path();
    std::vector<GpuIdentity> identities;
    for (const TestGpu& gpu : kGpus)
        identities.push_back(gpu.identity);

    for (const Valid& valid : kValid) {
        const Row row(valid);
        INFO(valid.options << " " << valid.variables << " " << row.expected());
        std::filesystem::current_path(row.work());
        cli::Arguments arguments;
        ConfigError error;
        Settings settings;
        std::vector<cli::LookedAt> files;
        REQUIRE(cli::parse_arguments(row.words(), cli::Environment(environ), arguments, error) == 0);
        const bool loaded = cli::load_launcher(settings, arguments.flags, row.environment(),
                                               {row.system_file().c_str(), "", ::geteuid()}, files, error) &&
                            check_against(settings, identities, true, error);
        INFO(line_of(error).view());
        CHECK(loaded);
        CHECK(answer(settings, valid) == row.expected());
        check_handed_on(settings, row, valid);
    }
    std::filesystem::current_path(before);
}

}  // namespace cuslice::tests
