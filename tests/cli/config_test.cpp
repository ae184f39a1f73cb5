// SPDX-License-Identifier: Apache-2.0
// cuslice config. A default is a row's own (config/key.cpp): a new setting changes nothing here.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/key.h"
#include "config/value.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

using Json = nlohmann::ordered_json;

struct Shown {
    std::string gpu;
    std::string value;
    std::string origin = "default";
    std::string source = "default";
};
using ByKey = std::map<Key, std::vector<Shown>>;

Shown default_of(const KeyTraits& traits) { return {traits.per_gpu ? "*" : "-", std::string(traits.default_value)}; }

// `shown`, and the default of each setting that isn't in it. One line speaks for fraction and limit.
ByKey with_defaults(ByKey shown) {
    for (const KeyTraits& traits : all_keys())
        if (traits.key != Key::fraction)
            shown.try_emplace(traits.key, std::vector<Shown>{default_of(traits)});
    return shown;
}

std::string padded(std::string_view text, size_t width) {
    return std::string(text) + std::string(width - text.size(), ' ');
}

// A cell that begins in column `at`, as a table of 80 columns has it.
std::string folded(const std::string& text, size_t at) {
    std::string cell;
    for (size_t i = 0; i < text.size(); i += 80 - at)
        cell += (i == 0 ? "" : "\n" + std::string(at, ' ')) + text.substr(i, 80 - at);
    return cell;
}

std::string table_of(const ByKey& shown) {
    size_t widest_key = 0;
    size_t widest_value = 0;
    for (const auto& [key, rows] : shown) {
        widest_key = std::max(widest_key, traits_of(key).name.view().size());
        for (const Shown& row : rows)
            widest_value = std::max(widest_value, row.value.size());
    }
    const auto line = [&](std::string_view key, const Shown& row) {
        const std::string before =
            padded(key, widest_key + 2) + padded(row.gpu, 5) + padded(row.value, widest_value + 2);
        return before + folded(row.origin, before.size()) + "\n";
    };
    std::string table = line("KEY", {"GPU", "VALUE", "FROM"});
    for (const auto& [key, rows] : shown)
        for (const Shown& row : rows)
            table += line(traits_of(key).name, row);
    return table;
}

}  // namespace

TEST_CASE("config prints what holds, where it came from, and which files were looked at") {
    const Folder folder;
    const std::string user =
        folder.write("home/.config/cuslice/cuslice.toml",
                     "log = \"info\"\n[memory]\nlimit = \"3GiB\"\n[gpu.1]\nheadroom = \"64MiB\"\n");
    const std::string home = folder.path() + "/home";
    const Outcome outcome =
        run({kLauncher, "config", "--limit", "0=4GiB"}, with(plain_environment(home), {"CUSLICE_HEADROOM=1MiB"}), home);
    CHECK(outcome.err.empty());
    CHECK(outcome.exit_code == 0);
    // The user's own headroom for GPU 1 is hidden by the environment's for every GPU.
    const ByKey set = {{Key::limit, {{"0", "4GiB", "--limit"}, {"*", "3GiB", user + ":3:1"}}},
                       {Key::headroom, {{"*", "1MiB", "CUSLICE_HEADROOM"}}},
                       {Key::log, {{"-", "info", user + ":1:1"}}}};
    const std::string files =
        "\n"
        "FILE            STATE   PATH\n"
        "current-folder  absent  " +
        folded(home + "/cuslice.toml", 24) +
        "\n"
        "user-file       found   " +
        folded(user, 24) +
        "\n"
        "system-file     absent  " +
        folded(kSystemFile, 24) + "\n";
    CHECK(outcome.out == table_of(with_defaults(set)) + files);
}

TEST_CASE("config --json says the same to programs") {
    const Folder folder;
    const std::string file = folder.write("se\"t.toml", "[gpu.\"GPU-5f\"]\nfraction = 0.5\n");
    const Outcome outcome = run({kLauncher, "config", "--json", "--config", file, "--log=warn", "--driver=/dev/null"},
                                plain_environment(folder.path()), "/");
    CHECK(outcome.exit_code == 0);
    const ByKey set = {{Key::fraction, {{"GPU-5f", "0.5", file + ":2:1", "config-file"}}},
                       {Key::log, {{"-", "warn", "--log", "flag"}}},
                       {Key::config, {{"-", file, "--config", "flag"}}},
                       {Key::driver, {{"-", "/dev/null", "--driver", "flag"}}}};
    const Json said = Json::parse(outcome.out);
    Json settings = Json::array();
    for (const auto& [key, rows] : with_defaults(set)) {
        for (const Shown& row : rows) {
            // A default's value is another test's.
            const Json value = row.source == "default" ? said["settings"][settings.size()]["value"] : Json(row.value);
            settings.push_back({{"key", traits_of(key).name.view()},
                                {"gpu", row.gpu == "-" ? Json() : Json(row.gpu)},
                                {"value", value},
                                {"source", row.source},
                                {"origin", row.origin}});
        }
    }
    CHECK(said["version"] == 2);
    CHECK(said["settings"] == settings);
    CHECK(said["files"] == Json::array({{{"source", "config-file"}, {"state", "found"}, {"path", file}},
                                        {{"source", "current-folder"}, {"state", "absent"}, {"path", "//cuslice.toml"}},
                                        {{"source", "user-file"},
                                         {"state", "absent"},
                                         {"path", folder.path() + "/.config/cuslice/cuslice.toml"}},
                                        {{"source", "system-file"}, {"state", "absent"}, {"path", kSystemFile}}}));
    CHECK(said.size() == 3);
    CHECK(outcome.out.find("se\\\"t.toml") != outcome.out.npos);
}

TEST_CASE("config --json has null where nothing is set, and otherwise a value that the setting takes") {
    const Folder folder;
    const auto settings = [&](const Words& options) {
        const Outcome outcome = run(with({kLauncher, "config", "--json"}, options), plain_environment(folder.path()));
        return Json::parse(outcome.out).at("settings");
    };
    const std::vector<std::string_view> nothing = {"limit",  "gpus",   "split",   "group", "group-limit", "record",
                                                   "config", "driver", "runtime", "fake",  "fake-machine"};
    for (const auto& setting : settings({})) {
        INFO(setting);
        const std::string key = setting.at("key");
        const Json& value = setting.at("value");
        if (value.is_null())
            continue;
        CHECK(std::ranges::find(nothing, key) == nothing.end());
        uint64_t number = 0;
        bool automatic = false;
        Reason why;
        CHECK(parse_value(*find_key(key), value.get<std::string>(), number, automatic, why));
    }
    // A group may be called so.
    const Json named = settings({"--group", "none"});
    CHECK(std::ranges::any_of(
        named, [](const Json& setting) { return setting.at("key") == "group" && setting.at("value") == "none"; }));
}

}  // namespace cuslice::tests
