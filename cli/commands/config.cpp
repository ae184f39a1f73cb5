// SPDX-License-Identifier: Apache-2.0
// cuslice config: the settings that hold, and where each came from.
#include <cstdio>

#include "cli/commands.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/exit_codes.h"
#include "cli/text/json.h"
#include "cli/text/report.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"

namespace cuslice::cli {
namespace {

// One line of the output.
struct Row {
    std::string key;
    std::string gpu;
    std::string value;
    std::string source;
    std::string origin;
};

// Ceilings of several kinds hold together, and so do those of several outer jobs.
bool are_rivals(const Entry& entry, const Entry& question) {
    if (!question.ceiling)
        return true;
    if (kind_of_ceiling(entry.rank.source) != kind_of_ceiling(question.rank.source))
        return false;
    return question.rank.source != Source::outer_job || entry.rank.level == question.rank.level;
}

// The entry that holds for a GPU which `selector` names and no other selector does. Which GPU that is, and whether
// another name means the same one, only `cuslice devices` can tell.
const Entry* holding(const Settings& settings, const Entry& question, const GpuSelector& selector) {
    const Entry* best = nullptr;
    for (const Entry& entry : settings.entries()) {
        const bool same = entry.key == question.key || (is_amount(entry.key) && is_amount(question.key));
        const bool general = entry.selector.kind == GpuSelector::Kind::every;
        if (!same || !are_rivals(entry, question) || entry.ceiling != question.ceiling ||
            (!general && !entry.selector.same_as(selector)))
            continue;
        if (best == nullptr || entry.rank < best->rank || (entry.rank == best->rank && !general))
            best = &entry;
    }
    return best;
}

std::string gpu_text(const Entry& entry) {
    if (!traits_of(entry.key).per_gpu)
        return "-";
    return std::string(entry.selector.text);
}

void add_entry(const Settings& settings, const Entry& entry, std::vector<Row>& rows) {
    if (holding(settings, entry, entry.selector) != &entry)
        return;
    const std::string key = (entry.ceiling ? "ceiling." : "") + std::string(traits_of(entry.key).name);
    rows.push_back({key, gpu_text(entry), std::string(entry.value), std::string(name_of(entry.rank.source)),
                    std::string(entry.origin)});
}

// True if the key is set for every GPU, so that its default holds for none.
bool is_set(const Settings& settings, Key key) {
    for (const Entry& entry : settings.entries()) {
        const bool same = entry.key == key || (is_amount(entry.key) && is_amount(key));
        if (same && !entry.ceiling && entry.selector.kind == GpuSelector::Kind::every)
            return true;
    }
    return false;
}

// In the order of the keys, ceilings last.
std::vector<Row> rows_of(const Settings& settings) {
    std::vector<Row> rows;
    for (const bool ceiling : {false, true}) {
        for (const KeyTraits& traits : all_keys()) {
            for (const Entry& entry : settings.entries()) {
                if (entry.key == traits.key && entry.ceiling == ceiling)
                    add_entry(settings, entry, rows);
            }
            if (ceiling || traits.key == Key::fraction || is_set(settings, traits.key))
                continue;
            rows.push_back({std::string(traits.name), traits.per_gpu ? "*" : "-", std::string(traits.default_value),
                            "default", "default"});
        }
    }
    return rows;
}

std::string_view state_text(FileState state) {
    return state == FileState::found ? "found" : state == FileState::absent ? "absent" : "unreachable";
}

std::string as_table(const std::vector<Row>& rows, const std::vector<LookedAt>& files) {
    std::vector<std::vector<Cell>> table = {{"KEY", "GPU", "VALUE", "FROM"}};
    for (const Row& row : rows)
        table.push_back({row.key, row.gpu, row.value, row.origin});
    std::vector<std::vector<Cell>> looked = {{"FILE", "STATE", "PATH"}};
    for (const LookedAt& file : files) {
        looked.push_back({std::string(name_of(file.source)), std::string(state_text(file.state)), file.path});
    }
    return format_table(table, style_of_output(2)) + "\n" + format_table(looked, style_of_output());
}

// Texts of defaults that say in words what there is instead of a value. Programs get null.
bool is_prose(const Row& row) {
    const bool by_default = row.source == "default";
    return by_default && (row.value == "none" || row.value.find(' ') != row.value.npos);
}

std::string as_json(const std::vector<Row>& rows, const std::vector<LookedAt>& looked) {
    Json settings = Json::array();
    for (const Row& row : rows) {
        settings.push_back({{"key", row.key},
                            {"gpu", row.gpu == "-" ? Json() : Json(row.gpu)},
                            {"value", is_prose(row) ? Json() : Json(row.value)},
                            {"source", row.source},
                            {"origin", row.origin}});
    }
    Json files = Json::array();
    for (const LookedAt& file : looked) {
        files.push_back({{"source", name_of(file.source)}, {"state", state_text(file.state)}, {"path", file.path}});
    }
    return json_text({{"version", 2}, {"settings", settings}, {"files", files}});
}

}  // namespace

int show_config(const Invocation& invocation) {
    if (invocation.arguments.pid != 0)
        return explain_rules(invocation);
    ConfigError error;
    Launch launch;
    if (!load_launch(launch, invocation, error))
        return fail(error, kConfig);
    const std::vector<Row> rows = rows_of(launch.settings);
    std::fputs((invocation.arguments.json ? as_json(rows, launch.files) : as_table(rows, launch.files)).c_str(),
               stdout);
    return 0;
}

}  // namespace cuslice::cli
