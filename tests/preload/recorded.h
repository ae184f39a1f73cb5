// SPDX-License-Identifier: Apache-2.0
// A recording of either form, as tests read it.
#pragma once

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bench/recorded_rows.h"
#include "tests/bench/traces.h"
#include "tests/catch.h"
#include "tests/preload/guest.h"

namespace cuslice::tests {

struct Row {
    std::string thread, action;
    uint64_t address, bytes, stream;
    std::string gpu, limit, held;  // as written
};

// Every line is whole, and the rows make sense one after the other: no address is handed out that is not free, none is
// freed that is not live, and with the size that it had. While a program runs, empty lines follow.
struct Recorded {
    explicit Recorded(const std::string& file) {
        const std::string text = read_text(file);
        REQUIRE(!text.empty());
        bench::is_compact(text) ? read_records(text) : read_lines(text);
        CHECK(wrong == 0);
        // The reader of the benchmark sees the same.
        std::istringstream again(text);
        std::string why;
        CHECK(bench::read_recorded(again, trace, why));
        CHECK(why.empty());
    }
    void read_records(const std::string& text) {
        std::vector<bench::RecordedRow> all;
        std::string why;
        CHECK(bench::read_compact(text, all, why));
        CHECK(why.empty());
        for (const bench::RecordedRow& row : all)
            add({std::to_string(row.thread), row.action, row.address, row.bytes, row.stream, row.gpu, row.limit,
                 row.held});
    }
    void read_lines(const std::string& text) {
        CHECK(text.back() == '\n');
        std::istringstream lines(text);
        std::string line;
        std::getline(lines, line);
        CHECK(line == "Thread,Time,Action,Pointer,Size,Stream,GPU,Limit,Held,Program");
        const std::regex form(
            R"((\d+),([01]\d|2[0-3])(?::[0-5]\d){2}\.\d{6},(allocate|free|allocate failure),0x([0-9a-f]+),(\d+),0x([0-9a-f]+),([^,]*),(\d*),(\d*),([^,]*))");
        while (std::getline(lines, line)) {
            std::smatch parts;
            if (line.empty())
                continue;
            if (!std::regex_match(line, parts, form)) {
                FAIL_CHECK(line);
                continue;
            }
            const bool names_program = parts[10].length() != 0;
            CHECK(names_program == rows.empty());  // the first row does
            add({parts[1], parts[3], std::stoull(parts[4], nullptr, 16), std::stoull(parts[5]),
                 std::stoull(parts[6], nullptr, 16), parts[7], parts[8], parts[9]});
        }
    }
    void add(const Row& row) {
        if (row.action == "allocate")
            wrong += !row.address || !live.insert({row.address, row.bytes}).second;
        else if (row.action == "free")
            wrong += live[row.address] != row.bytes || !live.erase(row.address);
        else
            wrong += row.address != 0;
        rows.push_back(row);
    }
    std::string text() const {
        std::string all;
        for (const Row& row : rows)
            all += row.action + " " + std::to_string(row.bytes) + "; ";
        return all;
    }
    std::set<std::string> threads() const {
        std::set<std::string> all;
        for (const Row& row : rows)
            all.insert(row.thread);
        return all;
    }
    std::vector<Row> rows;
    std::map<uint64_t, uint64_t> live;
    bench::Trace trace;
    unsigned wrong = 0;
};

}  // namespace cuslice::tests
