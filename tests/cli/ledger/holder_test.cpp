// SPDX-License-Identifier: Apache-2.0
// The columns of `cuslice ps`, each of which is one row: what is made of the rows, whichever there are.
#include "cli/ledger/holder.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/text/json.h"
#include "policy/base/kernel_clock.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/made_up_job.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

Outcome ps(const Folder& folder, const Words& options) {
    return run(with({kLauncher, "ps", "--dir", folder.path()}, options),
               with(plain_environment("/nowhere"), {"COLUMNS=1000"}));
}

// Another value of the same kind.
cli::Json other_than(const cli::Json& value) {
    if (value.is_string())
        return value.get<std::string>() + "x";
    if (value.is_number_unsigned() || value.is_number_integer())
        return value.get<uint64_t>() + 1000;
    return cli::Json::array({"another", "value"});
}

}  // namespace

TEST_CASE("ps: each column has its own key, heading and place, and words for documents") {
    std::set<std::string_view> keys, headings;
    std::set<unsigned> places;
    for (const cli::HolderColumn& column : cli::holder_columns()) {
        CAPTURE(std::string(column.key));
        CHECK(keys.insert(column.key).second);
        CHECK_FALSE(column.meaning.empty());
        CHECK_FALSE(column.kind.unit.empty());
        REQUIRE(column.kind.write != nullptr);
        if (column.heading.empty())
            continue;
        CHECK(headings.insert(column.heading).second);
        CHECK(places.insert(column.place).second);
        CHECK(column.kind.cell != nullptr);
    }
}

TEST_CASE("ps: a value that another machine says comes back as it was, and one of another kind is refused") {
    cli::Holder holder;
    holder.since = now_realtime();
    const cli::Json row = cli::Json::parse(cli::json_of(holder).dump());  // as it comes from elsewhere
    for (const cli::HolderColumn& column : cli::holder_columns()) {
        if (column.kind.read == nullptr)
            continue;
        const std::string key(column.key);
        CAPTURE(key);
        cli::Json changed = row;
        changed[key] = other_than(row[key]);
        CHECK(cli::json_of(cli::read_holder(changed))[key] == changed[key]);
        for (const cli::Json& wrong : {cli::Json(-1), cli::Json(1e300), cli::Json::object(), cli::Json::array({1})}) {
            changed[key] = wrong;
            CHECK_THROWS_AS(cli::read_holder(changed), std::exception);
        }
        changed.erase(key);
        if (column.required)
            CHECK_THROWS_AS(cli::read_holder(changed), std::exception);
        else
            CHECK(cli::json_of(cli::read_holder(changed))[key] == row[key]);
    }
}

TEST_CASE("ps: the table, its JSON and help have all columns, in their orders") {
    const Folder folder;
    const Job job(folder.path(), "python");
    const std::string table = ps(folder, {}).out, help = ps(folder, {"--help"}).out;
    size_t at = 0;
    for (const cli::HolderColumn* column : cli::ps_columns()) {
        CAPTURE(std::string(column->heading));
        at = table.find(column->heading, at);
        REQUIRE(at < table.find('\n'));
        at += column->heading.size();
    }
    const cli::Json process = cli::Json::parse(ps(folder, {"--json"}).out)["processes"][0];
    std::vector<std::string> keys, expected;
    for (const auto& [key, value] : process.items())
        keys.push_back(key);
    for (const cli::HolderColumn& column : cli::holder_columns())
        expected.emplace_back(column.key);
    CHECK(keys == expected);
    std::string words = help;
    std::ranges::replace(words, '\n', ' ');
    CHECK(contains(words, "of all users: " + cli::columns_in_words() + ". "));
    CHECK_FALSE(contains(help, "{columns}"));
}

TEST_CASE("ps: the rows of the columns are there for scripts") {
    const cli::Json rows =
        cli::Json::parse(run({kLauncher, "help", "options", "--json"}, plain_environment("/nowhere")).out)["columns"];
    REQUIRE(rows.size() == cli::holder_columns().size());
    for (size_t i = 0; i < rows.size(); ++i)
        CHECK(rows[i]["key"] == cli::holder_columns()[i].key);
}

}  // namespace cuslice::tests
