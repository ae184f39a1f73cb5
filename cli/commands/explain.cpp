// SPDX-License-Identifier: Apache-2.0
// cuslice config --explain: which rule of the system holds for a process, and why none before it does.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/settings/launcher_settings.h"
#include "cli/text/exit_codes.h"
#include "cli/text/json.h"
#include "cli/text/report.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "config/rules/load.h"
#include "config/text_file.h"

namespace cuslice::cli {
namespace {

using rules::Condition;
using rules::Doubt;
using rules::Identity;
using rules::Match;
using rules::Rule;

// The outcome of one rule. `asked`: no rule before it holds.
struct Row {
    std::string name, path;
    unsigned line, column;
    bool asked;
    Match match;
    bool limits;
    bool conditions;
};

struct Ceiling {
    std::string gpu, key, value, origin;
};

struct Explanation {
    std::unique_ptr<Identity> identity = std::make_unique<Identity>();
    std::vector<Row> rows;
    std::vector<Ceiling> ceilings;  // of the rule that holds

    const Row* holding() const {
        for (const Row& row : rows)
            if (row.asked && row.match.fits)
                return &row;
        return nullptr;
    }
};

bool note(void* context, const Rule& rule, const Identity&, const Match* match, ConfigError&) {
    auto& explanation = *static_cast<Explanation*>(context);
    const bool conditions =
        !rule.user.empty() || !rule.group.empty() || !rule.cgroup.empty() || !rule.executable.empty();
    explanation.rows.push_back({std::string(rule.name), std::string(rule.path), rule.line, rule.column,
                                match != nullptr, match == nullptr ? Match() : *match, rule.limit_count != 0,
                                conditions});
    if (match == nullptr || !match->fits)
        return true;
    for (const rules::Limit& limit : rule.limit_list()) {
        std::string origin(rule.path);
        origin += ":" + std::to_string(limit.line) + ":" + std::to_string(limit.column);
        explanation.ceilings.push_back({limit.gpu.empty() ? "*" : std::string(limit.gpu.view()),
                                        std::string(word_of(limit)), std::string(limit.value), origin});
    }
    return true;
}

std::string name_of(Condition condition) {
    switch (condition) {
        case Condition::user:
            return "user";
        case Condition::group:
            return "group";
        case Condition::cgroup:
            return "cgroup";
        case Condition::executable:
            return "executable";
        case Condition::none:
            break;
    }
    return "";
}

std::string text_of(Doubt doubt) {
    switch (doubt) {
        case Doubt::user_namespace:
            return "user namespace";
        case Doubt::cgroup_namespace:
            return "cgroup namespace";
        case Doubt::too_many:
            return "too many groups";
        case Doubt::unknown:
        case Doubt::none:
            break;
    }
    return "not known";
}

std::string reason_of(const Row& row) {
    if (!row.asked)
        return "not asked: a rule before it holds";
    const std::string condition = name_of(row.match.decided_by);
    if (condition.empty())
        return row.conditions ? "all its conditions fit" : "it has no conditions";
    if (row.match.doubt == Doubt::none)
        return condition + " doesn't fit";
    return condition + " can't be told: " + text_of(row.match.doubt) +
           (row.limits ? "; a limit holds then" : "; an exemption doesn't hold then");
}

std::vector<std::string> cgroups_of(const Identity& identity) {
    std::vector<std::string> paths;
    std::string_view text = identity.cgroups, line;
    while (take_line(text, line))
        paths.emplace_back(line);
    return paths;
}

std::string with_doubt(const std::string& text, Doubt doubt) {
    if (doubt == Doubt::none)
        return text;
    return text.empty() ? "can't be told: " + text_of(doubt) : text + " (not sure: " + text_of(doubt) + ")";
}

std::string as_text(int pid, const Explanation& explanation) {
    const Identity& identity = *explanation.identity;
    std::string groups, cgroups;
    for (const unsigned group : identity.group_list())
        groups += (groups.empty() ? "" : " ") + std::to_string(group);
    std::vector<std::string> seen;  // a path that several hierarchies have, once
    for (const std::string& path : cgroups_of(identity)) {
        if (std::find(seen.begin(), seen.end(), path) != seen.end())
            continue;
        cgroups += (cgroups.empty() ? "" : " ") + path;
        seen.push_back(path);
    }
    std::string text = format_table({{"PROCESS", std::to_string(pid)},
                                     {"user", with_doubt(std::to_string(identity.user), identity.user_doubt)},
                                     {"groups", with_doubt(groups, identity.groups_doubt)},
                                     {"cgroups", with_doubt(cgroups, identity.cgroups_doubt)},
                                     {"executable", std::string(identity.executable)}},
                                    style_of_output());
    if (identity.elsewhere)
        text += "\n" + wrap("It has another mount namespace or root: it reads the rules that are there, not these.", 0);
    if (explanation.rows.empty())
        return text + "\nThere are no rules.\n";
    std::vector<std::vector<Cell>> table = {{"RULE", "FITS", "WHY"}};
    for (const Row& row : explanation.rows)
        table.push_back({row.name, !row.asked ? "-" : row.match.fits ? "yes" : "no", reason_of(row)});
    text += "\n" + format_table(table, style_of_output(2));
    const Row* const holding = explanation.holding();
    if (holding == nullptr)
        return text + "\nNo rule holds.\n";
    std::vector<std::vector<Cell>> ceilings = {{"GPU", "CEILING", "VALUE", "FROM"}};
    for (const Ceiling& one : explanation.ceilings)
        ceilings.push_back({one.gpu, one.key, one.value, one.origin});
    if (ceilings.size() == 1)
        return text + "\nRule " + holding->name + " holds. It limits nothing.\n";
    return text + "\nRule " + holding->name + " holds.\n\n" + format_table(ceilings, style_of_output());
}

Json doubt_json(Doubt doubt) { return doubt == Doubt::none ? Json() : Json(text_of(doubt)); }

std::string as_json(int pid, const Explanation& explanation) {
    const Identity& identity = *explanation.identity;
    Json groups = Json::array(), list = Json::array(), ceilings = Json::array();
    for (const unsigned group : identity.group_list())
        groups.push_back(group);
    for (const Row& row : explanation.rows) {
        const std::string condition = name_of(row.match.decided_by);
        list.push_back({{"name", row.name},
                        {"origin", row.path + ":" + std::to_string(row.line) + ":" + std::to_string(row.column)},
                        {"fits", row.asked ? Json(row.match.fits) : Json()},
                        {"decided_by", condition.empty() ? Json() : Json(condition)},
                        {"doubt", doubt_json(row.match.doubt)}});
    }
    for (const Ceiling& one : explanation.ceilings)
        ceilings.push_back({{"gpu", one.gpu}, {"key", one.key}, {"value", one.value}, {"origin", one.origin}});
    const Row* const holding = explanation.holding();
    return json_text({{"version", 1},
                      {"pid", pid},
                      {"user", identity.user},
                      {"user_doubt", doubt_json(identity.user_doubt)},
                      {"groups", groups},
                      {"groups_doubt", doubt_json(identity.groups_doubt)},
                      {"cgroups", cgroups_of(identity)},
                      {"cgroups_doubt", doubt_json(identity.cgroups_doubt)},
                      {"executable", identity.executable.view()},
                      {"elsewhere", identity.elsewhere},
                      {"rules", list},
                      {"holds", holding == nullptr ? Json() : Json(holding->name)},
                      {"ceilings", ceilings}});
}

cuslice_toml_parse_function* linked_parser(Reason&) { return cuslice_toml_parse; }

}  // namespace

int explain_rules(const Invocation& invocation) {
    const int pid = invocation.arguments.pid;
    const SystemPlaces system = places_of(invocation);
    Explanation explanation;
    Reason why;
    if (!rules::read_identity_of(system.root, static_cast<unsigned>(pid), *explanation.identity, why))
        return fail("process " + std::to_string(pid) + ": " + std::string(why), kNoGpu);
    ConfigError error;
    if (!rules::visit_rules(*explanation.identity, note, &explanation, system, linked_parser, error))
        return fail(error, kConfig);
    std::fputs((invocation.arguments.json ? as_json(pid, explanation) : as_text(pid, explanation)).c_str(), stdout);
    return 0;
}

}  // namespace cuslice::cli
