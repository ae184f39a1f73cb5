// SPDX-License-Identifier: Apache-2.0
// The compact form says what the other one says, whatever the numbers are.
#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <sstream>
#include <vector>

#include "policy/trace/log.h"
#include "tests/bench/recorded_rows.h"
#include "tests/policy/trace/recordings.h"

namespace cuslice::trace {
namespace {

constexpr uint64_t kBegan = 1'790'000'000'000'000;
const std::string kGpus[] = {"GPU-830cff1a-59d2-4d1e-8f0a-3c5b7e9d1f20", "MIG-0f", std::string(47, 'f')};

std::vector<bench::RecordedRow> compact_rows(const std::string& path) {
    std::vector<bench::RecordedRow> rows;
    std::string why;
    CHECK(bench::read_compact(read(path), rows, why));
    CHECK(why.empty());
    return rows;
}

void write(const std::string& path, const std::vector<Row>& rows, Columns columns = Columns::usual) {
    Log log;
    Reason why;
    REQUIRE(log.make(path, why, columns));
    int error = 0;
    for (const Row& row : rows)
        REQUIRE(log.append(row, error) == File::Appended::done);
    log.finish();
}

// A row of text from what the compact form has.
std::string text_of(const bench::RecordedRow& row) {
    Action action = Action::allocate;
    if (row.action != "allocate")
        action = row.action == "free" ? Action::free : Action::allocate_failure;
    const auto number = [](const std::string& text) { return text.empty() ? Row::kNotKnown : std::stoull(text); };
    RowText text;
    write_row(text, {row.thread, row.time, action, row.address, row.bytes, row.stream, row.gpu, number(row.limit),
                     number(row.held)});
    return std::string(text.view());
}

std::string text_of(const Row& row) {
    Row rounded = row;
    if (row.held != Row::kNotKnown)
        rounded.held = std::min<uint64_t>(row.held, (1ull << 44) - 2 * kHeldUnit) / kHeldUnit * kHeldUnit;
    RowText text;
    write_row(text, rounded);
    return std::string(text.view());
}

// Mostly usual ones, and every kind of number that has no room in a record.
class RandomRows {
  public:
    explicit RandomRows(unsigned seed) : random_(seed) {}
    Row next() {
        time_ += one_of(100) ? random_() % (3'600'000'000ull * 30) : random_() % 500;
        if (one_of(200))
            time_ -= random_() % 1'000'000'000;
        Row row{.thread = static_cast<uint32_t>(812 + random_() % 5),
                .time = time_ - random_() % 50,
                .action = static_cast<Action>(random_() % 3),
                .address = 0x7f3a40000000 + random_() % 4096 * 512,
                .bytes = random_() % (1ull << 33),
                .stream = one_of(3) ? random_() % 20 : 0,
                .gpu = {}};
        if (one_of(50))
            row.address = random_();
        if (one_of(50))
            row.bytes = random_() >> random_() % 64;
        if (one_of(50))
            row.stream = random_();
        if (one_of(10))
            return row;
        row.ordinal = static_cast<uint8_t>(random_() % 3);
        row.gpu = kGpus[row.ordinal];
        row.limit = one_of(20) ? limits_ += 512 : 1ull << 32;
        row.held = random_() % (1ull << 38);
        if (one_of(100))
            row.held = random_() - 1;
        if (one_of(20))
            row.limit = row.held = Row::kNotKnown;
        return row;
    }

  private:
    bool one_of(unsigned many) { return random_() % many == 0; }
    std::mt19937_64 random_;
    uint64_t time_ = kBegan, limits_ = 1 << 30;
};

}  // namespace

TEST_CASE("both forms say the same, but that the compact one rounds what is held") {
    RandomRows random(GENERATE(1u, 2u, 3u));
    std::vector<Row> rows;
    for (int i = 0; i < 20'000; i++)
        rows.push_back(random.next());
    const TestFolder folder;
    write(folder.at("a.trace"), rows);
    write(folder.at("a.csv"), rows);
    const std::vector<bench::RecordedRow> read_again = compact_rows(folder.at("a.trace"));
    REQUIRE(read_again.size() == rows.size());
    std::istringstream lines(read(folder.at("a.csv")));
    std::string line;
    std::getline(lines, line);
    for (size_t i = 0; i < rows.size(); i++) {
        std::getline(lines, line);
        RowText text;
        write_row(text, rows[i]);
        if (line + "\n" != text.view())
            FAIL(line);
        if (text_of(read_again[i]) != text_of(rows[i]))
            FAIL(text_of(read_again[i]) << " " << text_of(rows[i]));
        if (read_again[i].time != rows[i].time)
            FAIL("the time of row " << i);
    }
}

TEST_CASE("an event of the compact form takes 24 bytes, once its GPU, limit, thread and stream are known") {
    const TestFolder folder;
    std::vector<Row> rows(10'000,
                          {.thread = 812, .time = kBegan, .address = 512, .bytes = (1ull << 40) - 1, .gpu = kGpus[0]});
    for (size_t i = 0; i < rows.size(); i++)
        rows[i].stream = i % 4;
    write(folder.at("a.trace"), rows);
    // The header, a name in three pieces, a place, four sources, and a time.
    CHECK(std::filesystem::file_size(folder.at("a.trace")) == sizeof(Header) + (rows.size() + 3 + 1 + 4 + 1) * 24);
}

TEST_CASE("the first row has the program, and each its stack, in both forms, up to the longest") {
    const auto text = [](size_t bytes) { return std::string(bytes, static_cast<char>('a' + bytes % 26)); };
    const size_t most = kMostOfProgram + GENERATE(0u, 100u);
    std::vector<std::string> stacks;
    for (size_t bytes = 0; bytes <= kMostOfStack + 32; bytes += 31)
        stacks.push_back(text(bytes));
    const std::string program = text(most);
    std::vector<Row> rows;
    for (const std::string& stack : stacks)
        rows.push_back({.thread = 812, .time = kBegan, .address = 512, .bytes = 512, .gpu = kGpus[0], .stack = stack});
    rows[0].program = program;
    rows[1].bytes = 1ull << 41;  // has a record of its own before it
    const TestFolder folder;
    write(folder.at("a.trace"), rows);
    write(folder.at("a.csv"), rows, Columns::with_stack);
    const std::vector<bench::RecordedRow> read_again = compact_rows(folder.at("a.trace"));
    REQUIRE(read_again.size() == rows.size());
    std::istringstream lines(read(folder.at("a.csv")));
    std::string line;
    std::getline(lines, line);
    CHECK(line + "\n" == header_for(Columns::with_stack));
    for (size_t i = 0; i < rows.size(); i++) {
        const std::string named = i == 0 ? program.substr(0, kMostOfProgram) : "";
        const std::string stack = stacks[i].substr(0, kMostOfStack);
        CHECK(read_again[i].program == named);
        CHECK(read_again[i].stack == stack);
        std::getline(lines, line);
        CHECK(line.ends_with("," + named + "," + stack));
    }
}

TEST_CASE("where numbers for threads, streams and limits run out, each event says them itself") {
    const TestFolder folder;
    std::vector<Row> rows(70'000, {.thread = 812, .time = kBegan, .address = 512, .bytes = 512, .gpu = kGpus[0]});
    for (size_t i = 0; i < rows.size(); i++)
        rows[i].stream = i * 16, rows[i].limit = i;
    write(folder.at("a.trace"), rows);
    const std::vector<bench::RecordedRow> read_again = compact_rows(folder.at("a.trace"));
    REQUIRE(read_again.size() == rows.size());
    for (size_t i = 0; i < rows.size(); i++)
        if (read_again[i].stream != i * 16 || read_again[i].limit != std::to_string(i))
            FAIL(i);
}

TEST_CASE("a record is what the documents say") {
    const TestFolder folder;
    write(folder.at("a.trace"), {{.thread = 0x0a0b0c0d,
                                  .time = 0x0006'5c0a'1234'5678,
                                  .action = Action::free,
                                  .address = 0x7f3a40000200,
                                  .bytes = 0x12'3456'789a,
                                  .stream = 2,
                                  .gpu = kGpus[1],
                                  .limit = 1 << 30,
                                  .held = 0x5000,
                                  .ordinal = 5}});
    const std::string file = read(folder.at("a.trace"));
    CHECK(file.substr(0, 8) ==
          "\x89"
          "CUSL\r\n\x1a");
    const auto record = [&](size_t number) { return file.substr(number * 24, 24); };
    const auto bytes = [](std::initializer_list<int> all) { return std::string(all.begin(), all.end()); };
    REQUIRE(file.size() == 7 * 24);
    CHECK(record(2) == bytes({7, 0, 5, 0, 6, 0, 0, 0, 'M', 'I', 'G', '-', '0', 'f', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    CHECK(record(3) == bytes({4, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0}));
    CHECK(record(4) == bytes({6, 0, 1, 0, 0x0d, 0x0c, 0x0b, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
    CHECK(record(5) ==
          bytes({5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x78, 0x56, 0x34, 0x12, 0x0a, 0x5c, 0x06, 0}));
    CHECK(record(6) == bytes({2, 1, 1, 0, 0x78, 0x56, 0x34, 0x12, 0x9a, 0x78, 0x56, 0x34,
                              5, 0, 0, 0, 0,    2,    0,    0x40, 0x3a, 0x7f, 0,    0x12}));
}

TEST_CASE("a name that ends in .trace asks for the compact form") {
    CHECK(form_of("/tmp/a.trace") == Form::compact);
    CHECK(form_of("/tmp/%p.trace") == Form::compact);
    for (const char* name : {"/tmp/a.csv", "/tmp/a.trace.csv", "/tmp/trace", ".trace", "a.TRACE", ""})
        CHECK(form_of(name) == Form::csv);
}

}  // namespace cuslice::trace
